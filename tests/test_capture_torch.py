"""Scripts of many kinds, profiled unmodified in a child process: they must run as they would, and their steps must be found."""

import gzip
import importlib.util
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tracediag.capture.launcher import LaunchRequest, LaunchResult, launch

pytestmark = [pytest.mark.torch, pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")]

HEAD = """
import os, sys, time
import torch
from torch import nn
torch.manual_seed(0)
"""
MODEL = """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def step(n=4):
    opt.zero_grad()
    model(torch.randn(n, 8)).sum().backward()
    opt.step()
"""


def profile(folder: Path, source: str, head: str = HEAD, args: tuple[str, ...] = (), **options) -> LaunchResult:
    (folder / "train.py").write_text(head + textwrap.dedent(source))
    old = Path.cwd()
    os.chdir(folder)
    try:
        options.setdefault("stacks", False)
        return launch(LaunchRequest(("train.py", *args), folder / "run", python=sys.executable, timeout=120, **options))
    finally:
        os.chdir(old)


def events(folder: Path, name: str = "rank0.pt.trace.json.gz") -> list[dict]:
    return json.loads(gzip.decompress((folder / "run" / name).read_bytes()))["traceEvents"]


def markers(folder: Path, name: str = "rank0.pt.trace.json.gz") -> list[tuple[int, float, float]]:
    found = [e for e in events(folder, name) if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    return sorted((int(e["name"].split("#")[1]), e["ts"], e["ts"] + e["dur"]) for e in found)


def notes(result: LaunchResult) -> list[str]:
    return [note["id"] for note in result.run["notes"]]


def test_optimizer_loop(tmp_path, capfd):
    result = profile(tmp_path, MODEL + "for _ in range(24): step()\nprint('done')\n", stacks=True)
    run = result.run
    assert capfd.readouterr() == ("done\n", "")
    assert (result.exit_code, run["ended"], run["framework"], notes(result)) == (0, "exit", "torch", [])
    main, stacks = run["windows"]
    assert (main["file"], main["first_step"], main["steps"], main["found_by"]) == ("rank0.pt.trace.json.gz", 5, 10, "optimizer")
    assert (stacks["stacks"], stacks["first_step"], stacks["steps"]) == (True, 15, 2)
    assert run["step_series"]["profiled"] == [0] * 5 + [1] * 13 + [0] * 6
    assert run["step_series"]["batch"] == [0] * 24 and run["batches"] == ["[[4,8]]"]
    assert [row["name"] for row in run["params"]] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert {(row["grad"], row["optimizer"], row["module"]) for row in run["params"]} == {("dense", 0, "Linear")}
    assert (run["optimizers"][0]["class"], run["optimizers"][0]["steps"], run["optimizers"][0]["source"]) == ("SGD", 24, "train.py:12")
    lines = {(name, shapes): line for name, shapes, ordinal, line in run["sources"] if ordinal < 1}
    assert lines["aten::linear", "[[4,8],[8,8],[8]]"] == "train.py:11"
    assert lines["Optimizer.step#SGD.step", None] == "train.py:12"
    assert not list((tmp_path / "run").glob("*.json.gz.tmp")) and not (tmp_path / "run" / ".child.json").exists()

    _markers_hold_whole_steps(tmp_path)
    _nothing_private_is_written(tmp_path)


def _markers_hold_whole_steps(tmp_path):
    steps = markers(tmp_path)
    assert [number for number, _, _ in steps] == list(range(5, 15))
    assert all(before[2] <= after[1] for before, after in itertools.pairwise(steps))
    for name in ("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"):
        calls = [(e["ts"], e["ts"] + e["dur"]) for e in events(tmp_path) if e["name"] == name]
        inside = [sum(start <= a and b <= end for a, b in calls) for _, start, end in steps]
        assert inside == [1] * 10, name


def _nothing_private_is_written(tmp_path):
    for file in (tmp_path / "run").iterdir():
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
        for private in (str(tmp_path), str(Path.home()) + "/", sys.prefix):
            assert private not in text, file.name


@pytest.mark.parametrize(
    ("ending", "code", "ended"),
    [
        ("sys.exit(7)", 7, "exit"),
        ("raise ValueError('mine')", 1, "exception"),
        ("os.kill(os.getpid(), 9)", 137, "killed"),
        ("os.kill(os.getpid(), 15); time.sleep(5)", 143, "signal"),
        ("os.kill(os.getpid(), 2); time.sleep(5)", 130, "interrupt"),
        ("os._exit(3)", 3, "exit"),
    ],
)
def test_every_end_keeps_the_window(tmp_path, capfd, ending, code, ended):
    result = profile(tmp_path, MODEL + f"for _ in range(16): step()\n{ending}\n")
    assert (result.exit_code, result.run["ended"], result.run["exit_code"]) == (code, ended, code)
    assert [window["steps"] for window in result.run["windows"]] == [10]
    assert [number for number, _, _ in markers(tmp_path)] == list(range(5, 15))
    assert ("mine" in capfd.readouterr().err) == (ended == "exception")


def test_end_inside_the_window(tmp_path):
    result = profile(tmp_path, MODEL + "for _ in range(9): step()\nraise SystemExit(4)\n")
    assert (result.exit_code, result.run["windows"][0]["steps"]) == (4, 4)
    assert [number for number, _, _ in markers(tmp_path)][:4] == [5, 6, 7, 8]
    assert len(result.run["step_series"]["wall_ns"]) == 9


def test_shorter_than_the_warm_up(tmp_path):
    result = profile(tmp_path, MODEL + "for _ in range(3): step()\n")
    assert len(result.run["step_series"]["wall_ns"]) == 3
    assert (result.run["windows"], notes(result)) == ([], ["run-too-short"])
    assert "--warmup" in result.message


def test_the_script_sees_itself(tmp_path, capfd):
    source = """
    import json, pathlib, signal
    class Mine: pass
    import pickle
    pickle.dumps(Mine)
    assert not any('inject' in p for p in sys.path), sys.path
    print(json.dumps([__name__, sys.argv, os.getcwd(), sys.stdin.read(), 'TRACEDIAG_CAPTURE' in os.environ, os.environ.get('PYTHONPATH'),
                      sys.path[0], os.path.basename(sys.modules['__main__'].__file__), 'KINETO_LOG_LEVEL' in os.environ]))
    assert not torch.cuda.is_initialized()
    torch.set_num_interop_threads(2); torch.set_num_threads(2)
    pid = os.fork()
    if not pid:
        print(torch.ones(3).sum().item(), flush=True); os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    """
    (tmp_path / "train.py").write_text(HEAD + textwrap.dedent(source))
    code = (
        "import sys; from pathlib import Path; from tracediag.capture.launcher import *;"
        f"sys.exit(launch(LaunchRequest(('train.py', '--x', '1'), Path('run'), python={sys.executable!r})).exit_code)"
    )
    root = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, input="hello", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[0])
    assert seen == ["__main__", ["train.py", "--x", "1"], str(tmp_path), "hello", False, str(root), str(tmp_path), "train.py", False]
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [note["id"] for note in run["notes"]] == ["no-steps-found"]
    assert run["windows"][0]["found_by"] == "none"


def test_module(tmp_path, capfd):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "run.py").write_text(HEAD + MODEL + "print(__name__, __package__, sys.argv[1:])\nfor _ in range(16): step()\n")
    old = Path.cwd()
    os.chdir(tmp_path)
    try:
        result = launch(LaunchRequest(("pack.run", "a"), tmp_path / "run", kind="module", python=sys.executable, stacks=False))
    finally:
        os.chdir(old)
    assert capfd.readouterr().out == "__main__ pack ['a']\n"
    assert (result.exit_code, result.run["windows"][0]["steps"], result.run["optimizers"][0]["source"]) == (0, 10, "pack/run.py:12")


