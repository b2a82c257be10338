import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tracediag.trace import Trace, build_trace


def op(name, start, dur, **more):
    return {"name": name, "start_ns": start, "dur_ns": dur, **more}


def kernel(name, start, dur, launch, **more):
    return op(name, start, dur, place="device", launch=launch, **more)


def call(start, dur, name="cudaLaunchKernel", **more):
    return op(name, start, dur, role="runtime", **more)


def column(frame, name):
    return [None if pd.isna(value) else value for value in frame[name].astype(object)]


STEP = [{"step": 4, "start_ns": 0, "end_ns": 100_000}]


def test_device_work_belongs_to_its_launch_its_operator_and_its_step():
    trace = Trace.from_rows(
        {
            "ops": [op("aten::linear", 10, 900), op("aten::addmm", 100, 500), call(200, 50), kernel("sgemm", 150_000, 70, launch=2)],
            "steps": STEP,
        }
    )
    assert trace.parent[:3].tolist() == [-1, 0, 1]
    assert trace.launch.tolist()[:4] == [-1, -1, -1, 2]
    assert trace.owner.tolist()[:4] == [0, 1, 1, 1]
    assert column(trace.ops, "device_ns")[:4] == [70, 70, 70, None]
    assert column(trace.ops, "step")[:4] == [4, 4, 4, 4]  # the kernel runs after the step, but the step launched it
    assert column(trace.ops, "kind")[:4] == ["matmul", "matmul", "launch", "matmul"]


def test_the_same_correlation_id_in_another_file_is_no_link():
    first = Trace.from_rows({"ops": [op("aten::mm", 0, 100), call(10, 20), kernel("k", 50, 20, launch=1)]})
    assert first.launch.tolist() == [-1, -1, 1]
    both = Trace.from_rows(
        {
            "ops": [
                op("aten::mm", 0, 100, rank=0), call(10, 20, rank=0), kernel("k", 50, 20, launch=1, rank=0),
                op("aten::mm", 0, 100, rank=1), call(10, 20, rank=1), kernel("k", 50, 20, launch=4, rank=1),
            ]
        }
    )  # fmt: skip
    assert both.launch.tolist() == [-1, -1, 1, -1, -1, 4]


def test_markers_make_the_steps():
    steps = [{"step": n, "start_ns": n * 100, "end_ns": n * 100 + 90} for n in (3, 4)]
    trace = Trace.from_rows({"ops": [op("aten::mm", 5, 10)], "steps": steps})
    assert column(trace.steps, "step") == [3, 4]
    assert set(trace.steps["found_by"]) == {"marker"}


def test_a_step_marked_several_times_counts_once():
    marks = [
        op("train", start, dur, role="annotation", step_num=7, lane=lane)
        for start, dur, lane in [(0, 100, "a"), (10, 10, "b"), (30, 10, "c"), (120, 50, "a")]
    ]
    trace = Trace.from_rows({"ops": [*marks, op("aten::mm", 5, 10)]})
    assert list(zip(column(trace.steps, "start_ns"), column(trace.steps, "dur_ns"), strict=True)) == [(0, 100), (120, 50)]


def test_markers_of_ours_win_over_those_of_the_framework():
    rows = [
        op("tracediag_step", 0, 100, role="annotation", step_num=0, lane="a"),
        op("train", 10, 40, role="annotation", step_num=90, lane="b"),
        op("train", 60, 40, role="annotation", step_num=91, lane="b"),
    ]
    assert column(Trace.from_rows({"ops": rows, "framework": "tensorflow"}).steps, "step") == [0]


def test_steps_from_the_ends_of_optimizer_steps():
    rows = [op("Optimizer.step#SGD.step", n * 100 + 50, 10, role="annotation") for n in range(4)]
    trace = Trace.from_rows({"ops": [op("aten::mm", 0, 20), *rows]})
    assert set(trace.steps["found_by"]) == {"optimizer"}
    assert column(trace.steps, "start_ns") == [60, 160, 260]


def test_two_optimizers_make_one_step():
    turns = [(name, n * 100 + at) for n in range(4) for name, at in (("SGD", 50), ("Adam", 70))]
    rows = [op(f"Optimizer.step#{name}.step", start, 10, role="annotation") for name, start in turns]
    assert column(Trace.from_rows({"ops": [op("aten::mm", 0, 5), *rows]}).steps, "start_ns") == [80, 180, 280]


