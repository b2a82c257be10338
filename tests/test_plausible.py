"""A handful of corrupt events moves no headline."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest

from tracediag import api

STEPS, LAYERS = 50, 200
HUGE_US = (10**8, 10**9, 10**12, 10**15, 123_456_789, 10**10, 10**11)


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def layer_events(layer: int, at: float, correlation: int) -> list[dict[str, Any]]:
    """A layer: a Python frame, an operator with one inside it, a launch, its kernel. The second half of the layers is backward."""
    thread, even = (1 if layer < LAYERS / 2 else 2), layer % 2 == 0
    rows = [event("python_function", f"train.py({layer}): forward", at - 0.5, 21)] if thread == 1 else []
    if thread == 2:
        rows.append(event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at - 0.5, 21, thread))
    rows.append(event("cpu_op", "aten::relu" if even else "aten::linear", at, 20, thread, **{"External id": correlation}))
    rows.append(event("cpu_op", "aten::clamp_min" if even else "aten::addmm", at + 2, 15, thread))
    rows.append(event("cuda_runtime", "cudaLaunchKernel", at + 4, 5, thread, correlation=correlation))
    kernel = "vectorized_elementwise_kernel<clamp>" if even else "ampere_sgemm_128x64_tn"
    rows.append(event("kernel", kernel, at + 10, 14, 7, device=0, stream=7, correlation=correlation))
    return rows


@cache
def sound() -> str:
    """50,000 events: steps of input, 200 layers forward and backward, an optimizer step, a pause; the device is half busy."""
    rows, correlation, at = [], 0, 1_700_000_000_001_000.0
    for step in range(STEPS):
        begin = at
        rows.append(event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 300))
        at += 310
        for layer in range(LAYERS):
            correlation += 1
            rows += layer_events(layer, at, correlation)
            at += 25
        rows.append(event("user_annotation", "Optimizer.step#Adam.step", at, 500))
        for part in range(10):
            correlation += 1
            rows.append(event("cpu_op", "aten::_foreach_add_", at + 1 + 45 * part, 40))
            rows.append(event("cuda_runtime", "cudaLaunchKernel", at + 5 + 45 * part, 5, correlation=correlation))
            kernel = event(
                "kernel", "multi_tensor_apply_kernel<add>", at + 15 + 45 * part, 30, 7, device=0, stream=7, correlation=correlation
            )
            rows.append(kernel)
        at += 900
        rows.append(event("user_annotation", f"ProfilerStep#{step}", begin - 1, at - begin))
    return json.dumps({"schemaVersion": 1, "traceEvents": rows})


def planted(kind: str, count: int = 7) -> str:
    document = json.loads(sound())
    rows = document["traceEvents"]
    rng = random.Random(kind)
    wanted = {"op": "cpu_op", "call": "cuda_runtime", "step": "ProfilerStep", "optimizer": "Optimizer", "input": "enumerate"}
    of = wanted.get(kind.removeprefix("half "), "kernel")
    chosen = rng.sample([row for row in rows if row["cat"] == of or row["name"].startswith(of)], count)
    for i, row in enumerate(chosen):
        if kind == "overlap":
            row["dur"] = 40_000 + 1000 * i
        elif kind == "far":
            row["ts"] = [0, 10**15, 10**14, -(10**13)][i % 4]
        elif kind == "negative":
            row["dur"] = -50
        elif kind.startswith("half"):
            row["dur"] = 150_000 + i
        else:
            row["dur"] = HUGE_US[i % len(HUGE_US)]
    return json.dumps(document)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    @cache
    def of(kind: str):
        path = tmp_path_factory.mktemp("traces") / "t.json"
        path.write_text(planted(kind) if kind else sound())
        return api.explain(api.load(path))

    return of


def test_a_sound_trace_of_this_size_has_no_problem(said):
    assert said("").inputs[0]["events"] > 50_000
    assert said("").health == ()
    assert 0.4 < said("").device["busy_share"] < 0.7


KINDS = [
    "kernel",
    "op",
    "call",
    "step",
    "optimizer",
    "input",
    "half op",
    "half call",
    "half optimizer",
    "half input",
    "overlap",
    "far",
    "negative",
]


@pytest.mark.parametrize("kind", KINDS)
def test_seven_corrupt_events_of_50000_move_no_headline(said, kind):
    before, after = said(""), said(kind)
    assert after.device["busy_share"] == pytest.approx(before.device["busy_share"], abs=0.001)
    assert after.device["window_ms"] == pytest.approx(before.device["window_ms"], rel=0.001)
    shares = [(row["phase"], row["share"]) for row in before.breakdown]
    for (phase, share), row in zip(shares, after.breakdown, strict=True):
        assert row["phase"] == phase
        assert row["share"] == pytest.approx(share, abs=0.001)
    assert [(f.rule, f.severity) for f in after.findings] == [(f.rule, f.severity) for f in before.findings]
    for one, other in zip(after.findings, before.findings, strict=True):
        assert one.share == pytest.approx(other.share, abs=0.002)
    assert after.steps["count"] == before.steps["count"]
    assert after.steps["median_ms"] == pytest.approx(before.steps["median_ms"], rel=0.001)
    said_of_it = [item for item in after.health if item["id"] in ("implausible-times", "bad-durations")]
    assert len(said_of_it) == 1
    assert "7" in said_of_it[0]["message"]


def test_a_trace_without_device_is_judged_too(tmp_path):
    rows = [row for row in json.loads(planted("op"))["traceEvents"] if row["cat"] not in ("kernel", "cuda_runtime")]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    trace = api.load(path)
    assert int(trace.col("dur_ns").max()) < 10**8
    assert [item.id for item in trace.health] == ["implausible-times"]
