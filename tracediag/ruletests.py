"""Run the tests inside rule files: build the given tables, run the one rule, compare with what is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediag.engine import EngineResult, fingerprint, run
from tracediag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracediag.findings import Finding
    from tracediag.rule import Rule, RuleTest

__all__ = ["TestResult", "run_rule_test", "run_rule_tests"]


@dataclass(frozen=True)
class TestResult:
    """Outcome of one test of one rule; `problem` is None when it passed."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    rule: str
    name: str
    problem: str | None


def run_rule_tests(rules: Iterable[Rule]) -> tuple[TestResult, ...]:
    """Run every test of these rules."""
    return tuple(TestResult(rule.id, test.name, run_rule_test(rule, test)) for rule in rules for test in rule.tests)


def run_rule_test(rule: Rule, test: RuleTest) -> str | None:
    """Why the test fails, or None. The rows are of the rule's first framework unless `given` says another."""
    from tracediag.trace import Trace

    try:
        trace = Trace.from_rows({"framework": rule.frameworks[0], **test.given})
    except InputError as error:
        return f"given: {error}"
    return _compare(run(trace, [rule]), test.expect)


def _compare(result: EngineResult, expect: Mapping[str, Any]) -> str | None:
    if any(skip["reason"].startswith("failed") for skip in result.skipped):
        return f"the rule {result.skipped[0]['reason']}"
    if bool(result.findings) != expect["fires"]:
        why = f" (skipped: {result.skipped[0]['reason']})" if result.skipped else ""
        return f"expected {'a finding, got none' if expect['fires'] else f'silence, got: {result.findings[0].message}'}{why}"
    checks = [_differences(finding, expect) for finding in result.findings]
    closest: list[str] = min(checks, key=len, default=[])
    return "; ".join(closest) or None


def _differences(finding: Finding, expect: Mapping[str, Any]) -> list[str]:
    """In what a finding differs from what is expected; one of several findings has to match in everything."""
    problems = [
        f"{name} is {getattr(finding, name)}, not {expect[name]}"
        for name in ("confidence", "severity")
        if name in expect and getattr(finding, name) != expect[name]
    ]
    if "share" in expect and not expect["share"][0] <= finding.share <= expect["share"][1]:
        problems.append(f"share is {finding.share}, not in {expect['share']}")
    if "group" in expect and finding.fingerprint != fingerprint(finding.rule, None, str(expect["group"])):
        problems.append(f"group is not {expect['group']!r}")
    if "message_contains" in expect and str(expect["message_contains"]) not in finding.message:
        problems.append(f"{expect['message_contains']!r} is not in the message: {finding.message}")
    lines = [f"{place.file}:{place.line}" for place in finding.where] or [""]
    if "line" in expect and lines[0] != expect["line"]:
        problems.append(f"the line is {lines[0] or 'not known'}, not {expect['line'] or 'unknown'}")
    return problems