def test_steps_from_the_calls_of_the_function_that_takes_most_time():
    small = [op("norm", n * 100, 5, role="function") for n in range(6)]
    large = [op("train_function", n * 100 + 20, 50, role="function") for n in range(5)]
    trace = Trace.from_rows({"ops": small + large, "framework": "tensorflow"})
    assert set(trace.steps["found_by"]) == {"function"}
    assert column(trace.steps, "start_ns") == [70, 170, 270, 370]


def test_without_steps_the_whole_window_is_one_row():
    trace = Trace.from_rows({"ops": [op("aten::mm", 10, 20), op("aten::mm", 50, 25)]})
    assert not trace.has_steps
    assert column(trace.steps, "found_by") == ["window"]
    assert column(trace.steps, "dur_ns") == [65]
    assert trace.step_stats()["count"] == 0


def test_phases_by_proof_by_parent_and_by_place_in_the_step():
    rows = [
        op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 90, role="annotation"),
        op("aten::stack", 10, 20),
        op("aten::mm", 100, 50),
        op("autograd::engine::evaluate_function: MmBackward0", 200, 100, lane="thread 2"),
        op("aten::mm", 210, 50, lane="thread 2"),
        op("Optimizer.step#SGD.step", 350, 100, role="annotation"),
        op("aten::add_", 360, 20),
        op("aten::mean", 500, 20),
    ]
    trace = Trace.from_rows({"ops": rows, "steps": STEP})
    wanted = ["input", "input", "forward", "backward", "backward", "optimizer", "optimizer", "other"]
    assert column(trace.ops, "phase")[:8] == wanted
    assert column(trace.ops, "kind")[6] == "optimizer_update"


def test_device_work_takes_the_phase_of_its_launch():
    rows = [op("autograd::engine::evaluate_function: X", 0, 100), call(10, 20), kernel("k", 300, 20, launch=1)]
    rows.append(op("nccl", 400, 9, place="device"))
    assert column(Trace.from_rows({"ops": rows, "steps": STEP}).ops, "phase")[2:4] == ["backward", "comm"]


def gaps(rows, **more):
    frame = Trace.from_rows({"ops": rows, **more}).gaps
    return [(o, s, d) for o, s, d in zip(frame["owner"].astype(object), frame["start_ns"], frame["dur_ns"], strict=True)]


def test_idle_time_is_cut_at_the_launch_that_ends_it_and_given_to_what_the_host_does():
    rows = [
        op("aten::mm", 0, 300), call(100, 50), kernel("a", 160, 40, launch=1),
        op("enumerate(DataLoader)#_Iter.__next__", 400, 100, role="annotation"),
        call(520, 30, name="cudaStreamSynchronize"),
        op("aten::mm", 600, 300), call(700, 50), kernel("b", 770, 30, launch=6),
    ]  # fmt: skip
    assert gaps(rows, steps=[{"step": 0, "start_ns": 0, "end_ns": 800}]) == [
        ("op", 0, 100),
        ("launch", 100, 50),
        ("queue", 150, 10),
        ("op", 200, 100),
        ("python", 300, 100),
        ("input", 400, 100),
        ("python", 500, 20),
        ("sync", 520, 30),
        ("python", 550, 50),
        ("op", 600, 100),
        ("launch", 700, 50),
        ("queue", 750, 20),
    ]


def test_a_launch_call_of_over_a_millisecond_is_named_apart():
    rows = [call(100, 2_000_000), kernel("a", 2_000_200, 40, launch=0)]
    assert ("long_launch", 100, 2_000_000) in gaps(rows, steps=[{"step": 0, "start_ns": 0, "end_ns": 2_000_240}])


def test_work_launched_out_of_sight_leaves_its_idle_time_to_what_the_host_does_then():
    rows = [
        op("enumerate(DataLoader)#_Iter.__next__", 10, 80, role="annotation"),
        op("a", 100, 20, place="device"),
        call(130, 10), kernel("b", 150, 10, launch=2),
    ]  # fmt: skip
    assert gaps(rows, steps=[{"step": 0, "start_ns": 0, "end_ns": 160}])[:3] == [("unknown", 0, 10), ("input", 10, 80), ("unknown", 90, 10)]


