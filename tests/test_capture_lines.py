"""What the capture sees between operators: lines of the main thread, values, hooks, evaluations that belong to steps."""

import hashlib
import importlib.util
import json
import os
import sys
import time
import weakref
from types import SimpleNamespace

import pytest

from tests.test_capture_child import child  # noqa: F401  # a fixture
from tracediag.capture.linecalls import add_calls, add_step_functions, calls_at

SOURCE = """
def save(step):
    torch.save(
        {"model": model.state_dict()},
        name,
    )


for x in loader:
    y = torch.tensor([np.asarray(row) for row in x])
    values = model(y)[0].tolist()
    if step():
        save(1)
"""

with_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        (5, ["torch.save", "model.state_dict"]),
        (9, []),
        (10, ["torch.tensor", "for", "np.asarray"]),
        (11, [".tolist", "[]", "model"]),
        (12, ["step"]),
        (13, ["save"]),
        (99, []),
    ],
)
def test_calls_of_the_statement_at_a_line(line, calls):
    assert sorted(calls_at(SOURCE, line)) == sorted(calls)


def test_calls_of_broken_source():
    assert calls_at("def f(:", 1) == []


def test_rows_get_their_calls(tmp_path):
    (tmp_path / "train.py").write_text(SOURCE)
    rows = [{"source": "train.py:13"}, {"source": "other.py:1"}, {"source": None}]
    add_calls(rows, [tmp_path])
    assert json.loads(rows[0]["calls"]) == ["save"]
    assert "calls" not in rows[1]
    assert "calls" not in rows[2]


STEPS = """
class Loop:
    def train_step(self, x):
        if x is not None:
            self.opt.apply_gradients(
                zip(self.tape.gradient(loss, v), v)
            )

def main():
    for x in data:
        opt.apply_gradients(pairs)
    model.fit(data)
"""


@pytest.mark.parametrize(("line", "function"), [(5, "train.py:3"), (11, None), (12, None), (2, None)])
def test_function_of_a_step(tmp_path, line, function):
    """The loop over steps lies outside of it, and it updates the parameters itself."""
    (tmp_path / "train.py").write_text(STEPS)
    rows = [{"source": f"train.py:{line}"}, {"source": "elsewhere.py:1"}, {"source": None}]
    add_step_functions(rows, [tmp_path])
    assert rows == [{"source": f"train.py:{line}", "function": function}, {"source": "elsewhere.py:1"}, {"source": None}]


class Owner(SimpleNamespace):
    @property
    def open_step(self):
        return len(self.series)


def recorder(**more):
    return Owner(live=True, window=None, series=Series(), **more)


class Series:
    paused = False
    steps = 1

    def __len__(self):
        return self.steps


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(500))


def test_sampler_names_the_line_that_runs(child):  # noqa: F811
    child("_tracediag.callsite").configure(str(sys.path[0]), str(sys.path[0]), "/nowhere")
    owner = recorder()
    sampler = child("_tracediag.sampler").Sampler(owner)
    sampler.start()
    busy(0.4)
    owner.series.steps = 2
    busy(0.1)
    owner.series.steps = 3
    busy(0.05)
    sampler.stop()
    rows = sampler.facts()
    assert rows[0]["function"] == "busy"
    assert "test_capture_lines.py:" in rows[0]["source"]
    assert rows[0]["ns"] > 0.02e9
    assert sum(row["ns"] for row in rows) < 0.7e9


def test_stack_deeper_than_looked_at_has_no_line(child):  # noqa: F811
    """Not the line of the library's frame at which the look ended."""
    callsite = child("_tracediag.callsite")
    callsite.configure("/nowhere", "/nowhere", "/nowhere")
    sampler = child("_tracediag.sampler").Sampler(recorder())
    library = "/nowhere/site-packages/deep.py"
    scope = {"sys": sys}
    exec(compile("def down(n):\n    return down(n - 1) if n else sys._getframe()\n", library, "exec"), scope)
    assert sampler._look(scope["down"](200), 1, 0)
    sampler._keep()
    (row,) = sampler.facts()
    assert (row["source"], row["function"]) == (None, None)


