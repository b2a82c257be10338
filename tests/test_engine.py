"""Claims, ownership, shares, ranking, evidence and isolation of the engine, on traces made from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tracediag.engine import EngineResult, fingerprint, run
from tracediag.errors import RuleError
from tracediag.evidence import fill_message, format_fact
from tracediag.findings import Fix, Place
from tracediag.rule import Rule, Saving
from tracediag.rulefields import parse_rule
from tracediag.rules import rules_folder
from tracediag.ruletests import run_rule_test
from tracediag.severity import capped, order_findings, severity_of
from tracediag.trace import Trace

REAL = rules_folder() / "opt-step-dominant.yaml"
BASE, _ = parse_rule(REAL.read_text(encoding="utf-8"), REAL)
MS = 1_000_000


def rule(name: str, code: str, query: str, **changes: Any) -> Rule:
    assert BASE is not None
    fields: dict[str, Any] = {
        "id": name,
        "code": code,
        "frameworks": ("torch",),
        "severity": "high",
        "confidence": "certain",
        "needs": (),
        "devices": ("any",),
        "params": {},
        "umbrella": False,
        "owns": True,
        "query": query,
        "saving": Saving("drop"),
        "message": "{percent} %",
        "excludes": (),
        "tests": (),
        "fix": (Fix("any", "Change it."),),
    }
    return replace(BASE, **{**fields, **changes})


def by_name(name: str, rule_id: str = "", code: str = "L90", **changes: Any) -> Rule:
    names = ", ".join(f"'{part}'" for part in name.split("|"))
    return rule(
        rule_id or "r-" + name.replace("|", "-"), code, f"SELECT op_id, 'g' AS group_key FROM ops WHERE name IN ({names})", **changes
    )


def host_trace(**more: Any) -> Trace:
    """Two steps of 10 ms, each: a 5 ms, b 3 ms, c 1 ms, 1 ms of nothing."""
    ops = []
    for step in (0, 1):
        at = step * 10 * MS
        ops += [
            {"name": "a", "start_ns": at, "dur_ns": 5 * MS, "in_shapes": "[[4,4]]", "source": "train.py:7"},
            {"name": "b", "start_ns": at + 5 * MS, "dur_ns": 3 * MS, "source": "train.py:9"},
            {"name": "c", "start_ns": at + 8 * MS, "dur_ns": 1 * MS},
        ]
    steps = [{"step": step, "start_ns": step * 10 * MS, "end_ns": (step + 1) * 10 * MS} for step in (0, 1)]
    return Trace.from_rows({"ops": ops, "steps": steps, **more})


SERIES = [{"step": i, "wall_ns": 100, "profiled": i == 4} for i in range(5)]


def shares(result: EngineResult) -> dict[str, float]:
    return {finding.rule: finding.share for finding in result.findings}


def test_share_severity_evidence_and_place() -> None:
    (finding,) = run(host_trace(), [by_name("a|c")]).findings
    assert (finding.share, finding.severity, finding.confidence, finding.message) == (0.6, "high", "certain", "60 %")
    assert finding.evidence[0] == {"op": "a", "kind": None, "count_per_step": 1.0, "ms_per_step": 5.0, "shapes": "[[4,4]]"}
    assert [row["op"] for row in finding.evidence] == ["a", "c"]
    assert finding.where == (Place("train.py", 7),)
    assert finding.fingerprint == fingerprint("r-a-c", None, "g")


def test_overlapping_ops_are_counted_once_and_clipped_to_the_steps() -> None:
    ops = [
        {"name": "a", "lane": "t1", "start_ns": 0, "dur_ns": 6 * MS},
        {"name": "a", "lane": "t2", "start_ns": 2 * MS, "dur_ns": 6 * MS},
        {"name": "a", "lane": "t3", "start_ns": 9 * MS, "dur_ns": 50 * MS},
    ]
    trace = Trace.from_rows({"ops": ops, "steps": [{"step": 0, "start_ns": 0, "end_ns": 10 * MS}]})
    assert shares(run(trace, [by_name("a")])) == {"r-a": 0.9}


def test_earlier_group_owns_and_the_rest_becomes_also() -> None:
    first, second = by_name("a|b", "compile-rule", "C90"), by_name("a|c", "launch-rule", "L90")
    (owner,) = run(host_trace(), [second, first]).findings
    assert (owner.rule, owner.also) == ("compile-rule", ("launch-rule",))
    assert shares(run(host_trace(), [second])) == {"launch-rule": 0.6}


def test_a_claim_keeps_what_is_left_when_it_is_enough() -> None:
    first, second = by_name("a", "compile-rule", "C90"), by_name("a|b", "launch-rule", "L90")
    assert shares(run(host_trace(), [first, second])) == {"compile-rule": 0.5, "launch-rule": 0.3}


def test_inside_a_group_the_larger_claim_comes_first() -> None:
    small, large = by_name("a", "small-rule", "P90"), by_name("a|b", "large-rule", "K90")
    (owner,) = run(host_trace(), [small, large]).findings
    assert (owner.rule, owner.also) == ("large-rule", ("small-rule",))


def test_tables_come_before_the_optimizer_that_works_on_them() -> None:
    one, other = by_name("a", "table-rule", "E90"), by_name("b", "other-table-rule", "E91")
    optimizer = by_name("a|b|c", "optimizer-rule", "O90")
    assert shares(run(host_trace(), [optimizer, other, one])) == {"table-rule": 0.5, "other-table-rule": 0.3}


def test_an_excluding_rule_comes_before_a_larger_one() -> None:
    small, large = by_name("a", "small-rule", "E90", excludes=("large-rule",)), by_name("a|b", "large-rule", "O90")
    (owner,) = run(host_trace(), [small, large]).findings
    assert (owner.rule, owner.share, owner.also) == ("small-rule", 0.5, ("large-rule",))


def test_shares_of_owning_rules_never_pass_one() -> None:
    rules = [by_name("a|b|c", f"rule-{code.lower()}", code) for code in ("C90", "I90", "L90")] + [by_name("a", "more", "K90")]
    assert sum(shares(run(host_trace(), rules)).values()) <= 1.0


def test_groups_of_one_rule_are_findings_of_their_own() -> None:
    each = rule("each", "K90", "SELECT op_id, name AS group_key, name FROM ops WHERE name IN ('a', 'b')", message="{name}")
    findings = run(host_trace(), [each]).findings
    assert [(finding.message, finding.share) for finding in findings] == [("a", 0.5), ("b", 0.3)]
    assert len({finding.fingerprint for finding in findings}) == 2


def test_umbrella_owns_nothing_names_its_owners_and_is_not_first() -> None:
    umbrella = by_name("a|b", "umbrella-rule", "C90", umbrella=True, owns=False)
    inner = by_name("b", "inner-rule", "K90", severity="low")
    findings = run(host_trace(), [umbrella, inner]).findings
    assert [finding.rule for finding in findings] == ["inner-rule", "umbrella-rule"]
    assert findings[1].share == 0.8 and findings[1].also == ("inner-rule",) and findings[0].also == ()
    assert [finding.rule for finding in run(host_trace(), [umbrella]).findings] == ["umbrella-rule"]


def test_small_claims_are_left_out() -> None:
    assert not run(host_trace(), [by_name("c", params={"min_share": 0.2})]).findings
    assert run(host_trace(), [by_name("c")], params={"r-c": {"min_share": 0.05}}).findings
    assert not run(host_trace(), [by_name("c")], params={"r-c": {"min_share": 0.15}}).findings


def test_series_claims_are_parts_of_the_unprofiled_time() -> None:
    query = "SELECT step AS series_step, wall_ns // 2 AS claim_ns, 's' AS group_key FROM step_series WHERE step >= 2"
    (finding,) = run(host_trace(step_series=SERIES), [rule("slow", "C90", query)]).findings
    assert finding.share == 0.25  # steps 2 and 3 of 0..3; the profiled step 4 does not count
    assert finding.evidence[0]["steps"] == [2, 3]


def test_two_series_claims_do_not_count_the_same_time_twice() -> None:
    query = "SELECT step AS series_step, {} AS claim_ns, 's' AS group_key FROM step_series"
    first, second = rule("first", "C90", query.format(60)), rule("second", "I90", query.format(90))
    assert shares(run(host_trace(step_series=SERIES), [first, second])) == {"first": 0.6, "second": 0.3}
    (owner,) = run(host_trace(step_series=SERIES), [first, rule("second", "I90", query.format(70))]).findings
    assert owner.also == ("second",)


def test_measurement_rule_states_its_share() -> None:
    query = "SELECT 'clock' AS group_key, source, 0.4 AS share FROM clocks"
    stated = rule("clock-rule", "M90", query, owns=False, saving=Saving("none"), needs=("clocks",))
    (finding,) = run(host_trace(clocks=[{"clock": 0, "source": "train.py:3"}]), [stated]).findings
    assert (finding.share, finding.where, finding.speedup) == (0.4, (Place("train.py", 3),), None)


def test_row_confidence_lowers_and_caps() -> None:
    possible = rule("maybe", "K90", "SELECT op_id, 'g' AS group_key, 'possible' AS confidence FROM ops WHERE name = 'a'")
    (finding,) = run(host_trace(), [possible]).findings
    assert (finding.confidence, finding.severity) == ("possible", "medium")
    (finding,) = run(host_trace(), [by_name("a")], cap="low").findings
    assert finding.severity == "low"


def test_rules_that_do_not_apply_are_skipped_with_the_reason() -> None:
    result = run(
        host_trace(),
        [
            by_name("a", "needs-rule", needs=("params", "ops.flops")),
            by_name("a", "tf-rule", frameworks=("tensorflow",)),
            by_name("a", "gpu-rule", devices=("gpu",)),
        ],
    )
    assert not result.findings
    assert [skip["reason"] for skip in result.skipped] == [
        "holds on gpu; this trace is of cpu",
        "the trace has no params, ops.flops",
        "holds for tensorflow; this is torch",
    ]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT op_id, 'g' AS group_key FROM nothing", "failed: Catalog Error"),
        ("SELECT op_id, NULL::VARCHAR AS group_key FROM ops", "failed: group_key is NULL"),
        ("SELECT 12345 AS op_id, 'g' AS group_key", "failed: op_id 12345 does not exist"),
        ("SELECT op_id, 'g' AS group_key, 'surely' AS confidence FROM ops", "failed: confidence 'surely'"),
        ("SELECT op_id, CAST(CAST(name AS BIGINT) AS VARCHAR) AS group_key FROM ops", "failed: Conversion Error"),
        ("SELECT 1 AS op_id, content AS group_key FROM read_text('/etc/hostname')", "failed: "),
    ],
)
def test_a_failing_rule_is_isolated(query: str, reason: str) -> None:
    result = run(host_trace(), [rule("broken", "K90", query), by_name("a")])
    assert shares(result) == {"r-a": 0.5}
    assert result.skipped[0]["rule"] == "broken" and result.skipped[0]["reason"].startswith(reason)


def test_a_query_has_a_time_limit() -> None:
    slow = "SELECT max(a.range) AS op_id, 'g' AS group_key FROM range(1000000) a, range(1000000) b WHERE hash(a.range + b.range) = 1"
    result = run(host_trace(), [rule("slow", "K90", slow), by_name("a")], seconds=0.2)
    assert result.skipped == ({"rule": "slow", "reason": "failed: took longer than 0.2 s"},)
    assert shares(result) == {"r-a": 0.5}


def test_select_ignore_and_min_saving() -> None:
    rules = [by_name("a"), by_name("b", code="K91")]
    assert shares(run(host_trace(), rules, select=["K91"])) == {"r-b": 0.3}
    assert shares(run(host_trace(), rules, ignore=["r-b"])) == {"r-a": 0.5}
    assert shares(run(host_trace(), rules, min_saving=90)) == {}
    silent = by_name("c", saving=Saving("none"))
    assert shares(run(host_trace(), [silent], min_saving=90)) == {"r-c": 0.1}
    with pytest.raises(RuleError):
        run(host_trace(), rules, select=["nobody"])


def test_device_claims_own_launched_work_and_idle_time() -> None:
    ops = [
        {"name": "a", "start_ns": 0, "dur_ns": 2 * MS},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 1 * MS, "dur_ns": 10_000},
        {"name": "kernel_a", "place": "device", "start_ns": 2 * MS, "dur_ns": 6 * MS, "launch": 1},
    ]
    trace = Trace.from_rows({"ops": ops, "steps": [{"step": 0, "start_ns": 0, "end_ns": 10 * MS}]})
    (finding,) = run(trace, [by_name("a", devices=("gpu",))]).findings
    assert finding.share >= 0.6


def test_same_result_whatever_the_order_of_rules() -> None:
    rules = [by_name("a|b", "one", "E90"), by_name("b|c", "two", "O90"), by_name("a", "three", "K90"), by_name("c", "four", "L90")]
    assert run(host_trace(), rules) == run(host_trace(), rules[::-1]) == run(host_trace(), rules[2:] + rules[:2])


def test_messages_take_plain_names_only() -> None:
    assert fill_message("{a} of {b}, {c}", {"a": 1234567.0, "b": 0.123456, "c": None}) == "1234567 of 0.123, unknown"
    assert fill_message("{a.b} {a!r} {a}", {"a": 1}) == "{a.b} {a!r} 1"
    assert [format_fact(value) for value in (True, 12, 12.345, [1, 2], "x")] == ["yes", "12", "12.3", "1, 2", "x"]


def test_severity_thresholds() -> None:
    assert [severity_of(share, "high", "likely") for share in (0.15, 0.1499, 0.05, 0.0499)] == ["high", "medium", "medium", "low"]
    assert severity_of(0.9, "info", "certain") == "info"
    assert severity_of(0.9, "high", "possible") == "medium"
    assert capped("high", "medium", "low") == "low"


def test_findings_are_ordered_by_severity_group_share_id() -> None:
    (high,) = run(host_trace(), [by_name("a")]).findings
    low = replace(high, severity="low", code="C90", rule="z")
    early = replace(high, code="C91", share=0.2, rule="y")
    assert [f.rule for f in order_findings([low, high, early], frozenset())] == ["y", "r-a", "z"]
    assert [f.rule for f in order_findings([low, high, early], frozenset({"y", "r-a"}))] == ["z", "y", "r-a"]


def test_rule_tests_tell_what_differs() -> None:
    assert BASE is not None
    real = BASE
    firing = next(test for test in real.tests if test.expect["fires"])
    wrong = {"fires": True, "share": [0.9, 1.0], "message_contains": "nothing", "group": "other"}
    said = run_rule_test(real, replace(firing, expect=wrong)) or ""
    assert all(part in said for part in ("share is 0.5", "'nothing' is not in the message", "group is not 'other'"))
    assert "expected silence" in (run_rule_test(real, replace(firing, expect={"fires": False})) or "")
    assert "no column" in (run_rule_test(real, replace(firing, given={"ops": [{"name": "x", "op_id": 1}]})) or "")


def test_shared_views_become_tables_where_two_queries_read_them() -> None:
    from tracediag.database import share

    trace = Trace.from_rows({"ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": 10}]})
    connection = trace.connection()
    before = connection.execute("SELECT * FROM work ORDER BY ALL").fetchall()
    share(connection, ["SELECT * FROM work", "SELECT op_id FROM work", "SELECT * FROM stalls"])
    kinds = dict(connection.execute("SELECT view_name, 1 FROM duckdb_views() WHERE NOT internal").fetchall())
    assert "work" not in kinds
    assert {"stalls", "blocking"} <= set(kinds)
    assert connection.execute("SELECT * FROM work ORDER BY ALL").fetchall() == before
    share(connection, ["SELECT * FROM stalls", "SELECT * FROM blocking"])
    assert "blocking" not in dict(connection.execute("SELECT view_name, 1 FROM duckdb_views() WHERE NOT internal").fetchall())