def test_facts_outlive_the_main_function(tmp_path):
    source = """
    def main():
        model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 1), nn.Linear(1, 1))
        opt = torch.optim.SGD(model[1].parameters(), lr=0.1)
        for _ in range(40):
            opt.zero_grad()
            model(torch.randint(50, (4,))).sum().backward()
            opt.step()
    main()
    """
    run = profile(tmp_path, source, warmup=3, steps=3).run
    rows = {row["name"]: row for row in run["params"]}
    assert set(rows) == {"0.weight", "1.weight", "1.bias", "2.weight", "2.bias"}
    assert rows["1.weight"]["optimizer"] == 0
    assert rows["2.weight"]["optimizer"] is None
    assert rows["2.weight"]["grad"] == "dense"
    assert run["optimizers"][0]["steps"] == 40
    assert run["flags"]["torch.hooks.last"] == 0


def test_gan_is_one_step(tmp_path):
    source = """
    g, d = nn.Linear(4, 8), nn.Linear(8, 1)
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for _ in range(20):
        od.zero_grad(); (d(torch.randn(2, 8)).mean() - d(g(torch.randn(2, 4)).detach()).mean()).backward(); od.step()
        og.zero_grad(); d(g(torch.randn(2, 4))).mean().backward(); og.step()
    """
    result = profile(tmp_path, source)
    assert len(result.run["step_series"]["wall_ns"]) == 20
    steps = markers(tmp_path)
    inside = [sum(s <= e["ts"] < t for e in events(tmp_path) if e["name"] == "Optimizer.step#Adam.step") for _, s, t in steps]
    assert inside == [2] * 10
    assert {row["name"].split(".")[0] for row in result.run["params"]} == {"g", "d"}


