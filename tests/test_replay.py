"""Properties of the replay: nothing removed changes nothing, more removed is never longer, edges hold, order and origin do not matter."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_samples import MS, US, device_bound, launch, two_ranks

from tracediag.depgraph import build_graph
from tracediag.edits import Edit, combined, untouched
from tracediag.meetings import meetings
from tracediag.replay import replay, replay_ranks
from tracediag.trace import Trace
from tracediag.waits import Hold, Meet, Wait, Wake


def only(given, **edit):
    """Replayed step times of the untouched graph and of one edit, the edit's parts as keywords."""
    trace = Trace.from_rows(given)
    graph = build_graph(trace, int(trace.step_table.rank[0]))
    plain = untouched(graph)
    return replay(trace, graph, [plain, replace(plain, **edit)])


def kernels(given, name):
    trace = Trace.from_rows(given)
    graph = build_graph(trace, int(trace.step_table.rank[0]))
    names = trace.strings("name").to_objects()
    return np.asarray([names[row] == name for row in graph.work.row], float)


def test_an_untouched_replay_gives_the_recorded_steps():
    found = only(device_bound())
    assert np.allclose(found.replayed[0], found.recorded, rtol=0.02)
    assert np.allclose(found.host_replayed[0], found.host_recorded, rtol=0.02)


def test_a_kernel_that_the_host_waits_for_shortens_the_step():
    given_ = device_bound()
    found = only(given_, shrink=kernels(given_, "kernel_mm"))
    assert np.allclose(found.replayed[0] - found.replayed[1], 400 * US, atol=15 * US)


def test_without_the_wait_the_replay_is_too_short_so_that_calibration_can_fail():
    given_ = device_bound()
    for row in given_["ops"]:
        if row.get("place") == "device":
            row["dur_ns"] //= 100  # what the host waits for is not in the trace
    found = only(given_)
    assert (found.replayed[0] < 0.5 * found.recorded).all()


def test_host_time_beside_a_busy_device_saves_nothing_and_beside_an_idle_one_all():
    given_ = device_bound()
    span = (np.asarray([0, MS, 2 * MS]) + 11 * US, np.asarray([0, MS, 2 * MS]) + 20 * US)
    found = only(given_, host={0: ((span, 1.0),)})
    assert np.allclose(found.replayed[1], found.replayed[0], atol=2 * US)
    host_bound = device_bound()
    for row in host_bound["ops"]:
        if row.get("place") == "device":
            row["dur_ns"] = 2 * US
        elif row["name"] == "cudaDeviceSynchronize":
            row |= {"name": "cudaStreamIsCapturing", "dur_ns": US}
    part = (np.asarray([0, MS, 2 * MS]) + 30 * US, np.asarray([0, MS, 2 * MS]) + 530 * US)
    found = only(host_bound, host={0: ((part, 1.0),)})
    assert np.allclose(found.replayed[0] - found.replayed[1], 500 * US, atol=5 * US)


def test_backward_on_another_thread_waits_for_forward_and_the_optimizer_for_backward():
    rows, steps = [], []
    for n in range(3):
        t = n * MS
        rows += [
            {"name": "aten::forward", "start_ns": t, "dur_ns": 300 * US, "lane": "main"},
            {"name": "aten::backward", "start_ns": t + 320 * US, "dur_ns": 400 * US, "lane": "autograd"},
            {"name": "aten::step", "start_ns": t + 750 * US, "dur_ns": 200 * US, "lane": "main"},
        ]
        steps.append({"step": n, "start_ns": t, "end_ns": t + MS})
    trace = Trace.from_rows({"ops": rows, "steps": steps})
    graph = build_graph(trace, -1)
    assert len(graph.lanes) == 2
    assert sum(isinstance(join, Wake) for join in graph.joins) >= 5
    lane = next(i for i, code in enumerate(graph.lanes) if trace.strings("lane").values[code] == "autograd")
    starts = np.asarray([0, MS, 2 * MS]) + 320 * US
    plain = untouched(graph)
    cut = Edit({lane: (((starts, starts + 400 * US), 0.5),)}, (), plain.shrink, plain.gaps)
    found = replay(trace, graph, [plain, cut])
    assert np.allclose(found.replayed[0], found.recorded)
    assert np.allclose(found.replayed[0] - found.replayed[1], 200 * US)


