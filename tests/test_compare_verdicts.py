"""What a comparison may say: a finding leads where it costs enough, and nothing is told that the two sides do not show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import tracediag
from tracediag.baseline import report_of
from tracediag.comparing.compare import compare_runs
from tracediag.comparing.matching import match
from tracediag.comparing.opgroups import OpGroup
from tracediag.comparing.parts import Part
from tracediag.comparing.verdict import Evidence, verdict
from tracediag.comparing.words import stands
from tracediag.errors import InputError
from tracediag.reports import comparewords, phrases, render_comparison
from tracediag.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

ABSENT: dict[str, Any] = {"ratio": None, "warning": None}


def step(a: float, b: float, **more: Any) -> dict[str, Any]:
    per = {"per": "step"}
    noise = {"known": False, "change": "unknown"}
    ratio = a / b if a and b else None
    told = {
        "basis": "recorded",
        "a_ms": a,
        "b_ms": b,
        "ratio": ratio,
        "per": "step",
        "same_framework": True,
        "noise": noise,
        "a": per,
        "b": per,
    }
    return {**told, **more}


def finding(rule: str, cost: float, severity: str = "high") -> dict[str, Any]:
    return {
        "rule": rule, "title": f"The fault {rule}", "severity": severity, "category": "host", "confidence": "certain", "where": [],
        "ms_per_step": cost,
    }  # fmt: skip


def seen(told: dict[str, Any], found: list[dict[str, Any]], **more: Any) -> Evidence:
    names = ("flops", "forward_flops", "parameters")
    rows = [
        {"what": "forward, matmul", "owner": None, "cause": None, "a_ms": told["a_ms"], "b_ms": told["b_ms"],
         "delta_ms": told["a_ms"] - told["b_ms"]},
    ]  # fmt: skip
    facts: dict[str, Any] = {
        "step": told, "work": dict.fromkeys(names, ABSENT), "findings": {"only_a": found, "only_b": [], "both": []}, "fixes": [],
        "rules": [], "difference": rows, "changed": 1.0, "identical": False, "clear": False, "device_ms": None,
    }  # fmt: skip
    return Evidence(**{**facts, **more})


def test_a_finding_that_costs_little_of_the_difference_does_not_lead():
    small = verdict(seen(step(100.0, 20.0), [finding("small", 6.0, "medium")]))
    assert small["outcome"] == "parts"
    assert "the largest part is forward, matmul" in small["text"]
    large = verdict(seen(step(100.0, 20.0), [finding("small", 6.0), finding("large", 60.0, "medium")]))
    assert (large["rule"], large["outcome"]) == ("large", "finding")
    held = verdict(seen(step(100.0, 20.0), [finding("small", 6.0)], fixes=[{"rule": "small", "held": True, "state": "gone", "title": "x"}]))
    assert held["rule"] == "small"


def test_between_two_frameworks_a_finding_must_cost_more():
    found = [finding("middling", 16.0)]
    assert verdict(seen(step(100.0, 20.0), found, changed=0.2))["rule"] == "middling"
    assert verdict(seen(step(100.0, 20.0), found, changed=1.0))["rule"] is None, "they look like two programs"
    other = verdict(seen(step(100.0, 20.0, same_framework=False), found))
    assert other["rule"] is None
    assert "whether both do the same work is not known" in other["text"]


def test_a_step_is_not_a_recording():
    told = step(100.0, 20.0) | {"b": {"per": "recording"}}
    said = verdict(seen(told, [finding("large", 60.0)]))
    assert said["rule"] is None
    assert "(100 ms a step against 20 ms a recording)" in said["text"]
    assert "B marks no steps, so that its whole recording stands for one" in said["text"]


def test_what_has_no_reason_is_told_beside_a_finding():
    rows = [
        {"what": "steps far longer than usual", "owner": "long_steps", "cause": None, "a_ms": 50.0, "b_ms": 0.0, "delta_ms": 50.0},
        {"what": "optimizer", "owner": None, "cause": None, "a_ms": 50.0, "b_ms": 20.0, "delta_ms": 30.0},
    ]
    said = verdict(seen(step(100.0, 20.0), [finding("large", 30.0)], difference=rows))
    assert said["rule"] == "large"
    assert "50 ms of the 80 ms more lie elsewhere: steps far longer than usual" in said["text"]


def test_a_difference_of_many_parts_names_more_than_one():
    rows = [
        {"what": name, "owner": None, "cause": None, "a_ms": ms, "b_ms": 0.0, "delta_ms": ms}
        for name, ms in (("forward", 30.0), ("backward", 25.0), ("optimizer", 20.0), ("input", 5.0))
    ]
    said = verdict(seen(step(100.0, 20.0), [], difference=rows))["text"]
    assert "the largest part is forward (30 ms of 80 ms), then backward (25 ms) and optimizer (20 ms)" in said


def test_the_same_operations_are_called_so_only_where_they_are_and_settings_are_named():
    settings = ({"name": "env.OMP_NUM_THREADS", "a": "1", "b": None}, {"name": "torch.num_threads", "a": "1", "b": "2"})
    said = verdict(seen(step(30.0, 20.0), [], changed=0.0, settings=settings))
    assert said["outcome"] == "no-difference"
    assert "the same operations" in said["text"]
    assert "env.OMP_NUM_THREADS (1 in A, not set in B) and 1 more setting differ" in said["text"]
    back = verdict(seen(step(20.0, 30.0), [], changed=0.0, settings=({"name": "env.OMP_NUM_THREADS", "a": None, "b": "1"}, settings[1])))
    assert "env.OMP_NUM_THREADS (1 in B, not set in A)" in back["text"]
    assert "operations that differ take 4.0 % of the steps" in verdict(seen(step(30.0, 20.0), [], changed=0.04))["text"]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (0.0, 17.0, "only B shows any time (17 ms)"),
        (17.0, 0.0, "only A shows any time (17 ms)"),
        (0.0, 0.0, "neither side shows any time"),
        (10.0, 10.0, "the two take the same time (10 ms and 10 ms a step)"),
    ],
)
def test_a_side_without_time_is_not_as_fast(a: float, b: float, said: str):
    assert stands(step(a, b)) == said


def test_sides_without_any_time_mirror_each_other():
    def run(duration: int) -> Any:
        trace = Trace.from_rows({"ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": duration}] if duration else []})
        return trace, tracediag.explain(trace, select=["float64"])

    told, back = compare_runs([run(0)], [run(5)], ("a", "b")), compare_runs([run(5)], [run(0)], ("b", "a"))
    assert told.step["ratio"] is back.step["ratio"] is None
    assert "Only B shows any time" in told.verdict["text"]
    assert "Only A shows any time" in back.verdict["text"]
    for form in ("text", "markdown", "html", "json"):
        assert render_comparison(told, form)


def test_a_product_with_a_fused_activation_meets_a_product_and_not_the_pointwise_work():
    def group(name: str, kind: str, order: int, **more: Any) -> OpGroup:
        facts: dict[str, Any] = {"shapes": None, "out_shapes": None, "values": None, "dtypes": None, "strides": None, "source": None}
        return OpGroup(Part("forward", kind, None), name, **{**facts, "count": 1.0, "launches": 0.0, "ns": 1.0, "order": order, **more})

    torch = [group("aten::addmm", "matmul", 0, shapes="[[16],[4,8],[8,16]]"), group("aten::relu", "activation", 1)]
    units = match(torch, [group("_FusedMatMul", "matmul", 0)])
    assert [({g.name for g in unit.a}, {g.name for g in unit.b}) for unit in units] == [({"aten::addmm", "aten::relu"}, {"_FusedMatMul"})]


def test_counts_stay_those_of_a_step_where_times_are_those_of_a_sample():
    def run(batch: int) -> Any:
        rows = [{"name": "aten::linear", "start_ns": 0, "dur_ns": 1000, "in_shapes": f"[[{batch},8],[16,8],[16]]"}]
        series = [{"step": i, "wall_ns": 1000 * batch, "profiled": False, "batch": f"[[{batch},8],[{batch}]]"} for i in range(4)]
        trace = Trace.from_rows({"ops": rows, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}], "step_series": series})
        return trace, tracediag.explain(trace, select=["float64"])

    told = compare_runs([run(4)], [run(16)], ("a", "b"))
    op = told.difference[0]["ops"][0]
    assert [op[side]["count_per_step"] for side in "ab"] == [1, 1]
    assert told.step["a"]["per"] == "sample"


def test_products_that_both_sides_have_are_not_called_those_of_one_side():
    def run(count: int) -> Any:
        rows = [{"name": "aten::mm", "start_ns": 100 * i, "dur_ns": 90, "in_shapes": "[[4,8],[8,16]]"} for i in range(count)]
        trace = Trace.from_rows({"ops": rows, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}]})
        return trace, tracediag.explain(trace, select=["float64"])

    told = compare_runs([run(3)], [run(1)], ("a", "b"))
    assert "A has 3 times the operations" in told.verdict["text"]
    assert "the largest are aten::mm of 4x8, 8x16: 3 a step against 1" in told.verdict["text"]


def test_between_frameworks_nothing_is_gone():
    row = {"rule": "x", "title": "T", "state": "gone", "predicted": None, "measured": 5.0, "alone": True, "held": None}
    assert comparewords.fixed(row, False) == "“T” is found in A only (x)"
    assert "is gone in B" in comparewords.fixed(row, True)


def test_what_a_report_does_not_tell_is_neither_changed_nor_a_setting_that_differs():
    rows = [{"name": "aten::mm", "start_ns": 0, "dur_ns": 900, "in_shapes": "[[4,8],[8,16]]"}]
    run = {"script": "train.py", "framework": "torch", "versions": {"torch": "2.13"}, "flags": {"torch.num_threads": 2}}
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}], "run": run})
    report = tracediag.explain(trace, select=["float64"])
    told = compare_runs([(None, report)], [(trace, report)], ("a", "b"))
    assert told.settings == ()
    assert told.ops["changed_share"] == 0
    text = render_comparison(told, "text")
    assert "hardly any operation" not in text
    assert " only" not in text


def test_markdown_lists_the_operations_of_the_largest_parts():
    def run(duration: int) -> Any:
        rows = [{"name": "aten::mm", "start_ns": 0, "dur_ns": duration, "in_shapes": "[[4,8],[8,16]]", "source": "train.py:7"}]
        trace = Trace.from_rows({"ops": rows, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}]})
        return trace, tracediag.explain(trace, select=["float64"])

    text = render_comparison(compare_runs([run(900)], [run(300)], ("a", "b")), "markdown")
    assert "<summary>Operations of the largest parts</summary>" in text
    assert "1 x `aten::mm 4x8, 8x16`, train.py:7" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", {}),
        ("steps", {"count": 3, "median_ms": "x"}),
        ("steps", {"count": 3, "unprofiled_mean_ms": -5}),
        ("steps", {"count": 3, "median_ms": 1e300}),
        ("breakdown", [{"phase": "forward"}]),
        ("breakdown", [{"phase": "forward", "host_ms": 1, "device_ms": 0, "idle_ms": 0}] * 2),
        ("run", {"devices": 3}),
        ("run", {"versions": "x"}),
        ("schema", "tracediag.report/0"),
    ],
)
def test_a_report_with_parts_that_cannot_be_compared_is_refused(tmp_path: Path, key: str, value: Any):
    trace = Trace.from_rows({"ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": 5}]})
    told = json.loads(tracediag.explain(trace, select=["float64"]).to_json())
    file = tmp_path / "report.json"
    file.write_text(json.dumps(told))
    assert report_of(file) is not None
    file.write_text(json.dumps({**told, key: value}))
    with pytest.raises(InputError, match=r"^report\.json: a broken report") as caught:
        report_of(file)
    assert "\n" not in str(caught.value)


def test_an_axis_that_is_not_known_is_no_word_of_python():
    assert phrases.shapes("[[null, 4], [null]]") == "?x4, ?"
