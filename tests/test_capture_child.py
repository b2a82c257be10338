"""The parts of the child that need no framework: steps, cycles, import hook, redaction, launcher."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracediag.capture.launcher import LaunchRequest, find_python, launch
from tracediag.capture.redact import Redactor
from tracediag.errors import CaptureError

INJECT = Path(__file__).parents[1] / "tracediag" / "capture" / "inject"


@pytest.fixture
def child(monkeypatch):
    monkeypatch.syspath_prepend(str(INJECT))
    yield importlib.import_module
    for name in [name for name in sys.modules if name.split(".")[0] == "_tracediag"]:
        del sys.modules[name]


class Fake:
    framework = "torch"
    wants_stacks = False

    def __init__(self):
        self.log = []

    def start_window(self, stem, stacks):
        self.log.append(("start", stem))

    def stop_window(self):
        self.log.append("stop")
        return ["file"]

    def mark(self, step):
        self.log.append(step)

    def sample(self):
        return {"batch": "[[4]]", "loader_ns": 5}

    def facts(self):
        return {"params": [{"optimizer": 0}], "optimizers": [{"class": "Adam"}]}


def make(child, out, **options):
    config = child("_tracediag.config").Config(out=str(out), cwd=str(out), **options)
    return child("_tracediag.recorder").Recorder(config)


def run_json(out):
    return json.loads((out / "run.json").read_text())


def test_window_and_series(child, tmp_path):
    recorder, fake = make(child, tmp_path, warmup=2, steps=3), Fake()
    recorder.register(fake)
    recorder.activity()
    for _ in range(8):
        recorder.boundary("optimizer", "torch")
    recorder.finish("exit")
    assert fake.log == [("start", "rank0"), 2, 3, 4, None, "stop"]
    run = run_json(tmp_path)
    assert run["step_series"]["profiled"] == [0, 0, 1, 1, 1, 1, 0, 0]
    assert run["step_series"]["loader_ns"] == [5] * 8 and run["step_series"]["compiles"] is None
    assert (run["windows"][0]["first_step"], run["windows"][0]["steps"], run["ended"]) == (2, 3, "exit")


def test_stronger_boundary_restarts_the_series(child, tmp_path):
    recorder, fake = make(child, tmp_path), Fake()
    recorder.register(fake)
    recorder.activity()
    recorder.expect("optimizer", "torch")
    for _ in range(9):
        recorder.boundary("backward", "torch")
    recorder.boundary("optimizer", "torch")
    recorder.boundary("backward", "torch")
    recorder.boundary("optimizer", "torch")
    assert fake.log == []
    assert len(recorder.series) == 2 and recorder.series.as_json()["loader_ns"] == [50, 5]


def test_pause_is_no_part_of_a_step(child, tmp_path):
    recorder = make(child, tmp_path)
    recorder.register(Fake())
    recorder.activity()
    recorder.boundary("optimizer", "torch")
    recorder.pause()
    time.sleep(0.05)
    recorder.resume()
    recorder.boundary("optimizer", "torch")
    assert recorder.series.wall[1] < 40e6


def test_our_own_work_is_no_part_of_a_step(child, tmp_path):
    class Slow(Fake):
        def stop_window(self):
            time.sleep(0.05)
            return []

    recorder = make(child, tmp_path, warmup=1, steps=1)
    recorder.register(Slow())
    recorder.activity()
    for _ in range(4):
        recorder.boundary("optimizer", "torch")
    assert max(recorder.series.wall) < 40e6


def test_a_failing_adapter_is_a_note(child, tmp_path):
    class Broken(Fake):
        def start_window(self, stem, stacks):
            raise ValueError("no")

    recorder = make(child, tmp_path, warmup=1)
    recorder.register(Broken())
    recorder.activity()
    for _ in range(4):
        recorder.boundary("optimizer", "torch")
    recorder.finish("exit")
    run = run_json(tmp_path)
    assert any(note["id"] == "hook-failed-torch.start_window" for note in run["notes"])
    assert run["windows"] == [] and len(run["step_series"]["wall_ns"]) == 4


def test_optimizers_of_two_frameworks_keep_their_rows(child, tmp_path):
    recorder = make(child, tmp_path)
    recorder.register(Fake())
    other = Fake()
    other.framework = "tensorflow"
    recorder.register(other)
    recorder.finish("exit")
    assert [row["optimizer"] for row in run_json(tmp_path)["params"]] == [0, 1]


@pytest.mark.parametrize(
    ("events", "ends"),
    [
        ("AAAA", [0, 1, 2, 3]),
        ("ABABAB", [1, 3, 5]),
        ("AABAAB", [0, 1, 3, 4]),
        ("ABABBBBB", [1, 3, 4, 5, 6, 7]),
        ("A", [0]),
    ],
)
def test_cycles(child, events, ends):
    cycle = child("_tracediag.cycle").Cycle()
    found = [end for n, key in enumerate(events) for end in cycle.event(key, n)]
    assert found + cycle.flush() == ends


def test_import_hook_acts_at_exec_only(child, tmp_path, monkeypatch):
    imports = child("_tracediag.imports")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    (tmp_path / "watched_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    imports.before("watched_module", lambda module: seen.append(("before", hasattr(module, "value"))))
    imports.after("watched_module", lambda module: seen.append(("after", module.value)))
    imports.activate()
    assert importlib.util.find_spec("watched_module") is not None and seen == []
    module = importlib.import_module("watched_module")
    assert seen == [("before", False), ("after", 1)]
    assert "exec_module" not in vars(module.__spec__.loader)
    assert importlib.reload(module).value == 1 and len(seen) == 2
    del sys.modules["watched_module"]


def test_redactor():
    redact = Redactor(["/data/me/job", "/opt/env"], home="/home/jane", user="jane", host="node-17.lab")
    paths = b'"/data/me/job/a.py(3)" "\\/home\\/jane\\/x" "/opt/env/lib/python3/site-packages/t.py(1): f"'
    text = paths + b' node-17.lab "/srv/x/jane/y/z.py(2)" janet'
    assert redact(text) == b'"a.py(3)" "~/x" "lib/python3/site-packages/t.py(1): f" host "y/z.py(2)" janet'


def test_redactor_takes_the_names_that_kineto_writes():
    redact = Redactor([], home="/home/jane", user="jane", host="box")
    text = b'{"host_name": "box", "traceName": "/tmp/x y/rank0.json", "displayTimeUnit": "ms"}'
    assert redact(text) == b'{"host_name": "host", "traceName": "rank0.json", "displayTimeUnit": "ms"}'


def test_redactor_keeps_words_that_are_only_names():
    assert Redactor([], home="/root", user="root", host="train")(b"aten::root train /root/x") == b"aten::root train ~/x"


# -- launcher --------------------------------------------------------------------------------------------------------------------


def start(folder, *argv, monkeypatch, **options):
    monkeypatch.chdir(folder)
    options.setdefault("python", sys.executable)
    return launch(LaunchRequest(argv, folder / "run", **options))


def test_what_cannot_be_started(tmp_path, monkeypatch):
    with pytest.raises(CaptureError, match="no such script"):
        start(tmp_path, "none.py", monkeypatch=monkeypatch)
    with pytest.raises(CaptureError, match="no such command"):
        start(tmp_path, "no-such-command", monkeypatch=monkeypatch, kind="command")
    with pytest.raises(CaptureError, match="--python"):
        find_python("/no/python")
    with pytest.raises(CaptureError, match="nothing to run"):
        start(tmp_path, monkeypatch=monkeypatch)


def test_python_of_the_active_environment(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert find_python() == str(tmp_path / "bin" / "python")


def test_a_script_without_a_framework(tmp_path, monkeypatch):
    (tmp_path / "plain.py").write_text("import sys; sys.exit(3)")
    result = start(tmp_path, "plain.py", monkeypatch=monkeypatch)
    assert (result.exit_code, result.run["exit_code"], result.run["framework"]) == (3, 3, None)
    assert result.run["notes"][0]["id"] in ("no-training", "no-framework")
    with pytest.raises(CaptureError, match="already"):
        start(tmp_path, "plain.py", monkeypatch=monkeypatch)


def test_a_command_that_never_reports(tmp_path, monkeypatch):
    result = start(tmp_path, "false", monkeypatch=monkeypatch, kind="command")
    assert (result.exit_code, [note["id"] for note in result.run["notes"]]) == (1, ["not-reported"])
    isolated = LaunchRequest((sys.executable, "-I", "-c", "pass"), tmp_path / "two", kind="command")
    assert "-I" in launch(isolated).message


def test_timeout(tmp_path, monkeypatch):
    (tmp_path / "plain.py").write_text("import time; time.sleep(60)")
    result = start(tmp_path, "plain.py", monkeypatch=monkeypatch, timeout=1)
    assert (result.exit_code, result.run["ended"]) == (143, "killed")


def test_only_the_first_python_records_and_sitecustomize_is_chained(tmp_path, monkeypatch, capfd):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.CHAINED = True\n")
    (tmp_path / "plain.py").write_text(
        "import os, subprocess, sys\n"
        "code = 'import sys; print(\"_tracediag\" in sys.modules, CHAINED)'\n"
        "print('_tracediag' in sys.modules, CHAINED, flush=True)\n"
        "subprocess.run([sys.executable, '-c', code])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    start(tmp_path, "plain.py", monkeypatch=monkeypatch)
    assert capfd.readouterr().out == "True True\nFalse True\n"


def test_the_child_runs_on_old_python(tmp_path):
    """No syntax or standard library newer than 3.9 at import: annotations stay unevaluated."""
    for file in (INJECT / "_tracediag").glob("*.py"):
        source = file.read_text()
        assert "from __future__ import annotations" in source or file.name == "__init__.py", file.name
        assert "\n    match " not in source and "slots=True" not in source and "zip(strict" not in source, file.name
    env = {**os.environ, "PYTHONPATH": str(INJECT)}
    done = subprocess.run([sys.executable, "-c", "import sys; print(sorted(m for m in sys.modules if 'tracediag' in m)[:1])"], env=env,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
