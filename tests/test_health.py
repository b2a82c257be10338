from dataclasses import replace

from tracediag.columns import Health
from tracediag.trace import Trace

STEPS = [{"step": n, "start_ns": n * 1000, "end_ns": n * 1000 + 1000} for n in range(5)]


def ids(given):
    return [item.id for item in Trace.from_rows(given).health]


def linked(count, lost=0, overlap=0):
    rows = []
    for i in range(count):
        rows.append({"name": "cudaLaunchKernel", "role": "runtime", "start_ns": i * 10_000, "dur_ns": 100})
        length = 14_000 if i < overlap else 5000
        rows.append({"name": "k", "place": "device", "start_ns": i * 10_000 + 200, "dur_ns": length, "launch": 2 * i})
    for row in rows[1 : 2 * lost : 2]:
        del row["launch"]
    return rows


def test_a_whole_trace_has_no_problem():
    assert ids({"ops": [{"name": "aten::mm", "start_ns": 0}], "steps": STEPS}) == []
    assert ids({"ops": linked(30), "steps": STEPS}) == []


def test_no_steps_and_few_steps():
    assert ids({"ops": [{"name": "aten::mm"}]}) == ["no-steps"]
    assert ids({"ops": [{"name": "aten::mm", "start_ns": 0}], "steps": STEPS[:2]}) == ["few-steps"]


def test_a_loop_inside_one_call_counts_all_its_steps():
    run = {"windows": [{"steps_per_call": 10}]}
    assert ids({"ops": [{"name": "aten::mm", "start_ns": 0}], "steps": STEPS[:1], "run": run}) == []


def test_launches_without_device_work():
    rows = [row for row in linked(30) if row["name"] != "k"]
    assert ids({"ops": rows, "steps": STEPS}) == ["no-device-events"]


def test_device_work_without_launches():
    assert ids({"ops": linked(30, lost=3), "steps": STEPS}) == ["device-without-launch"]


def test_work_of_one_stream_that_overlaps():
    assert ids({"ops": linked(30, overlap=10), "steps": STEPS}) == ["stream-overlap"]


def test_recording_that_slows_the_steps():
    series = [{"wall_ns": 500}] * 5
    assert ids({"ops": [{"name": "aten::mm", "start_ns": 0}], "steps": STEPS, "step_series": series}) == ["profiler-overhead"]
    assert ids({"ops": [{"name": "aten::mm", "start_ns": 0}], "steps": STEPS, "step_series": [{"wall_ns": 990}] * 5}) == []


def test_problems_of_the_file_and_of_the_capture_come_first_and_once():
    note = {"id": "late-window", "level": "info", "message": "m", "effect": "e"}
    trace = Trace.from_rows({"ops": [{"name": "aten::mm"}], "run": {"notes": [note]}})
    truncated = Health("truncated", "warning", "cut", "less")
    trace = replace(trace, file_health=(truncated, replace(truncated, message="cut too")))
    assert [item.id for item in trace.health] == ["truncated", "late-window", "no-steps"]
    assert trace.health[0].message == "cut"
    assert {item.level for item in trace.health} <= {"info", "warning", "error"}


def test_events_without_a_length_overlap_nothing():
    rows = [{"name": "wait", "place": "device", "start_ns": n * 20_000, "dur_ns": 9000} for n in range(20)]
    rows += [{"name": "fusion", "place": "device", "start_ns": n * 20_000, "dur_ns": 0} for n in range(20)]
    assert ids({"ops": rows, "steps": STEPS}) == ["device-without-launch"]
