"""What claims save: replayed where the trace has edges, bounded by unions where not, withheld when the replay misses, all at once."""

from types import SimpleNamespace

import numpy as np
import pytest
from replay_samples import MS, US, device_bound

from tracediag import depgraph, engine
from tracediag.claims import claims_of, totals_of
from tracediag.rule import Saving
from tracediag.savings import savings
from tracediag.trace import Trace
from tracediag.whatif import forecast


def claims(trace, *queries, saving=None):
    """One claim a query, with its rule: drop unless `saving` says otherwise."""
    found = []
    for number, query in enumerate(queries):
        rule = SimpleNamespace(
            id=f"rule-{number}", code="K99", query=query, params={}, saving=saving or Saving("drop"), confidence="likely", owns=True
        )  # fmt: skip
        found += [(claim, rule) for claim in claims_of(trace, rule, totals_of(trace), seconds=20)]
    return found


def ops_named(name):
    return f"SELECT op_id, 'x' AS group_key FROM ops WHERE name = '{name}'"


def saved(trace, *queries, saving=None):
    return savings(trace, [(claim, rule.saving) for claim, rule in claims(trace, *queries, saving=saving)])


def test_device_work_that_the_step_waits_for_saves_its_share():
    trace = Trace.from_rows(device_bound())
    found = saved(trace, ops_named("aten::mm"))
    assert found.calibration.good
    assert found.each[0].high == pytest.approx(0.4, abs=0.02)
    assert found.each[0].low <= found.each[0].high


