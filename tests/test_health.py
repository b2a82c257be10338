"""What `health` says of a trace, what it leaves out of the prices, and the list of all that it can say."""

import re
from dataclasses import replace
from pathlib import Path

from tracediag.api import explain
from tracediag.columns import Health
from tracediag.problems import PROBLEMS, problem, severity_cap
from tracediag.trace import Trace

ROOT = Path(__file__).resolve().parents[1]
ID = re.compile(r'(?:\bHealth|\bnote|\b_note)\(\s*(?:run,\s*)?"([a-z0-9]+(?:-[a-z0-9]*)+)"')

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
    compiling = {"name": "compile", "kind": "compile", "start_ns": 0, "dur_ns": 5_000_000}
    assert ids({"ops": [compiling], "steps": STEPS, "step_series": series}) == []
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


def test_short_overlaps_of_successive_kernels_are_no_problem():
    rows = linked(30)
    for row in rows[1::2]:
        row["dur_ns"] = 9_999_000
    for i, row in enumerate(rows):
        row["start_ns"] = (i // 2) * 9_997_000 + (200 if i % 2 else 0)
    steps = [{"step": n, "start_ns": n * 60_000_000, "end_ns": (n + 1) * 60_000_000} for n in range(5)]
    assert ids({"ops": rows, "steps": steps}) == []


def test_a_step_that_is_recorded_in_part_only():
    steps = [{"step": n, "start_ns": n * 100_000, "end_ns": (n + 1) * 100_000} for n in range(6)]
    rows = [{"name": "aten::mm", "start_ns": n * 100_000 + i * 5000} for n in range(6) for i in range(20) if n < 5 or i < 7]
    trace = Trace.from_rows({"ops": rows, "steps": steps})
    assert [item.id for item in trace.health] == ["cut-off-step"]
    assert "step 5" in trace.health[0].message
    assert trace.step_table.settled.tolist() == [True] * 5 + [False]
    whole = [{"name": "aten::mm", "start_ns": n * 100_000 + i * 5000} for n in range(6) for i in range(20)]
    assert ids({"ops": whole, "steps": steps}) == []


def launching(count, **device):
    """A launch call every 10 us, each with a kernel of 2 us."""
    rows = []
    for i in range(count):
        rows.append({"name": "cudaLaunchKernel", "role": "runtime", "start_ns": i * 10_000, "dur_ns": 1000})
        rows.append({"name": "k", "place": "device", "start_ns": i * 10_000 + 2000, "dur_ns": 2000, "launch": 2 * i, **device})
    return rows


def test_device_work_that_ends_before_the_launches_do():
    rows = launching(200, kind="matmul")
    kept = [row for i, row in enumerate(rows) if i % 2 == 0 or i < 100]
    for i, row in enumerate(kept):
        if row["name"] == "k":
            row["launch"] = i - 1
    assert ids({"ops": kept}) == ["no-steps", "capture-cut-off"]


def test_training_step_of_casts_only():
    steps = [{"step": n, "start_ns": n * 300_000, "end_ns": (n + 1) * 300_000} for n in range(5)]
    casts = {"ops": launching(150, name="Cast"), "steps": steps}
    for row in casts["ops"][1::2]:
        row["kind"] = "cast"
    assert ids(casts) == ["capture-cut-off"]
    for row in casts["ops"][1:40:2]:
        row["kind"] = "matmul"
    assert ids(casts) == []


def test_links_that_were_thinned_out():
    rows = launching(300)
    for row in rows[3::2]:
        del row["launch"]
    assert ids({"ops": rows}) == ["no-steps", "thinned-capture"]


def test_device_work_from_before_the_recording_is_told_from_lost_links():
    def effect(lost):
        rows = launching(100)
        for row in rows[1::2][lost]:
            del row["launch"]
        return {item.id: item.effect for item in Trace.from_rows({"ops": rows}).health}["device-without-launch"]

    assert "before the recording began" in effect(slice(0, 10))
    assert "not recorded" in effect(slice(50, 60))


def waiting(first_ns):
    rows = launching(100)
    for i, row in enumerate(rows):
        if row["name"] == "k" and i > 3:
            row["start_ns"] += first_ns
    return rows


def test_a_wait_for_work_from_before_the_recording_is_priced_for_nothing():
    trace = Trace.from_rows({"ops": waiting(400_000_000)})
    assert [item.id for item in trace.health] == ["no-steps", "unrecorded-work"]
    start, end = trace.step_intervals()
    assert int((end - start).sum()) < 3_000_000
    report = explain(trace)
    assert all(finding.severity in ("low", "info") for finding in report.findings)
    assert all(finding.share < 1 for finding in report.findings)
    assert ids({"ops": waiting(2_000_000)}) == ["no-steps"]


def ranks(skew_ns, name="ncclDevKernel_AllReduce_Sum_f32"):
    return {
        "ops": [
            {"name": name, "place": "device", "rank": rank, "start_ns": i * 1_000_000 + rank * skew_ns, "dur_ns": 50_000}
            for rank in range(2)
            for i in range(10)
        ]
    }


def test_collectives_of_ranks_that_do_not_overlap():
    assert "clock-skew" in ids(ranks(300_000))
    assert "clock-skew" not in ids(ranks(20_000))
    assert "clock-skew" not in ids(ranks(300_000, "ncclDevKernel_SendRecv"))


def test_problems_lower_severities_as_far_as_the_list_says():
    assert severity_cap([]) == "high"
    assert severity_cap(["few-steps", "of-another-version"]) == "high"
    assert severity_cap(["few-steps", "no-device-events", "stream-overlap"]) == "medium"
    assert severity_cap(["no-device-events", "capture-cut-off"]) == "low"


def test_every_id_in_the_code_is_on_the_list_and_on_its_page():
    page = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    found = {}
    for path in sorted((ROOT / "tracediag").rglob("*.py")):
        for ident in ID.findall(path.read_text(encoding="utf-8")):
            found[ident.rstrip("-") + ("-x" if ident.endswith("-") else "")] = path.name
    assert len(found) > 20
    assert {ident: place for ident, place in found.items() if problem(ident) is None} == {}
    assert [entry.id for entry in PROBLEMS if f"`{entry.id}`" not in page] == []


def test_the_list_is_complete_in_itself():
    assert len({entry.id for entry in PROBLEMS}) == len(PROBLEMS)
    for entry in PROBLEMS:
        assert entry.level in ("info", "warning", "error")
        assert entry.cap in ("high", "medium", "low")
        assert all(text and "|" not in text for text in (entry.meaning, entry.effect, entry.fix))