def test_gaps_fill_exactly_what_the_device_leaves_of_the_steps():
    rows = [op("aten::mm", 0, 300), call(100, 50), kernel("a", 160, 40, launch=1), kernel("b", 170, 100, launch=1, lane="stream 8")]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 500}]})
    assert trace.gaps["dur_ns"].sum() + 110 == 500


def test_without_a_device_the_gaps_are_the_time_of_the_steps_without_operators():
    rows = [op("aten::mm", 10, 30), op("train.py(7): log", 40, 50, role="python"), op("aten::mm", 90, 10)]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100}]})
    assert list(zip(trace.gaps["start_ns"], trace.gaps["dur_ns"], strict=True)) == [(0, 10), (40, 50)]
    assert column(trace.gaps, "device") == ["host", "host"]
    assert column(trace.gaps, "op_id")[1] == 1


def test_a_rank_without_steps_is_left_out_and_breaks_nothing():
    rows = [
        op("aten::mm", 0, 100, rank=0), call(10, 10, rank=0), kernel("k", 30, 20, launch=1, rank=0),
        op("aten::mm", 0, 100, rank=1), call(10, 10, rank=1), kernel("k", 30, 50, launch=4, rank=1),
    ]  # fmt: skip
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100, "rank": 1}]})
    assert column(trace.gaps, "rank") == [1] * len(trace.gaps)
    assert trace.device_stats()["devices"] == 2
    rows = [row for row in rows if row["name"] == "aten::mm"]
    host = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 150, "rank": 1}]})
    assert list(zip(column(host.gaps, "rank"), host.gaps["start_ns"], host.gaps["dur_ns"], strict=True)) == [(1, 100, 50)]


def test_python_frames_give_lines_to_forward_and_backward():
    rows = [
        op("train.py(12): forward", 0, 100, role="python"),
        op("/env/lib/python3.11/site-packages/torch/nn/linear.py(99): forward", 10, 80, role="python"),
        op("aten::mm", 20, 30, sequence=5),
        op("autograd::engine::evaluate_function: MmBackward0", 200, 50, lane="thread 2", sequence=5),
        op("aten::mm", 210, 20, lane="thread 2"),
    ]
    assert column(Trace.from_rows({"ops": rows}).ops, "source")[2:5] == ["train.py:12"] * 3


def test_recorded_sources_fill_by_name_shape_and_ordinal():
    rows = [op("aten::mm", 0, 10, in_shapes=[[2, 2]]), op("aten::mm", 20, 10, in_shapes=[[2, 2]]), op("aten::mm", 40, 10, in_shapes=[[9]])]
    rows.append(op("aten::child", 21, 5))
    run = {"sources": [["aten::mm", "[[2,2]]", 0, "a.py:1"], ["aten::mm", "[[2,2]]", 1, "a.py:2"], ["aten::mm", "[[9]]", -1, "a.py:3"]]}
    assert column(Trace.from_rows({"ops": rows, "run": run}).ops, "source")[:4] == ["a.py:1", "a.py:2", "a.py:3", "a.py:2"]


def cats(*lengths):
    return [op("aten::cat", 20 * i, 10, in_shapes=[[[n, 8], [4, 8]]]) for i, n in enumerate(lengths)]


def cat_line(length, line, width=8):
    return ["aten::cat", f"[[[{length},{width}],[4,8]]]", -1, line]


def test_a_line_seen_with_two_lengths_stands_for_other_lengths():
    run = {"sources": [cat_line(16, "a.py:1"), cat_line(20, "a.py:1"), cat_line(4, "a.py:2", 1), cat_line(5, "a.py:2", 1)]}
    assert column(Trace.from_rows({"ops": cats(16, 24, 400), "run": run}).ops, "source") == ["a.py:1"] * 3


@pytest.mark.parametrize(
    "sources",
    [
        [cat_line(16, "a.py:1")],  # seen once: what varies is not known
        [cat_line(16, "a.py:1"), cat_line(20, "a.py:1"), cat_line(17, "a.py:2"), cat_line(21, "a.py:2")],  # two lines fit
        [cat_line(16, "a.py:1", 9), cat_line(20, "a.py:1", 9)],  # another width
    ],
)
def test_a_length_that_no_line_or_two_lines_fit_has_no_line(sources):
    assert column(Trace.from_rows({"ops": cats(24), "run": {"sources": sources}}).ops, "source") == [None]