def test_code_under_a_library_is_told_from_the_script_itself(child):  # noqa: F811
    """Also through functions of the user's own; a comprehension is part of its statement."""
    child("_tracediag.callsite").configure("/project", "/project", "/nowhere")
    scope = {"sys": sys}
    exec(compile("def fetch(dataset):\n    return dataset()\n", "/lib/site-packages/torch/utils/data/fetch.py", "exec"), scope)
    user = "def helper():\n    return [\n        sys._getframe() for _ in 'a'][0]\ndef item():\n    return helper()\n"
    exec(compile(user + "frames = fetch(item), item()\n", "/project/train.py", "exec"), scope)
    rows = []
    for frame in scope["frames"]:
        sampler = child("_tracediag.sampler").Sampler(recorder())
        sampler._look(frame, 1, 0)
        sampler._keep()
        rows += sampler.facts()
    assert [row["function"] for row in rows] == ["helper", "helper"]
    assert [row["source"].rsplit(":", 1)[0] for row in rows] == ["train.py", "train.py"]
    assert rows[0]["caller"] == "torch/utils/data/fetch.py:fetch"
    assert not (rows[1]["caller"] or "").startswith("torch/")


def test_sampler_rests_in_windows_and_evaluations(child):  # noqa: F811
    owner = recorder()
    sampler = child("_tracediag.sampler").Sampler(owner)
    owner.window = object()
    sampler.start()
    busy(0.1)
    owner.window, owner.series.paused = None, True
    busy(0.1)
    sampler.stop()
    assert sampler.looks == 0
    assert sampler.facts() == []


def test_open_step_does_not_count(child):  # noqa: F811
    sampler = child("_tracediag.sampler").Sampler(recorder())
    sampler.start()
    busy(0.1)
    sampler.stop()
    assert sampler.facts() == []


def test_evaluations_in_every_step_belong_to_the_steps(child):  # noqa: F811
    habit = child("_tracediag.keras_adapter").Habit()
    assert [habit.begins(step, 0) for step in (0, 1, 2, 3, 9, 10, 11)] == [False, False, True, True, False, False, True]
    assert habit.ends(7) == 7


def test_evaluation_time_is_a_column_of_the_series(child, tmp_path):  # noqa: F811
    from tests.test_capture_child import Fake, make, run_json

    owner = make(child, tmp_path, warmup=99)
    owner.register(Fake())
    owner.activity()
    owner.boundary("optimizer", "torch")
    owner.evaluated(500)
    owner.boundary("optimizer", "torch")
    owner.finish("exit")
    assert run_json(tmp_path)["step_series"]["evaluation_ns"] == [None, 500]


@with_torch
def test_part_of_subnormal_numbers(child):  # noqa: F811
    import torch

    look = child("_tracediag.subnormals").Subnormals(torch, lambda: True)
    assert look.part(torch.randn(64, 64)) == 0
    assert look.part(torch.zeros(64, 64)) == 0
    assert look.part(torch.full((64, 64), 1e-40)) == 1
    assert look.part(torch.cat([torch.full((512,), -1e-40), torch.ones(512)])) == pytest.approx(0.5, abs=0.01)
    assert look.part(torch.full((32,), 1e-310, dtype=torch.float64)) == 1
    assert look.part(torch.full((64,), 3)) is None
    assert look.part(torch.ones(4)) is None
    assert look.part(torch.ones(64, 64).t()[:, :3]) is None
    assert look.part("text") is None