def test_the_first_event_of_a_thread_comes_earlier_when_the_thread_that_woke_it_does():
    rows = [
        {"name": "aten::forward", "start_ns": 0, "dur_ns": 300 * US, "lane": "main"},
        {"name": "aten::backward", "start_ns": 320 * US, "dur_ns": 400 * US, "lane": "autograd"},
        {"name": "aten::step", "start_ns": 750 * US, "dur_ns": 200 * US, "lane": "main"},
    ]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": MS}]})
    graph = build_graph(trace, -1)
    lane = next(i for i, code in enumerate(graph.lanes) if trace.strings("lane").values[code] == "main")
    plain = untouched(graph)
    cut = Edit({lane: (((np.asarray([0]), np.asarray([300 * US])), 0.5),)}, (), plain.shrink, plain.gaps)
    found = replay(trace, graph, [plain, cut])
    assert np.allclose(found.replayed[0] - found.replayed[1], 150 * US)


def test_a_stream_waits_for_another_stream():
    rows = launch("aten::mm", 0, 10 * US, 10 * US, 500 * US, at=0)
    rows += launch("aten::nccl", 10 * US, 10 * US, 511 * US, 200 * US, at=3, stream="stream 20")
    rows.append({"name": "cudaDeviceSynchronize", "role": "runtime", "start_ns": 30 * US, "dur_ns": 685 * US})
    given_ = {"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 720 * US}]}
    trace = Trace.from_rows(given_)
    graph = build_graph(trace, -1)
    assert any(isinstance(join, Hold) for join in graph.joins)
    found = only(given_, shrink=kernels(given_, "kernel_mm"))
    assert np.allclose(found.replayed[0] - found.replayed[1], 500 * US, atol=15 * US)


@st.composite
def recordings(draw):
    """A few steps of launches on two threads and two streams with synchronising calls between: consistent in time, otherwise any."""
    rows, steps, clock, free = [], [], 0, [0, 0]
    for n in range(draw(st.integers(1, 3))):
        begin = clock
        for _ in range(draw(st.integers(1, 6))):
            lane = draw(st.sampled_from(["main", "autograd"]))
            clock += draw(st.integers(0, 200)) * US
            if draw(st.booleans()):
                stream = draw(st.integers(0, 1))
                length = draw(st.integers(1, 300)) * US
                start = max(clock + 6 * US, free[stream] + US)
                rows += launch("aten::mm", clock, 10 * US, start, length, at=len(rows), lane=lane, stream=f"stream {stream}")
                free[stream] = start + length
                clock += 10 * US
            elif draw(st.booleans()):
                end = max(clock + 5 * US, *(f + 3 * US for f in free))
                rows.append({"name": "cudaDeviceSynchronize", "role": "runtime", "lane": lane, "start_ns": clock, "dur_ns": end - clock})
                clock = end
            else:
                rows.append({"name": "aten::add", "lane": lane, "start_ns": clock, "dur_ns": 20 * US})
                clock += 20 * US
        clock += US
        steps.append({"step": n, "start_ns": begin, "end_ns": clock})
    if not any(row.get("place") == "device" for row in rows):
        rows += launch("aten::mm", clock, 10 * US, max(clock + 6 * US, free[0] + US), 5 * US, at=len(rows), lane="main", stream="stream 0")
    return {"ops": rows, "steps": steps}


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_nothing_removed_changes_nothing(given_):
    trace = Trace.from_rows(given_)
    graph = build_graph(trace, -1)
    found = replay(trace, graph, [untouched(graph), combined([untouched(graph), untouched(graph)])])
    assert (found.replayed[0] == found.replayed[1]).all()
    assert np.allclose(found.host_replayed[0].sum(), found.host_recorded.sum(), atol=400 * US)


@settings(max_examples=60, deadline=None)
@given(recordings(), st.data())
def test_more_removed_is_never_longer(given_, data):
    trace = Trace.from_rows(given_)
    graph = build_graph(trace, -1)
    n = len(graph.work)
    edits = [untouched(graph)]
    for _ in range(3):
        shrink = np.asarray(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n)))
        begin = data.draw(st.integers(0, int(trace.end.max())))
        spans = np.asarray([begin]), np.asarray([begin + data.draw(st.integers(1, 500)) * US])
        one = Edit({data.draw(st.integers(0, len(graph.lanes) - 1)): ((spans, 1.0),)}, (), shrink, shrink)
        edits.append(combined([edits[-1], one]))
    total = replay(trace, graph, edits).replayed.sum(axis=1)
    assert (np.diff(total) <= 1e-3).all()


