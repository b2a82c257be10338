"""The parts of a comparison: exclusive time, step times, operations counted, matching, noise, rules about pairs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracediag
from tracediag.comparing.compare import compare_runs
from tracediag.comparing.flops import flops
from tracediag.comparing.matching import match
from tracediag.comparing.noise import judge
from tracediag.comparing.opgroups import OpGroup
from tracediag.comparing.pairrulefiles import load_pair_rules
from tracediag.comparing.pairrules import run_pair_rule_tests, run_pair_rules
from tracediag.comparing.parts import Part, recorded_parts
from tracediag.comparing.samework import same_work
from tracediag.comparing.steptime import apportion, unprofiled_time
from tracediag.comparing.sweep import Segments, innermost, sweep
from tracediag.comparing.work import work_of
from tracediag.errors import RuleError
from tracediag.kinds import KINDS
from tracediag.trace import Trace

MS = 1_000_000


def ints(*values: int) -> Any:
    return np.asarray(values, np.int64)


def test_of_all_that_run_at_once_the_first_class_gets_the_time():
    segments = Segments(ints(0, 5, 20), ints(10, 15, 30), ints(3, 1, 3), ints(0, 1, 2))
    pieces = sweep(segments, (ints(0), ints(25)))
    assert (pieces.start.tolist(), pieces.end.tolist(), pieces.code.tolist()) == ([0, 5, 10, 20], [5, 10, 15, 25], [3, 1, 1, 3])
    assert pieces.totals(4).tolist() == [0, 10, 0, 10]
    assert pieces.shares(segments).tolist() == [5.0, 10.0, 5.0]
    assert pieces.at(ints(2, 7, 17, 40)).tolist() == [3, 1, -1, -1]


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 130)), min_size=1, max_size=40)


@given(spans)
@settings(max_examples=200, deadline=None)
def test_the_sweep_is_what_a_loop_over_instants_finds(rows):
    segments = Segments(
        *(np.asarray(column, np.int64) for column in zip(*((s, s + d, c, i) for i, (s, d, c) in enumerate(rows)), strict=True))
    )
    pieces = sweep(segments, (ints(0), ints(70)))
    slow = {t: min((c for s, d, c in rows if s <= t < s + d), default=-1) for t in range(70)}
    assert pieces.at(np.arange(70)).tolist() == [slow[t] for t in range(70)]
    assert pieces.shares(segments).sum() == pytest.approx(pieces.totals(131).sum())


def test_the_innermost_event_has_its_own_time_and_no_other():
    # 0: [0, 100) holds 1: [10, 40) and 2: [40, 60); 1 holds 3: [10, 20)
    begin, stop, row = innermost(ints(0, 10, 40, 10), ints(100, 40, 60, 20), ints(-1, 0, 0, 1))
    assert sorted(zip(begin.tolist(), stop.tolist(), row.tolist(), strict=True)) == [
        (0, 10, 0), (10, 20, 3), (20, 40, 1), (40, 60, 2), (60, 100, 0),
    ]  # fmt: skip


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30), st.integers(0, 10**12))
@settings(max_examples=200, deadline=None)
def test_apportioned_numbers_are_whole_and_add_up(weights, whole):
    shares = apportion(weights, whole)
    assert all(isinstance(share, int) and share >= 0 for share in shares)
    assert sum(shares) == (whole if sum(weights) > 0 else 0)


names = st.sampled_from(
    ["aten::mm", "aten::relu", "aten::add", "aten::to", "aten::empty", "autograd::engine::evaluate_function: MmBackward0"]
)
op = st.fixed_dictionaries(
    {"name": names, "start_ns": st.integers(0, 900), "dur_ns": st.integers(0, 300), "lane": st.sampled_from(["1", "2"])}
)
traces = st.lists(op, min_size=1, max_size=25)


def side(ops: list[dict[str, Any]], walls: list[int] | None = None, **more: Any) -> tuple[Trace, Any]:
    given_: dict[str, Any] = {"ops": ops, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}], **more}
    if walls:
        given_["step_series"] = [{"step": i, "wall_ns": wall, "profiled": False} for i, wall in enumerate(walls)]
    trace = Trace.from_rows(given_)
    return trace, tracediag.explain(trace, select=["float64"])


walls = st.none() | st.lists(st.integers(1, 10**7), min_size=1, max_size=12)


@given(traces, traces, walls, walls)
@settings(max_examples=60, deadline=None)
def test_the_parts_add_up_to_the_difference_and_swapped_sides_mirror_it(ops_a, ops_b, walls_a, walls_b):
    a, b = side(ops_a, walls_a), side(ops_b, walls_b)
    told, back = compare_runs([a], [b], ("a", "b")), compare_runs([b], [a], ("b", "a"))
    for comparison in (told, back):
        whole = round(comparison.step["a_ms"] * MS) - round(comparison.step["b_ms"] * MS)
        assert sum(round(row["delta_ms"] * MS) for row in comparison.difference) == whole == round(comparison.step["delta_ms"] * MS)
        assert sum(round(row["a_ms"] * MS) for row in comparison.difference) == round(comparison.step["a_ms"] * MS)
        assert all(row["kind"] is None or row["kind"] in KINDS for row in comparison.difference)
    forth = {(row["phase"], row["kind"], row["owner"]): row["delta_ms"] for row in told.difference}
    assert forth == {(row["phase"], row["kind"], row["owner"]): -row["delta_ms"] for row in back.difference}


@given(traces)
@settings(max_examples=40, deadline=None)
def test_recorded_time_is_given_out_once(ops):
    trace, _ = side(ops)
    parts = recorded_parts(trace)
    assert int(parts.total.sum()) == 1000
    assert parts.exclusive.sum() <= 1000.001


def test_a_step_of_which_half_is_not_recorded_does_not_count():
    rows = [{"name": "aten::mm", "start_ns": 1000 * i + 100 * j, "dur_ns": 50} for i in range(4) for j in range(1 if i == 3 else 5)]
    steps = [{"step": i, "start_ns": 1000 * i, "end_ns": 1000 * (i + 1)} for i in range(4)]
    parts = recorded_parts(Trace.from_rows({"ops": rows, "steps": steps}))
    assert parts.steps == 3
    assert int(parts.total.sum()) == 3000


def test_device_work_hides_the_host_and_communication_hides_behind_computation():
    rows = [
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 0, "dur_ns": 100},
        {"name": "sgemm", "place": "device", "device": "cuda:0", "lane": "s1", "start_ns": 100, "dur_ns": 400, "launch": 0},
        {"name": "ncclAllReduce", "place": "device", "device": "cuda:0", "lane": "s2", "start_ns": 300, "dur_ns": 400, "launch": 0},
        {"name": "aten::add", "start_ns": 200, "dur_ns": 300},
    ]
    trace, _ = side(rows)
    parts = recorded_parts(trace)
    told = {part: int(ns) for part, ns in zip(parts.classes, parts.total, strict=True) if ns}
    assert sum(ns for part, ns in told.items() if part.kind == "matmul") == 400
    assert sum(ns for part, ns in told.items() if part.kind == "collective") == 200
    assert sum(ns for part, ns in told.items() if part.owner is not None) == 400
    assert sum(told.values()) == 1000


@pytest.mark.parametrize(
    ("name", "ins", "outs", "values", "expected"),
    [
        ("aten::mm", "[[4,8],[8,16]]", None, None, 2 * 4 * 8 * 16),
        ("aten::addmm", "[[16],[4,8],[8,16]]", None, None, 2 * 4 * 8 * 16),
        ("aten::linear", "[[2,4,8],[16,8],[16]]", None, None, 2 * 8 * 8 * 16),
        ("aten::bmm", "[[3,4,8],[3,8,16]]", None, None, 2 * 3 * 4 * 8 * 16),
        ("aten::matmul", "[[8],[8,16]]", None, None, 2 * 8 * 16),
        ("aten::conv2d", "[[2,3,8,8],[16,3,3,3],[16]]", None, '["","","","[1, 1]","[1, 1]","[1, 1]","1"]', 2 * 2 * 16 * 64 * 27),
        ("aten::conv1d", "[[2,18,120],[32,18,7],[]]", None, '["","","","[3]","[3]","[1]","1"]', 2 * 2 * 32 * 40 * 18 * 7),
        ("aten::conv2d", "[[2,3,8,8],[16,3,3,3],[16]]", None, '["","","","[1, 1]","same","[1, 1]","1"]', None),
        ("aten::convolution_backward", "[[2,16,8,8],[2,3,8,8],[16,3,3,3]]", None,
         '["","","","[16]","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","1","[True, True, True]"]', 2 * 2 * 2 * 16 * 64 * 27),
        ("aten::scaled_dot_product_attention", "[[1,8,10,4],[1,8,20,4],[1,8,20,4]]", None, None, 2 * 8 * 10 * 20 * 8),
        ("MatMul", "[[16,64],[16,1]]", "[[64,1]]", None, 2 * 16 * 64),
        ("_FusedMatMul", "[[512,768]]", "[[512,768]]", None, None),
        ("Conv2D", "[[1920,1,18,1],[1,7,1,32]]", "[[1920,1,6,32]]", None, 2 * 1920 * 6 * 32 * 7),
        ("Conv2DBackpropFilter", "[[1920,1,2,48],[4],[1920,1,2,64]]", "[[1,1,48,64]]", None, 2 * 1920 * 2 * 64 * 48),
        ("Conv2DBackpropInput", "[[4],[1,3,48,48],[1920,1,2,48]]", "[[1920,1,2,48]]", None, 2 * 1920 * 2 * 48 * 3 * 48),
        ("aten::mm", None, None, None, None),
        ("aten::mm", "[[4,8],[9,16]]", None, None, None),
        ("aten::relu", "[[4,8]]", None, None, None),
        ("MatMul", "[[null,8],[8,4]]", "[[null,4]]", None, None),
    ],
)  # fmt: skip
def test_operations_follow_from_shapes_or_are_unknown(name, ins, outs, values, expected):
    assert flops(name, ins, outs, values) == expected


def test_an_operator_and_what_it_calls_count_once_and_unknown_products_make_the_sum_unknown():
    rows = [
        {"name": "aten::linear", "start_ns": 0, "dur_ns": 100, "in_shapes": "[[4,8],[16,8],[16]]"},
        {"name": "aten::addmm", "start_ns": 10, "dur_ns": 80, "in_shapes": "[[16],[4,8],[8,16]]"},
    ]
    trace, _ = side(rows)
    assert work_of(trace, recorded_parts(trace)).total == 2 * 4 * 8 * 16
    trace, _ = side([*rows, {"name": "aten::mm", "start_ns": 200, "dur_ns": 500}])
    assert work_of(trace, recorded_parts(trace)).total is None


def test_a_fused_product_of_tensorflow_costs_what_its_gradients_cost():
    rows = [
        {"name": "_FusedMatMul", "label": "model/score/BiasAdd", "start_ns": 0, "dur_ns": 50,
         "in_shapes": "[[4,1],[1]]", "out_shapes": "[[4,1]]"},
        {"name": "MatMul", "label": "gradient_tape/model/score/MatMul/MatMul_1", "start_ns": 100, "dur_ns": 50,
         "in_shapes": "[[4,8],[4,1]]", "out_shapes": "[[8,1]]"},
    ]  # fmt: skip
    trace, _ = side(rows, framework="tensorflow")
    assert work_of(trace, recorded_parts(trace)).total == 2 * (2 * 4 * 8)


def test_work_of_other_batches_is_compared_a_sample():
    def run(batch: int, width: int) -> Any:
        rows = [{"name": "aten::linear", "start_ns": 0, "dur_ns": 100, "in_shapes": f"[[{batch},8],[{width},8],[{width}]]"}]
        series = [{"step": i, "wall_ns": 1000 * batch, "profiled": False, "batch": f"[[{batch},8],[{batch}]]"} for i in range(4)]
        trace = Trace.from_rows({"ops": rows, "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}], "step_series": series})
        return trace, tracediag.explain(trace, select=["float64"])

    told = compare_runs([run(4, 16)], [run(8, 16)], ("a", "b"))
    assert told.step["per"] == "sample"
    assert told.step["ratio"] == 1.0
    assert told.same_work["flops"]["warning"] is None
    assert "samples a step differ" in told.same_work["batch"]["warning"]
    other = compare_runs([run(4, 16)], [run(8, 32)], ("a", "b"))
    assert other.verdict["rule"] == "unequal-work"
    assert "B has 2 times the operations a sample" in other.verdict["text"]
    assert other.same_work["flops"]["products"][0]["op"] == "aten::linear"


def test_bytes_are_those_of_known_inputs_lists_of_tensors_included():
    rows = [
        {"name": "aten::_foreach_add_", "start_ns": 0, "dur_ns": 10, "in_shapes": "[[[4,8],[2]],[]]", "in_dtypes": '["float32",null]'},
        {"name": "aten::add", "start_ns": 20, "dur_ns": 10, "in_shapes": "[[4],[null,2]]", "in_dtypes": '["float64","float32"]'},
    ]
    trace, _ = side(rows)
    assert sum(work_of(trace, recorded_parts(trace)).bytes.values()) == 4 * (4 * 8 + 2) + 8 * 4


def test_parameters_are_those_of_the_model_and_not_the_state_of_an_optimizer():
    rows = [
        {"variable": 0, "numel": 100, "trainable": True, "gradient": "indexed_slices", "layer": None},
        {"variable": 1, "numel": 10, "trainable": True, "gradient": "dense", "layer": "Dense", "optimizer": 0},
        {"variable": 2, "numel": 100, "trainable": True, "gradient": None, "layer": None},
        {"variable": 3, "numel": 7, "trainable": False, "gradient": None, "layer": "BatchNormalization"},
    ]
    trace, _ = side([{"name": "MatMul", "start_ns": 0}], framework="tensorflow", variables=rows)
    work = work_of(trace, recorded_parts(trace))
    assert (work.parameters, work.trainable, work.gradients, work.updated) == (117, 110, 110, 10)


def test_what_a_side_does_not_tell_is_unknown_and_no_warning():
    trace, _ = side([{"name": "aten::relu", "start_ns": 0, "dur_ns": 10}])
    work = work_of(trace, recorded_parts(trace))
    told = same_work(work, replace(work, parameters=5, flops={("forward", "matmul"): 1.0}))
    assert told["parameters"] == {"a": None, "b": 5, "ratio": None, "per": None, "warning": None}
    assert told["flops"]["warning"] is None


def group(name: str, kind: str | None, phase: str = "forward", ns: float = 1.0, **more: Any) -> OpGroup:
    facts: dict[str, Any] = {"shapes": None, "out_shapes": None, "values": None, "dtypes": None, "strides": None, "source": None}
    return OpGroup(Part(phase, kind, None), name, **{**facts, "count": 1.0, "launches": 0.0, "ns": ns, "order": 0, **more})


def met(a: list[OpGroup], b: list[OpGroup]) -> dict[str, tuple[set[str], set[str]]]:
    return {unit.by: ({g.name for g in unit.a}, {g.name for g in unit.b}) for unit in match(a, b)}


def test_a_product_with_its_bias_meets_product_and_bias():
    torch = [group("aten::addmm", "matmul", shapes="[[16],[4,8],[8,16]]")]
    tensorflow = [
        group("MatMul", "matmul", shapes="[[4,8],[8,16]]", out_shapes="[[4,16]]", order=1),
        group("BiasAdd", "elementwise", order=2),
    ]
    assert met(torch, tensorflow) == {"size": ({"aten::addmm"}, {"MatMul", "BiasAdd"})}


def test_a_fused_optimizer_meets_its_primitive_operations():
    fused = [group("aten::_fused_adam_", "optimizer_update", "optimizer")]
    plain = [group(name, "optimizer_update", "optimizer") for name in ("Mul", "AddV2", "Sqrt", "AssignSubVariableOp")]
    assert met(fused, plain) == {"optimizer": ({"aten::_fused_adam_"}, {"Mul", "AddV2", "Sqrt", "AssignSubVariableOp"})}


def test_a_fusion_meets_its_members_and_what_meets_nothing_is_listed():
    fused = [group("fusion.3", "elementwise"), group("aten::sort", "index")]
    plain = [group("Relu", "activation"), group("AddV2", "elementwise")]
    assert met(fused, plain) == {"fusion": ({"fusion.3"}, {"Relu", "AddV2"}), "none": ({"aten::sort"}, set())}


def test_strides_tell_operations_apart():
    a, b = (group("aten::add", "elementwise", shapes="[[4,8]]", strides=strides) for strides in ("[[8,1]]", "[[1,4]]"))
    assert list(met([a], [b])) == ["strides"]
    assert list(met([a], [a])) == ["name"]


def runs(*values: int) -> Any:
    return SimpleNamespace(runs=values)


def test_the_noise_of_several_runs_decides_and_one_run_cannot():
    assert judge(runs(100), runs(200))["change"] == "unknown"
    assert judge(runs(100, 101, 102), runs(200, 202, 203))["change"] == "faster"
    assert judge(runs(200, 202, 203), runs(100, 101, 102))["change"] == "slower"
    assert judge(runs(100, 150, 120), runs(110, 160, 130))["change"] == "none"
    assert judge(runs(100, 200), runs(110, 210))["change"] == "none"


def test_long_steps_are_split_by_their_recorded_cause_and_a_few_others_left_out():
    rows = [{"step": i, "wall_ns": 1000, "profiled": False} for i in range(20)]
    rows[5] = {"step": 5, "wall_ns": 9000, "profiled": False, "compile_ns": 7500}
    rows[9] = {"step": 9, "wall_ns": 6000, "profiled": False}
    trace = Trace.from_rows({"ops": [{"name": "aten::mm"}], "steps": [{"step": 1, "start_ns": 0, "end_ns": 1000}], "step_series": rows})
    time = unprofiled_time(trace)
    assert time is not None
    assert time.usual == 1000
    assert time.long == {"compile_ns": 7500 // 20}
    assert time.ns == 1000 + 7500 // 20
    assert time.left_out == (6000,)


RULES = load_pair_rules()


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_rules_about_pairs_keep_their_own_tests(rule):
    assert [result for result in run_pair_rule_tests([rule]) if result[2]] == []


def test_every_rule_about_pairs_fires_once_and_stays_silent_once():
    assert [rule.id for rule in RULES] == ["jit-no-gain", "unequal-work", "shared-process", "version-regression"]
    for rule in RULES:
        assert {test.expect["fires"] for test in rule.tests} == {True, False}, rule.id


def versioned(version: str, walls: list[int], **flags: Any) -> Any:
    rows = [{"name": "aten::mm", "start_ns": 0, "dur_ns": 900, "in_shapes": "[[4,8],[8,16]]"}]
    run = {"script": "train.py", "framework": "torch", "versions": {"torch": version}, "flags": flags}
    return side(rows, walls, run=run)


def test_a_newer_version_that_is_slower_is_named_and_a_faster_one_is_not():
    old, new = versioned("2.9.1+cpu", [1000, 1010, 990, 1005]), versioned("2.13.0", [1300, 1310, 1290, 1305])
    told = compare_runs([new], [old], ("new", "old"))
    assert told.verdict["rule"] == "version-regression"
    assert "A runs torch 2.13.0 and takes 1.3 times as long as with 2.9.1+cpu" in told.verdict["text"]
    assert {"name": "versions.torch", "a": "2.13.0", "b": "2.9.1+cpu"} in told.settings
    faster = compare_runs([versioned("2.13.0", [700, 710, 690, 705])], [old], ("new", "old"))
    assert faster.verdict["rule"] is None


def test_compiling_that_gains_nothing_is_named():
    plain, compiled = versioned("2.13", [1000, 1010, 990]), versioned("2.13", [1020, 1030, 1010], **{"torch.compile_used": True})
    told = compare_runs([compiled], [plain], ("jit", "plain"))
    assert told.verdict["rule"] == "jit-no-gain"
    assert "A is compiled, B is not" in told.verdict["text"]


def test_one_run_a_side_of_the_same_operations_shows_no_difference_however_long_it_took():
    told = compare_runs([versioned("2.13", [1000, 1010, 990])], [versioned("2.13", [3000, 3010, 2990])], ("a", "b"))
    assert told.verdict["outcome"] == "no-difference"
    assert "B takes 3.0 times as long as A" in told.verdict["text"]
    assert "the noise is not known" in told.verdict["text"]


def test_a_rule_cannot_reach_outside_its_tables():
    with pytest.raises(RuleError, match=r"disabled|not allowed"):
        run_pair_rules([replace(RULES[0], query="SELECT * FROM read_csv('/etc/hostname')", params={})], {})