def test_gradient_accumulation_and_evaluation(tmp_path):
    once = "    model(torch.randn(n, 8)).sum().backward()"
    source = MODEL.replace(once, "    for _ in range(10): model(torch.randn(n, 8)).sum().backward()") + (
        "for epoch in range(2):\n"
        "    for _ in range(12): step()\n"
        "    with torch.no_grad():\n"
        "        for _ in range(6): model(torch.randn(4, 8)); time.sleep(0.1)\n"
    )
    result = profile(tmp_path, source)
    wall = result.run["step_series"]["wall_ns"]
    assert len(wall) == 24
    assert max(wall[2:]) < 0.4e9  # the evaluation of 0.6 s is part of no step


def test_backward_only_and_loose_tensor(tmp_path):
    source = """
    w = torch.randn(8, requires_grad=True)
    for _ in range(20):
        ((torch.randn(4, 8) @ w) ** 2).mean().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    """
    result = profile(tmp_path, source)
    assert len(result.run["step_series"]["wall_ns"]) == 20
    assert result.run["windows"][0]["found_by"] == "backward"
    rows = [(row["name"], row["grad"], row["optimizer"], row["module"]) for row in result.run["params"]]
    assert rows == [("w", "dense", None, None)]


def test_forward_only(tmp_path):
    source = """
    model = nn.Linear(8, 8)
    with torch.inference_mode():
        for _ in range(20): model(torch.randn(4, 8))
    """
    result = profile(tmp_path, source)
    assert (len(result.run["step_series"]["wall_ns"]), result.run["windows"][0]["found_by"]) == (20, "forward")
    assert result.run["windows"][0]["steps"] == 10


def test_no_step_at_all(tmp_path):
    result = profile(tmp_path, "x = torch.randn(64, 64)\nfor _ in range(50): x = x @ x.T / 64\n")
    assert notes(result) == ["no-steps-found"]
    assert sum(e["name"] == "aten::matmul" for e in events(tmp_path)) == 50


def test_no_step_in_a_long_script(tmp_path, capfd):
    source = "x, n = torch.randn(256, 256), 0\nwhile time.process_time() < 12: x = x @ x / 256; n += 1\nprint(n)\n"
    result = profile(tmp_path, source)
    found = sum(event["name"] == "aten::matmul" for event in events(tmp_path))
    assert notes(result) == ["no-steps-found"]
    assert 10 < found < int(capfd.readouterr().out) - 10  # stopped after some seconds


def test_lines_of_what_is_switched_on_once(tmp_path, capfd):
    """Anomaly detection by its first line, threads by the last; nothing of it shows in the script."""
    source = MODEL + textwrap.dedent("""
    import pickle
    torch.set_num_threads(2)
    with torch.autograd.set_detect_anomaly(False):
        pass
    def guard():
        return torch.autograd.detect_anomaly()
    def main():
        torch.set_num_threads(1)
        for _ in range(12):
            with guard():
                step()
    main()
    assert pickle.loads(pickle.dumps(torch.set_num_threads)) is torch.set_num_threads
    torch.autograd.set_detect_anomaly(mode=True, check_nan=False)
    """)
    result = profile(tmp_path, source)
    lines = (tmp_path / "train.py").read_text().splitlines()
    flags = result.run["flags"]
    assert (result.exit_code, notes(result)) == (0, [])
    assert flags["torch.anomaly_mode.source"] == f"train.py:{1 + lines.index('    return torch.autograd.detect_anomaly()')}"
    assert flags["torch.num_threads.source"] == f"train.py:{1 + lines.index('    torch.set_num_threads(1)')}"
    warning = capfd.readouterr().err
    assert "train.py:" in warning and "_tracediag" not in warning


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers(tmp_path, capfd, method):
    source = MODEL + textwrap.dedent(f"""
    from torch.utils.data import DataLoader, Subset, TensorDataset
    class Rows(TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)
    if __name__ == "__main__":
        rows = Subset(Rows(torch.randn(70, 8)), range(70))
        loader = DataLoader(rows, batch_size=4, num_workers=1, multiprocessing_context="{method}")
        for (x,) in loader:
            opt.zero_grad(); model(x).sum().backward(); opt.step()
    """)
    result = profile(tmp_path, source)
    run = result.run
    assert (result.exit_code, len(run["step_series"]["wall_ns"]), capfd.readouterr().err) == (0, 18, "")
    assert run["batches"] == ["[[4,8]]", "[[2,8]]"] and run["step_series"]["batch"] == [0] * 17 + [1]
    assert all(wait > 0 for wait in run["step_series"]["loader_ns"])
    row = run["loaders"][0]
    assert (row["num_workers"], row["batch_size"], row["length"], row["iterators"], row["dataset"]) == (1, 4, 18, 1, "Subset")
    assert (row["made"], row["item_source"], row["source"]) == ("train.py:20", "train.py:16", "train.py:21")