def test_device_work_beside_a_slower_host_saves_little():
    rows = []
    for n in range(4):
        rows += [
            {"name": "aten::mm", "start_ns": n * MS, "dur_ns": 10 * US},
            {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": n * MS + US, "dur_ns": 8 * US},
            {"name": "kernel_mm", "place": "device", "start_ns": n * MS + 8 * US, "dur_ns": 500 * US, "launch": 4 * n + 1},
            {"name": "aten::slow", "start_ns": n * MS + 10 * US, "dur_ns": 980 * US},
        ]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": n, "start_ns": n * MS, "end_ns": n * MS + MS} for n in range(4)]})
    found = saved(trace, ops_named("aten::mm"), saving=Saving("scale", 0.0, 0.5))
    (claim, _), *_ = claims(trace, ops_named("aten::mm"))
    assert claim.share > 0.4
    assert found.each[0].high < 0.2  # only the last kernel outlasts the host


def test_merged_launches_keep_the_device_work():
    trace = Trace.from_rows(device_bound())
    merged = saved(trace, ops_named("aten::mm"), saving=Saving("merge_launches", 0.0, 0.1))
    dropped = saved(trace, ops_named("aten::mm"))
    assert merged.each[0].high < 0.05 < dropped.each[0].high


def test_two_claims_are_taken_out_of_one_graph():
    trace = Trace.from_rows(device_bound())
    found = saved(trace, ops_named("aten::mm"), ops_named("aten::add"))
    assert max(one.high for one in found.each) <= found.together.high <= 1.01 * sum(one.high for one in found.each)
    same = saved(trace, ops_named("aten::mm"), ops_named("kernel_mm"))
    assert same.together.high == pytest.approx(max(one.high for one in same.each), abs=0.02)


def test_nothing_is_predicted_when_the_replay_misses_the_steps():
    rows = device_bound()
    for row in rows["ops"]:
        if row.get("place") == "device":
            row["dur_ns"] //= 100
    trace = Trace.from_rows(rows)
    found = saved(trace, ops_named("aten::mm"))
    assert not found.calibration.good
    assert found.each == (None,)
    told = forecast(trace, claims(trace, ops_named("aten::mm")), totals_of(trace))
    assert told.each == (None,)
    assert "misses" in told.facts["withheld"]


def parallel():
    """Four ops of 500 us a step: two of them run at the same time."""
    rows, steps = [], []
    for n in range(3):
        t = n * MS
        for name, start, lane in (("A", 0, "x"), ("B", 0, "y"), ("C", 400, "x")):
            rows.append({"name": name, "start_ns": t + start * US, "dur_ns": 400 * US, "lane": lane, "phase": "forward"})
        steps.append({"step": n, "start_ns": t, "end_ns": t + MS})
    return Trace.from_rows({"framework": "tensorflow", "ops": rows, "steps": steps})


def test_without_edges_the_low_end_leaves_out_what_other_work_overlaps():
    trace = parallel()
    found = saved(trace, ops_named("A"), ops_named("C"))
    assert found.calibration is None
    assert (found.each[0].low, found.each[0].high) == pytest.approx((0.0, 0.4))
    assert (found.each[1].low, found.each[1].high) == pytest.approx((0.4, 0.4))


def test_all_fixes_together_save_at_least_what_each_of_them_does():
    trace = Trace.from_rows(device_bound())
    pairs = claims(trace, ops_named("aten::mm"), ops_named("aten::add"))
    told = forecast(trace, pairs, totals_of(trace))
    both = told.facts["together"]
    assert both["rules"] == ["rule-0", "rule-1"]
    assert both["low"] >= max(one.low for one in told.each)
    one_only = forecast(trace, pairs[:1], totals_of(trace))
    assert one_only.facts["together"] is None
    assert told.facts["method"] == "graph"
    assert forecast(trace, [], totals_of(trace)).facts is None


def test_bytes_that_stay_at_the_bandwidth_of_the_trace():
    trace = Trace.from_rows(device_bound())
    query = "SELECT op_id, 'x' AS group_key, 1000000 AS bytes_now, 250000 AS bytes_after FROM ops WHERE name = 'aten::mm'"
    (claim, _), *_ = claims(trace, query, saving=Saving("scale_bytes"))
    assert (claim.keep_low, claim.keep_high) == (0.25, 0.25)
    sizes = "CASE name WHEN 'aten::mm' THEN 4000000 ELSE 580000 END AS bytes_now, 100000 AS bytes_after"
    uneven = f"SELECT op_id, 'x' AS group_key, {sizes} FROM ops WHERE name IN ('aten::mm', 'aten::add')"
    (claim, _), *_ = claims(trace, uneven, saving=Saving("scale_bytes"))
    assert 0 < claim.keep_low < claim.keep_high < 0.1
    nothing = "SELECT op_id, 'x' AS group_key, NULL::BIGINT AS bytes_now, NULL::BIGINT AS bytes_after FROM ops WHERE name = 'aten::mm'"
    assert claims(trace, nothing, saving=Saving("scale_bytes"))[0][0].keep_high == 1.0


def test_series_claims_need_no_replay():
    rows = device_bound()
    for row in rows["ops"]:
        if row.get("place") == "device":
            row["dur_ns"] //= 100
    rows["step_series"] = [{"wall_ns": MS}] * 9
    trace = Trace.from_rows(rows)
    query = "SELECT step AS series_step, wall_ns // 2 AS claim_ns, 'x' AS group_key FROM step_series"
    told = forecast(trace, claims(trace, query), totals_of(trace))
    assert told.each[0].low > 1.5
    assert np.isfinite(told.each[0].high)


def test_of_a_long_recording_the_first_steps_are_replayed(monkeypatch):
    trace = Trace.from_rows(device_bound(24))
    whole = saved(trace, ops_named("aten::mm"), ops_named("aten::add"))
    monkeypatch.setattr(depgraph, "ENOUGH_ROWS", 30)
    few = saved(trace, ops_named("aten::mm"), ops_named("aten::add"))
    assert len(depgraph.build_graph(trace, -1).steps) == depgraph.ENOUGH_STEPS
    assert few.calibration.good
    for one, other in zip([*whole.each, whole.together], [*few.each, few.together], strict=True):
        assert other.high == pytest.approx(one.high, abs=0.01)
    late = saved(trace, "SELECT op_id, 'x' AS group_key FROM ops WHERE name = 'aten::mm' AND step >= 20")
    assert late.each[0].high == pytest.approx(0.4 * 4 / 24, abs=0.01)


def test_the_engine_hands_on_how_predictions_were_made():
    trace = Trace.from_rows(device_bound())
    assert engine.run(trace, []).prediction is None