@settings(max_examples=30, deadline=None)
@given(recordings(), st.integers(0, 10**12), st.randoms(use_true_random=False))
def test_order_of_events_and_origin_of_time_do_not_matter(given_, shift, random):
    plain = only(given_)
    order = list(range(len(given_["ops"])))
    random.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    ops = [dict(given_["ops"][old]) for old in order]
    for row in ops:
        row["start_ns"] += shift
        if "launch" in row:
            row["launch"] = place[row["launch"]]
    steps = [{**row, "start_ns": row["start_ns"] + shift, "end_ns": row["end_ns"] + shift} for row in given_["steps"]]
    moved = only({"ops": ops, "steps": steps})
    assert np.allclose(plain.replayed, moved.replayed, atol=1)


def test_a_call_that_is_removed_does_not_wait():
    given_ = device_bound()
    trace = Trace.from_rows(given_)
    graph = build_graph(trace, -1)
    wait = next(join for join in graph.joins if isinstance(join, Wait))
    spans = np.asarray([wait.begin]), np.asarray([wait.end])
    found = only(given_, host={0: ((spans, 1.0),)})
    assert found.host_replayed[1, 0] < 0.1 * found.host_replayed[0, 0]
    assert found.replayed[1, 0] == pytest.approx(found.replayed[0, 0], rel=0.05)  # the device still has to do its work


def ranks_without(name, rank):
    """Step times of two ranks that meet in a collective: untouched, and without the kernels of one name on one rank; shape (2, steps)."""
    trace = Trace.from_rows(two_ranks())
    met = meetings(trace)
    graphs = [build_graph(trace, number, met) for number in (0, 1)]
    names = trace.strings("name").to_objects()
    edits = []
    for graph in graphs:
        gone = np.asarray([names[row] == name for row in graph.work.row], float) * (graph.rank == rank)
        edits.append([untouched(graph), replace(untouched(graph), shrink=gone)])
    return graphs, [found.replayed for found in replay_ranks(trace, graphs, edits)]


def test_ranks_meet_in_their_collectives():
    graphs, (first, second) = ranks_without("nothing", 0)
    assert [sum(isinstance(join, Meet) for join in graph.joins) for graph in graphs] == [3, 3]
    assert np.allclose(first, MS, rtol=0.05)
    assert np.allclose(second, MS, rtol=0.05)


def test_work_of_the_last_rank_to_come_shortens_the_steps_of_all():
    _, found = ranks_without("kernel_mm", 0)
    for times in found:
        assert np.allclose(times[0] - times[1], 500 * US, atol=20 * US), "now the other is the last, after 200 us"


def test_work_of_a_rank_that_waits_saves_nothing():
    _, found = ranks_without("kernel_mm", 1)
    for times in found:
        assert np.allclose(times[0], times[1], atol=2 * US)


def test_a_collective_that_is_taken_out_on_one_rank_still_takes_its_time_on_the_other():
    _, found = ranks_without("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1)
    for times in found:
        assert np.allclose(times[0], times[1], atol=2 * US)