@with_torch
def test_subnormal_weights_are_seen_and_the_processor_is_tried(child):  # noqa: F811
    import torch

    look = child("_tracediag.subnormals").Subnormals(torch, lambda: True)
    model = torch.nn.Linear(32, 32)
    with torch.no_grad():
        model.weight.mul_(1e-39)
    assert look.look(1, [], [weakref.ref(model)]) == 1000
    flags = look.flags()
    assert flags["torch.subnormal.where"] == "weights"
    assert flags["torch.subnormal.factor"] > 0


@with_torch
def test_nothing_subnormal_nothing_tried(child):  # noqa: F811
    import torch

    look = child("_tracediag.subnormals").Subnormals(torch, lambda: True)
    assert look.flags() == {}
    assert look.look(1, [], [weakref.ref(torch.nn.Linear(8, 8))]) is None  # the module is gone
    assert look.flags()["torch.subnormal.factor"] is None


@with_torch
def test_hooks_are_counted_early_and_late(child):  # noqa: F811
    import torch

    count = child("_tracediag.torch_hookcount").HookCount()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    assert count.flags() == {}
    count.look(1, [], [weakref.ref(model)])
    for _ in range(3):
        model[0].register_forward_hook(lambda *_: None)
    model[0].weight.register_hook(lambda grad: grad)
    count.look(9, [], [weakref.ref(model)])
    assert count.flags() == {
        "torch.hooks.first": 0, "torch.hooks.first_step": 1, "torch.hooks.last": 4, "torch.hooks.last_step": 9,
    }  # fmt: skip


def busy_in_turns(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(30):
            sum(range(2000))  # about a millisecond of plain Python
        hashlib.sha1(bytes(3000))  # lets go of the interpreter, and takes next to nothing


def test_the_sampler_sees_more_than_what_lets_go_of_the_interpreter(child):  # noqa: F811
    child("_tracediag.callsite").configure(str(sys.path[0]), str(sys.path[0]), "/nowhere")
    usual = sys.getswitchinterval()
    line = busy_in_turns.__code__.co_firstlineno
    for _ in range(3):  # a busy machine may wake the thread up late
        owner = recorder()
        sampler = child("_tracediag.sampler").Sampler(owner)
        sampler.start()
        busy_in_turns(0.8)
        owner.series.steps = 2
        busy_in_turns(0.1)
        sampler.stop()
        assert sys.getswitchinterval() == pytest.approx(usual)
        rows = [row for row in sampler.facts() if row["function"] == "busy_in_turns"]
        times = {int(row["source"].rsplit(":", 1)[1]) - line: row["ns"] for row in rows}
        if times.get(4, 0) > times.get(5, 0):
            return
    pytest.fail(str(times))


def short_item():
    total = [number / 3 for number in range(1500)]  # some 60 us of plain Python
    return total, hashlib.sha1(bytes(3000))  # lets go of the interpreter, and takes next to nothing


def long_item():
    total = sum(range(500_000))  # keeps the interpreter for some 8 ms
    return total, [number / 3 for number in range(20_000)]


@pytest.mark.parametrize("item", [short_item, long_item])
def test_the_sampler_is_drawn_neither_to_calls_that_let_go_of_the_interpreter_nor_away_from_others(child, item):  # noqa: F811
    if "PYTEST_XDIST_WORKER" in os.environ or os.getloadavg()[0] > 0.6 * (os.cpu_count() or 1):
        pytest.skip("with all processors busy the thread is woken up too late to see more than calls that let go")
    child("_tracediag.callsite").configure(str(sys.path[0]), str(sys.path[0]), "/nowhere")
    owner = recorder()
    sampler = child("_tracediag.sampler").Sampler(owner)
    sampler.start()
    for seconds in (1.5, 0.1):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            item()
        owner.series.steps = 2
    sampler.stop()
    first = item.__code__.co_firstlineno
    looks = [0, 0, 0]
    for row in sampler.facts():
        if row["function"] == item.__name__:
            looks[int(row["source"].rsplit(":", 1)[1]) - first] += row["looks"]
    assert looks[1] > looks[2], looks