def test_an_exact_ordinal_wins_over_the_line_for_any():
    rows = [op("aten::mm", 0, 10), op("aten::mm", 20, 10)]
    run = {"sources": [["aten::mm", None, -1, "a.py:9"], ["aten::mm", None, 1, "a.py:2"]]}
    assert column(Trace.from_rows({"ops": rows, "run": run}).ops, "source") == ["a.py:9", "a.py:2"]


def test_graphs_of_the_run_give_shapes_and_lines_to_tensorflow_nodes():
    strings = ["[[4,8]]", '["float32"]', "[[4]]", "train.py:31"]
    node = ["dense/MatMul", "MatMul", 0, 1, 2, 1, 3]
    rows = [
        op("MatMul", 0, 10, label="StatefulPartitionedCall/dense/MatMul"),
        op("MatMul", 20, 10, label="dense/MatMul", in_shapes=[[7]]),
        op("MatMul", 40, 10, label="other/MatMul"),
    ]
    run = {"graphs": {"strings": strings, "step": {"nodes": [node]}}}
    frame = Trace.from_rows({"ops": rows, "framework": "tensorflow", "run": run}).ops
    assert column(frame, "in_shapes") == ["[[4,8]]", "[[7]]", None]
    assert column(frame, "out_shapes") == ["[[4]]", "[[4]]", None]
    assert column(frame, "source") == ["train.py:31", "train.py:31", None]


def test_nodes_of_one_name_keep_what_their_graphs_agree_on():
    strings = ["[[4]]", "[[8]]", "t.py:1"]
    graphs = {"strings": strings, **{name: {"nodes": [["m", "MatMul", code, None, 0, None, 2]]} for name, code in (("a", 0), ("b", 1))}}
    frame = Trace.from_rows({"ops": [op("MatMul", 0, 1, label="m")], "framework": "tensorflow", "run": {"graphs": graphs}}).ops
    assert column(frame, "in_shapes") == [None]
    assert column(frame, "out_shapes") == ["[[4]]"]
    assert column(frame, "source") == ["t.py:1"]


def test_a_function_traced_for_several_shapes_has_the_shapes_of_the_graph_called_last():
    strings = ["[[4]]", "[[8]]"]
    graphs = {"strings": strings, **{f"__inference_step_{n}": {"nodes": [["m", "MatMul", n, None, n, None, None]]} for n in (0, 1)}}
    rows = [
        op("MatMul", 0, 10, label="m"),
        op("__inference_step_1", 100, 50, role="function"),
        op("MatMul", 110, 10, label="StatefulPartitionedCall/m"),
        op("__inference_step_0", 200, 50, role="function"),
        op("MatMul", 210, 10, label="StatefulPartitionedCall/m"),
    ]
    frame = Trace.from_rows({"ops": rows, "framework": "tensorflow", "run": {"graphs": graphs}}).ops
    assert [column(frame, "in_shapes")[row] for row in (0, 2, 4)] == [None, "[[8]]", "[[4]]"]


def test_facts_of_the_run_become_rows():
    run = {
        "step_series": {"wall_ns": [5, 6], "profiled": [0, 1], "batch": [0, None], "compiles": None},
        "batches": ["[[4]]"],
        "params": [{"name": "w", "numel": 3}],
        "flags": {"torch.num_threads": 2},
        "versions": {"torch": "2"},
        "environment": {"OMP_NUM_THREADS": "1"},
    }
    trace = Trace.from_rows({"ops": [op("aten::mm", 0, 1)], "run": run})
    assert trace.series[["step", "wall_ns", "batch"]].astype(object).to_numpy().tolist()[0] == [0, 5, "[[4]]"]
    assert trace.frames["params"]["param"].tolist() == [0]
    flags = dict(trace.frames["flags"].to_numpy().tolist())
    assert flags == {"torch.num_threads": "2", "versions.torch": '"2"', "env.OMP_NUM_THREADS": json.dumps("1")}
    assert trace.has("params") and trace.has("params.numel") and not trace.has("params.dtype") and not trace.has("optimizers")


