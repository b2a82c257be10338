"""Ends of steps that are put aside: nothing of them is lost, and nothing is decided late that matters."""

import importlib.util
import threading
import time

import pytest
from test_capture_child import Fake, child, make, run_json  # noqa: F401 - child is a fixture
from test_capture_torch import HEAD, MODEL, profile

WARMED = 3


class Adapter(Fake):
    """Tells steps as torch's does: put aside where that is open, at once elsewhere."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder
        self.values = None

    def sample(self):
        values, self.values = self.values, None
        return values or {"batch": "[[1]]"}

    def step(self, number):
        aside = self.recorder.aside
        if aside.owner is not None and aside.thread == threading.get_ident():
            aside.put(time.perf_counter_ns(), {"nodes": number})
            return
        self.values = {"nodes": number}
        self.recorder.boundary("optimizer", "torch")
        aside.open(self.recorder.tracks["torch"], id(self), self.recall)

    def recall(self, values):
        self.values = values


@pytest.fixture
def adapter(child, tmp_path):  # noqa: F811
    recorder = make(child, tmp_path, warmup=10**6, lines=False, stacks=False)
    adapter = Adapter(recorder)
    recorder.register(adapter)
    recorder.activity()
    for number in range(WARMED):
        adapter.step(number)
    return adapter


def test_every_step_is_told_once_and_in_order(adapter, tmp_path):
    for number in range(WARMED, 90):
        adapter.step(number)
    assert adapter.recorder.open_step == 90
    assert len(adapter.recorder.series) < 90, "the last are still aside"
    adapter.recorder.finish("exit")
    series = run_json(tmp_path)["step_series"]
    assert series["nodes"] == list(range(90))


def test_times_are_those_of_the_steps(adapter, tmp_path):
    begin = time.perf_counter_ns()
    for number in range(WARMED, 9):
        time.sleep(0.03 if number == 5 else 0.001)
        adapter.step(number)
    passed = time.perf_counter_ns() - begin
    adapter.recorder.finish("exit")
    wall = run_json(tmp_path)["step_series"]["wall_ns"]
    assert wall[5] > 0.03e9
    assert max(wall[6:]) < 0.03e9
    assert sum(wall[WARMED + 1 :]) <= passed


def test_long_steps_are_told_soon(adapter):
    adapter.step(3)
    time.sleep(0.21)
    adapter.step(4)
    assert len(adapter.recorder.series) == 5


def test_an_evaluation_is_no_part_of_a_step_that_was_put_aside(adapter, tmp_path):
    adapter.step(3)
    adapter.recorder.pause()
    time.sleep(0.05)
    adapter.recorder.resume()
    adapter.step(4)
    adapter.recorder.finish("exit")
    wall = run_json(tmp_path)["step_series"]["wall_ns"]
    assert len(wall) == 5
    assert max(wall) < 0.05e9


def test_an_evaluation_inside_the_open_step_is_noted_there(adapter, tmp_path):
    adapter.step(3)
    adapter.recorder.evaluated(500)
    adapter.step(4)
    adapter.recorder.finish("exit")
    assert run_json(tmp_path)["step_series"]["evaluation_ns"] == [None] * 4 + [500]


def test_nothing_is_put_aside_near_a_window_or_beside_another_framework(child, tmp_path):  # noqa: F811
    recorder = make(child, tmp_path, warmup=20, lines=False, stacks=False)
    adapter = Adapter(recorder)
    recorder.register(adapter)
    recorder.activity()
    for number in range(20):
        adapter.step(number)
        assert recorder.aside.owner is None
    assert recorder.window is not None
    recorder.tracks["tensorflow"] = object()
    for number in range(40):
        adapter.step(number)
        assert recorder.aside.owner is None


def test_another_thread_does_not_put_aside(adapter):
    adapter.step(3)
    thread = threading.Thread(target=adapter.step, args=(99,))
    thread.start()
    thread.join()
    assert adapter.recorder.open_step == 4


def test_the_end_of_the_script_on_another_thread_tells_all(adapter, tmp_path):
    adapter.step(3)
    thread = threading.Thread(target=adapter.recorder.finish, args=("exit",))
    thread.start()
    thread.join()
    assert run_json(tmp_path)["step_series"]["nodes"] == [0, 1, 2, 3]


def test_a_forked_child_tells_nothing(adapter):
    adapter.step(3)
    told = len(adapter.recorder.series)
    adapter.recorder.abandon()
    adapter.step(4)
    assert len(adapter.recorder.series) == told


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_long_script_keeps_every_step_and_its_evaluations(tmp_path):
    source = """
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.randn(1200, 8)), batch_size=4)
    for number, (x,) in enumerate(loader):
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
        if number % 100 == 99:
            with torch.no_grad():
                model(x)
                time.sleep(0.1)
    """
    run = profile(tmp_path, source, HEAD + MODEL, warmup=3, steps=3).run
    series = run["step_series"]
    assert len(series["wall_ns"]) == 300
    assert run["optimizers"][0]["steps"] == 300
    assert all(value > 0 for value in series["nodes"][60:])
    assert all(value is not None for name in ("loader_ns", "batch", "allocated") for value in series[name][60:])
    assert sum(wall > 0.1e9 for wall in series["wall_ns"]) == 0