def test_copies_and_pickles_of_modules(tmp_path, capfd):
    source = """
    import copy, io, pickle, multiprocessing
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 1)
        def forward(self, x):
            return self.inner(x)
    def child(net):
        assert net(torch.ones(1, 8)).shape == (1, 1)
        assert '_tracediag' not in sys.modules or sys.modules['_tracediag.start'].RECORDER is None
    if __name__ == "__main__":
        net = Net(); opt = torch.optim.Adam(net.parameters())
        for n in range(10):
            opt.zero_grad(); net(torch.randn(2, 8)).sum().backward(); opt.step()
            if n in (0, 3, 8):
                again = pickle.loads(pickle.dumps(net)); twin = copy.deepcopy(net); copy.deepcopy(opt)
                assert set(vars(again)) == set(vars(net)) == set(vars(twin))
                torch.save(net, io.BytesIO()); torch.jit.script(net); torch.jit.trace(net, torch.ones(1, 8))
                import torch.fx
                assert [n.op for n in torch.fx.symbolic_trace(net).graph.nodes] == ['placeholder', 'call_module', 'output']
        process = multiprocessing.get_context("spawn").Process(target=child, args=(net,))
        process.start(); process.join(); print(process.exitcode)
        assert '__call__' not in vars(nn.Module).get('__call__', nn.Module._wrapped_call_impl).__name__
    """
    result = profile(tmp_path, source)
    output = capfd.readouterr()
    assert (result.exit_code, output.out) == (0, "0\n"), output.err
    assert notes(result) == []


COMPILED = """
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
{warm}
fast = torch.compile(model, backend="aot_eager")
loss = torch.compile(lambda x: model(x).square().mean(), backend="aot_eager")
for _ in range(20):
    opt.zero_grad(); (fast(torch.randn(4, 8)).sum() + loss(torch.randn(4, 8))).backward(); opt.step()
from torch._dynamo.utils import counters
print(counters["frames"]["total"], counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""


def test_compile_is_not_disturbed(tmp_path, capfd):
    source = COMPILED.format(warm="for _ in range(2): model(torch.randn(4, 8)).sum().backward(); opt.step()")
    result = profile(tmp_path, source, stacks=True)
    with_hooks = capfd.readouterr().out
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True)
    assert with_hooks == capfd.readouterr().out == "2 2 0\n"
    series = result.run["step_series"]
    assert series["compiles"][-1] == 2 and len(series["wall_ns"]) == 22
    first = next(n for n, count in enumerate(series["compiles"]) if count)
    assert series["compile_ns"][first] <= series["wall_ns"][first] and not any(series["compile_ns"][first + 1 :])
    assert {row["tracing_count"] for row in result.run["functions"]} == {1}


def test_a_profiler_of_the_scripts_own_goes_first(tmp_path):
    own = "with torch.profiler.profile() as p:\n    for _ in range(3): step()\nassert len(p.events())\n"
    source = MODEL + own + "for _ in range(20): step()\n"
    result = profile(tmp_path, source)
    assert result.exit_code == 0
    assert [window["steps"] for window in result.run["windows"]] == [10]


def test_stop_after_window(tmp_path, capfd):
    result = profile(tmp_path, MODEL + "print('start')\nfor _ in range(100000): step()\n", stop_after_window=True, steps=3, warmup=1)
    assert (result.exit_code, capfd.readouterr().out) == (0, "start\n")
    assert len(result.run["step_series"]["wall_ns"]) == 5  # the first step is told when the second ends


def test_drift_opens_a_late_window(tmp_path):
    result = profile(tmp_path, MODEL + "for n in range(40): step(); time.sleep(0.005 if n < 22 else 0.02)\n", steps=3)
    late = [window for window in result.run["windows"] if window["late"]]
    assert [window["steps"] for window in late] == [5]
    assert late[0]["file"] == "rank0.late.pt.trace.json.gz"


def test_sigint_to_the_parent_reaches_the_script(tmp_path):
    (tmp_path / "train.py").write_text(HEAD + MODEL + "for _ in range(16): step()\nprint('ready', flush=True)\ntime.sleep(60)\n")
    code = (
        "import sys; from pathlib import Path; from tracediag.capture.launcher import *;"
        f"sys.exit(launch(LaunchRequest(('train.py',), Path('run'), python={sys.executable!r}, stacks=False)).exit_code)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, start_new_session=True)  # fmt: skip
    assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
    parent.send_signal(signal.SIGINT)
    _, errors = parent.communicate(timeout=60)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (parent.returncode, run["ended"], run["windows"][0]["steps"]) == (130, "interrupt", 10)
    assert re.search("KeyboardInterrupt", errors)