def test_memory_lies_in_its_step():
    memory = [{"t_ns": 5, "bytes": 64}, {"t_ns": 500_000, "bytes": -64}]
    trace = Trace.from_rows({"ops": [op("aten::mm", 0, 10)], "steps": STEP, "memory": memory})
    assert column(trace.memory, "step") == [4, None]
    assert column(trace.memory, "allocated") == [None, None]


def test_files_of_several_days_each_start_at_zero():
    from tracediag.rowtrace import _expand, _raw

    raw = _raw(_expand([op("aten::mm", 0, 10)]), "torch", None)
    late = replace(raw, start_ns=raw.start_ns + 400 * 86_400 * 10**9)
    assert build_trace([raw, late]).start.tolist() == [0, 0]
    soon = replace(raw, start_ns=raw.start_ns + 50)
    assert build_trace([soon, raw]).start.tolist() == [50, 0]


@pytest.mark.parametrize("given", [{}, {"ops": []}, {"ops": [], "steps": STEP}])
def test_a_trace_of_nothing_is_whole(given):
    trace = Trace.from_rows(given)
    assert trace.device_stats() is None
    assert sum(row["share"] for row in trace.breakdown()) in (0, 1)
    assert np.isfinite(trace.step_stats()["count"])
    assert len(trace.gaps) == len(trace.steps) * bool(given.get("steps"))
    assert trace.health
    assert len(trace.sql("SELECT * FROM ops")) == len(trace)


def test_a_trace_too_long_to_pack_keeps_its_owners():
    """Times near the end of int64, as broken files have them."""
    late = 2**61
    rows = [op("aten::idle", 0, 10, lane=f"thread {n}") for n in range(9)]
    rows += [op("aten::mm", late, 300, lane="main"), call(late + 100, 50, lane="main"), kernel("a", late + 160, 40, launch=10)]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": late, "end_ns": late + 200}]})
    found = zip(column(trace.gaps, "owner"), column(trace.gaps, "op_id"), strict=True)
    assert list(found) == [("op", 9), ("launch", 10), ("queue", 10)]
    far = [op("train", n * 2**58, 100, role="annotation", step_num=n, lane="a") for n in range(30)]
    again = [op("train", n * 2**58 + 10, 10, role="annotation", step_num=n, lane="b") for n in range(30)]
    assert len(Trace.from_rows({"ops": far + again}).steps) == 30


def two_windows(rows, pause=60 * 10**9):
    """One rank recorded twice: the same rows, and again after a pause in which nothing was recorded."""
    from tracediag.rowtrace import _expand, _raw

    raw = _raw(_expand(rows), "torch", None)
    raw = replace(raw, start_ns=raw.start_ns + 10**18)
    return build_trace([raw, replace(raw, start_ns=raw.start_ns + pause)])


def test_no_step_spans_the_pause_between_two_windows():
    rows = [op("Optimizer.step#SGD.step", n * 100 + 50, 10, role="annotation") for n in range(4)]
    trace = two_windows([op("aten::mm", 0, 20), *rows])
    assert set(trace.steps["found_by"]) == {"optimizer"}
    assert column(trace.steps, "dur_ns") == [100] * 6


def test_the_pause_between_two_windows_is_no_idle_time():
    rows = [op("aten::mm", 0, 100), call(10, 10), kernel("k", 30, 50, launch=1)]
    rows[2]["launch"] = None
    trace = two_windows(rows)
    assert column(trace.steps, "dur_ns") == [100, 100]
    assert trace.device_stats()["busy_share"] == 0.5
    marks = [op("ProfilerStep#0", 0, 100, role="annotation", lane="steps", step_num=0)]
    marked = two_windows([*rows, *marks])
    assert marked.device_stats()["busy_share"] == 0.5
    assert marked.device_stats()["window_ms"] == 0.0002


def test_files_given_in_any_order_have_their_steps_in_order_of_time():
    from tracediag.rowtrace import _expand, _raw

    raw = _raw(_expand([op("aten::mm", 0, 50), op("s", 0, 100, role="annotation", lane="steps", step_num=3)]), "torch", None)
    late = replace(raw, start_ns=raw.start_ns + 1000)
    trace = build_trace([late, raw])
    assert column(trace.steps, "start_ns") == [0, 1000]
    assert trace.step_row.tolist() == [1, 1, 0, 0]
