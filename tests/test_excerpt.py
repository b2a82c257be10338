"""The excerpt of a trace for a page: which stretch, which events, and that nothing is left out in silence."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracediag import api, excerpt
from tracediag.excerpt.marks import runs
from tracediag.excerpt.thinning import largest, thin
from tracediag.excerpt.timeline import MAX_TEXT, depths
from tracediag.excerpt.window import choose
from tracediag.rules import load_rules
from tracediag.trace import Trace

RECORDED = Path(__file__).resolve().parents[1] / "fixtures"
MS = 1_000_000


def gpu(steps=5, **more):
    """Steps of 10 ms (the third takes 11): an operator, a call that launches a kernel, and the kernel."""
    ops, marks, at = [], [], 0
    for step in range(steps):
        long = 11 if step == 2 else 10
        marks.append({"step": step, "start_ns": at, "end_ns": at + long * MS})
        first = len(ops)
        ops += [
            {"name": "aten::mm", "lane": "1/1", "start_ns": at, "dur_ns": 4 * MS, "in_shapes": "[[8,8],[8,8]]"},
            {"name": "cudaLaunchKernel", "role": "runtime", "lane": "1/1", "start_ns": at + MS, "dur_ns": MS},
            {"name": "sgemm", "place": "device", "device": "cuda:0", "lane": "gpu 0 stream 7", "start_ns": at + 5 * MS, "dur_ns": 2 * MS,
             "launch": first + 1},
        ]  # fmt: skip
        at += long * MS
    return Trace.from_rows({"ops": ops, "steps": marks, **more})


def seen(trace, **choice):
    found = api._run(trace, load_rules(tests=False), **choice)
    return excerpt.excerpt(trace, [claim for _, claim in found.pairs]), found


def names(made, column="name"):
    return [made["strings"][code] if code >= 0 else None for code in made["events"][column]]


def spread(runs):
    return [place for first, length in zip(runs[::2], runs[1::2], strict=True) for place in range(first, first + length)]


def starts(made):
    return np.cumsum(made["events"]["start"]).tolist()


def test_the_median_step_and_its_neighbours_are_shown():
    made, _ = seen(gpu())
    assert [step["number"] for step in made["steps"]] == [0, 1, 2]
    assert made["window"] == {
        "start_ns": 0,
        "length_ns": 31 * MS,
        "rank": None,
        "ranks": 1,
        "all_steps": 5,
        "trace_ns": made["window"]["trace_ns"],
    }
    assert names(made).count("sgemm") == 3
    assert made["left_out"] == {"events": 0, "of": len(names(made)), "shorter_ns": None, "lanes": 0, "gaps": 0}


def test_the_median_step_stands_alone_where_its_neighbours_would_be_too_much():
    window = choose(gpu(), 7)
    assert len(window.steps) == 1
    assert window.end - window.start == 10 * MS


def test_a_kernel_knows_its_launch_and_a_call_its_depth():
    made, _ = seen(gpu())
    kernel, call = names(made).index("sgemm"), names(made).index("cudaLaunchKernel")
    assert made["events"]["launch"][kernel] == call
    assert [lane["device"] for lane in made["lanes"]][:2] == ["cuda:0", None]
    depth = dict(zip(names(made), made["events"]["depth"], strict=True))
    assert depth["aten::mm"] < depth["cudaLaunchKernel"]
    assert names(made, "in")[names(made).index("aten::mm")] == "[[8,8],[8,8]]"
    assert made["events"]["label"] is None


def test_phases_cover_each_instant_once_and_idle_time_has_owners():
    made, _ = seen(gpu())
    phases = made["phases"]
    assert sum(phases["dur"]) == made["window"]["length_ns"]
    ends = np.add(phases["start"], phases["dur"]).tolist()
    assert phases["start"] == [0, *ends[:-1]]
    gaps = made["gaps"]
    assert gaps["tracks"] == ["cuda:0"]
    assert sum(gaps["dur"]) + 3 * 2 * MS == 31 * MS
    assert {gaps["owners"][owner] for owner in gaps["owner"]} <= set(gaps["owners"])


@pytest.mark.parametrize("name", ["torch-unfused-adam", "tf-retrace-shape"])
def test_a_recorded_run(name):
    trace = api.load(RECORDED / name / "slow")
    made, found = seen(trace)
    assert len(made["marks"]) == len(found.findings) >= 1
    first = made["marks"][0]
    assert first["events"]
    assert first["dur"]
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    owned = sum(first["dur"]) / sum(step["dur"] for step in made["steps"])
    assert owned == pytest.approx(found.findings[0].share, abs=0.1)
    events = made["events"]
    lanes = {(lane, depth): [] for lane, depth in zip(events["lane"], events["depth"], strict=True)}
    for lane, depth, start, dur in zip(events["lane"], events["depth"], starts(made), events["dur"], strict=True):
        lanes[lane, depth].append((start, start + dur))
    for boxes in lanes.values():  # one row of the picture: no box on another
        assert boxes == sorted(boxes)
        assert all(end <= start for (_, end), (start, _) in pairwise(boxes))


def test_the_shortest_events_are_left_out_and_it_is_said(monkeypatch):
    monkeypatch.setattr(excerpt, "MAX_EVENTS", 600)
    rows = [{"name": f"op{i}", "lane": "1/1", "start_ns": i * 10_000, "dur_ns": 100 + i} for i in range(1000)]
    made, _ = seen(Trace.from_rows({"ops": rows}))
    assert made["left_out"]["events"] == 400
    assert made["left_out"]["of"] == 1000
    assert made["left_out"]["shorter_ns"] == 500
    assert min(made["events"]["dur"]) == 500


def test_long_names_do_not_make_it_large(monkeypatch):
    monkeypatch.setattr(excerpt, "MAX_BYTES", 200_000)
    rows = [{"name": f"{i} " + "x" * 5000, "lane": "1/1", "start_ns": i * 10, "dur_ns": 5} for i in range(3000)]
    made, _ = seen(Trace.from_rows({"ops": rows}))
    assert len(json.dumps(made, separators=(",", ":"))) < 400_000  # the operations' own names besides
    assert max(map(len, made["strings"])) <= MAX_TEXT
    assert made["left_out"]["events"] > 0


def test_operations_are_means_of_the_steps():
    ops = seen(gpu())[0]
    table, text = ops["ops"], ops["strings"]
    row = [text[code] for code in table["name"]].index("sgemm")
    assert (table["count"][row], table["steps"], table["self"][row]) == (5, 5, 10 * MS)
    assert text[table["place"][row]] == "device"


def test_steps_and_memory_over_time():
    made, _ = seen(gpu())
    assert made["series"] == {
        "step": [0, 1, 2, 3, 4],
        "wall": [n * MS for n in (10, 10, 11, 10, 10)],
        "profiled": [1] * 5,
        "whole": False,
        "of": 5,
    }
    assert made["memory"] == []
    memory = [{"t_ns": i * MS, "bytes": size, "device": "cuda:0"} for i, size in enumerate([1 << 20, 1 << 19, -(1 << 20)])]
    series = [{"step": i, "wall_ns": i + 1, "profiled": i == 1} for i in range(3)]
    made, _ = seen(gpu(memory=memory, step_series=series))
    assert made["series"]["whole"]
    assert made["series"]["profiled"] == [0, 1, 0]
    assert [(one["name"], one["allocated"], one["counted"]) for one in made["memory"]] == [("cuda:0", [1 << 20, 3 << 19, 1 << 19], True)]


def test_no_step_and_no_event():
    made, _ = seen(Trace.from_rows({"ops": [{"name": "a", "start_ns": 5, "dur_ns": 10}]}))
    assert made["steps"] == []
    assert made["window"]["length_ns"] == 10
    assert made["series"] is None
    made, _ = seen(Trace.from_rows({"ops": []}))
    assert made["events"]["lane"] == []


def test_one_rank_of_several_is_shown_on_its_own_time_line():
    both = [{**row, "rank": rank} for rank in (0, 1) for row in [{"name": "aten::mm", "lane": "1/1", "start_ns": 0, "dur_ns": 5}]]
    made, _ = seen(Trace.from_rows({"ops": both}))
    assert made["window"]["ranks"] == 2
    assert made["window"]["rank"] == 0
    assert [lane["name"] for lane in made["lanes"]] == ["1/1"]
    assert len(made["events"]["lane"]) == 1


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=300), st.integers(10, 60))
def test_thinned_values_keep_both_extremes_and_both_ends(values, most):
    array = np.asarray(values, np.int64)
    kept = thin(array, most)
    assert len(kept) <= max(most, 10)
    assert (np.diff(kept) > 0).all()
    assert {int(array.min()), int(array.max())} <= set(array[kept].tolist())
    assert (kept[0], kept[-1]) == (0, len(values) - 1)


def test_a_finding_has_what_its_operators_launched_and_the_owners_of_its_gaps():
    trace = gpu()
    operators = np.flatnonzero(trace.strings("name").isin(["aten::mm"]))
    claim = SimpleNamespace(op_ids=operators[1:2], gap_ids=np.zeros(0, np.int64), spans=trace.subtree_claim(operators[1:2]))
    made = excerpt.excerpt(trace, [claim])
    mark = made["marks"][0]
    assert sorted(names(made)[i] for i in spread(mark["events"])) == ["aten::mm", "cudaLaunchKernel", "sgemm"]
    owned = [(start, start + dur) for start, dur in zip(mark["start"], mark["dur"], strict=True)]
    assert any(start <= 15 * MS and end >= 17 * MS for start, end in owned)  # the kernel of the second step
    assert mark["gaps"]
    gap = np.flatnonzero(trace.gap_table.host >= 0)[:1]
    made = excerpt.excerpt(trace, [SimpleNamespace(op_ids=operators[:0], gap_ids=gap, spans=trace.gap_claim(gap))])
    assert len(spread(made["marks"][0]["gaps"])) == len(spread(made["marks"][0]["events"])) == 1


def test_many_streams_do_not_crowd_out_the_threads():
    rows = [
        {"name": "k", "place": "device", "device": f"cuda:{i % 8}", "lane": f"gpu {i % 8} stream {i}", "dur_ns": 100 + i} for i in range(40)
    ]
    rows += [{"name": "aten::mm", "lane": f"1/{i}", "dur_ns": 10 + i} for i in range(12)]
    made, _ = seen(Trace.from_rows({"ops": rows}))
    assert made["left_out"]["lanes"] == 28
    devices = [lane["device"] for lane in made["lanes"]]
    assert (len(devices), devices.count(None)) == (24, 8)
    assert devices.index(None) == 16  # threads stand below
    assert [one for i, one in enumerate(devices) if one != (devices[i - 1] if i else "")][:9] == [*dict.fromkeys(devices)]


def test_events_that_overlap_without_nesting_do_not_go_ever_deeper():
    chain = [(10 * i, 10 * i + 11) for i in range(50)]
    assert max(depths([0] * 50, [a for a, _ in chain], [b for _, b in chain])) == 1
    assert depths([0, 0, 0, 0, 1], [0, 0, 2, 6, 0], [10, 5, 3, 9, 1]) == [0, 1, 2, 1, 0]


def test_of_equal_events_those_that_are_kept_lie_over_the_whole_window():
    kept = largest(np.ones(10_000), 500)
    assert len(kept) == 500
    assert np.bincount(kept // 1000, minlength=10).min() > 40
    assert largest(np.asarray([3, 1, 2, 5]), 2).tolist() == [0, 3]


@given(st.sets(st.integers(0, 50)))
def test_runs_hold_the_same_numbers(places):
    ordered = sorted(places)
    assert spread(runs(np.asarray(ordered, np.int64))) == ordered
