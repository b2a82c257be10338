from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tracediag
from tracediag import api
from tracediag.errors import InputError, RuleError

LOOP = """\
import sys
import torch
import tracediag
weight = torch.zeros(64, 64, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
with tracediag.profile(out=sys.argv[1], warmup=3, steps=4, stacks=False) as run:
    for _ in range(12):
        for _ in range(3):  # three updates are one step, because the loop says so
            optimizer.zero_grad()
            (weight * 2).sum().backward()
            optimizer.step()
        run.step()
try:
    tracediag.profile(out=sys.argv[1] + "2").__enter__()
except Exception as error:
    print(type(error).__name__)
"""


@pytest.fixture
def trace_file(tmp_path):
    events = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 100.0 * i, "dur": 100.0}
        for i in range(4)
    ]
    events += [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100.0 * i + 10, "dur": 50.0} for i in range(4)]
    file = tmp_path / "x.pt.trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return file


def test_load_gives_frames_and_sql(trace_file):
    trace = tracediag.load(trace_file)
    assert len(trace.steps) == 4
    assert set(trace.ops.columns) >= {"op_id", "name", "kind", "start_ns"}
    assert trace.sql("SELECT sum(dur_ns)::BIGINT AS ns FROM ops WHERE name = 'aten::mm'").ns[0] == 200_000


def test_explain_takes_a_trace_a_path_or_paths(trace_file):
    told = {tracediag.explain(given).to_json() for given in (tracediag.load(trace_file), trace_file, str(trace_file), [trace_file])}
    assert len(told) == 1


def test_select_and_ignore_limit_what_is_judged(trace_file):
    whole = tracediag.explain(trace_file)
    names = {row["rule"] for row in whole.skipped}
    assert {row["rule"] for row in tracediag.explain(trace_file, ignore=names).skipped} == set()
    with pytest.raises(RuleError, match="no-such-rule"):
        tracediag.explain(trace_file, select=["no-such-rule"])


def test_nothing_to_load_is_an_input_error(tmp_path):
    with pytest.raises(InputError):
        tracediag.load(tmp_path / "missing.json")


def test_default_folder_is_new_and_named_after_the_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = api.default_folder("src/train.py")
    assert first.parts[0] == "tracediag-runs"
    assert first.name.startswith("train-")
    first.mkdir(parents=True)
    assert api.default_folder("src/train.py") != first


@pytest.mark.torch
def test_profile_records_the_steps_that_the_loop_names(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    done = subprocess.run([sys.executable, script.name, "run"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "CaptureError\n"
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert len(run["step_series"]["wall_ns"]) == 12
    assert tracediag.load(tmp_path / "run").step_stats()["count"] == 4
