"""Run the rules about pairs: put what the comparison found into tables, and ask each rule's query.

The tables of a query: `work` (quantity, a, b, ratio, per, differs, time_share: largest part of a step in counted operations), `products`
(side, op, phase, kind, shapes, flops; calls, other_calls: products of this size a step, here and on the other side), `step` (a_ms,
b_ms, ratio, usual_ratio, clear, same_framework, same_script), `sides` (side, framework, script, version, newer, compiled, frameworks),
`settings` (name, a, b). A row that the query returns is a finding; its columns are the facts of the message. Sides are 'A' and 'B'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from tracediag.errors import RuleError
from tracediag.evidence import fill_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracediag.comparing.pairrulefiles import PairRule

__all__ = ["TABLES", "check_pair_queries", "run_pair_rule_tests", "run_pair_rules"]

TABLES: dict[str, str] = {
    "work": "quantity VARCHAR, a DOUBLE, b DOUBLE, ratio DOUBLE, per VARCHAR, differs BOOLEAN, time_share DOUBLE",
    "products": "side VARCHAR, op VARCHAR, phase VARCHAR, kind VARCHAR, shapes VARCHAR, flops DOUBLE, calls DOUBLE, other_calls DOUBLE",
    "step": "a_ms DOUBLE, b_ms DOUBLE, ratio DOUBLE, usual_ratio DOUBLE, clear BOOLEAN, same_framework BOOLEAN, same_script BOOLEAN",
    "sides": "side VARCHAR, framework VARCHAR, script VARCHAR, version VARCHAR, newer BOOLEAN, compiled BOOLEAN, frameworks INTEGER",
    "settings": "name VARCHAR, a VARCHAR, b VARCHAR",
}


def run_pair_rules(rules: Sequence[PairRule], tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[dict[str, Any], ...]:
    """A finding for each rule whose query returns a row, in order of the rules. Raises RuleError for a query that fails."""
    connection = _database(tables)
    try:
        found = [(rule, _first(connection, rule)) for rule in rules]
    finally:
        connection.close()
    return tuple(_finding(rule, facts) for rule, facts in found if facts is not None)


def run_pair_rule_tests(rules: Iterable[PairRule]) -> tuple[tuple[str, str, str | None], ...]:
    """Run every test of these rules: (id of the rule, name of the test, why it failed or None)."""
    return tuple((rule.id, test.name, _problem(rule, test.given, test.expect)) for rule in rules for test in rule.tests)


def _problem(rule: PairRule, given: Mapping[str, Any], expect: Mapping[str, Any]) -> str | None:
    found = run_pair_rules([rule], given)
    if bool(found) != expect["fires"]:
        return f"expected {'a finding, got none' if expect['fires'] else 'silence, got: ' + found[0]['message']}"
    wanted = str(expect.get("message_contains", ""))
    return f"{wanted!r} is not in the message: {found[0]['message']}" if found and wanted not in found[0]["message"] else None


def check_pair_queries(rules: Iterable[PairRule]) -> None:
    """Ask each query of empty tables. Raises RuleError that lists those that fail, one a line."""
    problems = []
    connection = _database({})
    try:
        for rule in rules:
            try:
                _first(connection, rule)
            except RuleError as error:
                problems.append(str(error))
    finally:
        connection.close()
    if problems:
        raise RuleError("rules: " + "\n".join(problems))


def _database(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> duckdb.DuckDBPyConnection:
    """The tables in memory; nothing outside them can be reached."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        names = [column.split()[0] for column in columns.split(", ")]
        for row in tables.get(name, ()):
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(names))})", [row.get(column) for column in names])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _first(connection: duckdb.DuckDBPyConnection, rule: PairRule) -> dict[str, Any] | None:
    try:
        answer = connection.execute(rule.query, rule.params) if rule.params else connection.execute(rule.query)
    except duckdb.Error as error:
        raise RuleError(f"rule {rule.id}: query: {str(error).splitlines()[0]}") from error
    names = [column[0] for column in answer.description or ()]
    row = answer.fetchone()
    return None if row is None else dict(zip(names, row, strict=True))


def _finding(rule: PairRule, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rule": rule.id, "code": rule.code, "title": rule.title, "severity": str(facts.get("severity") or rule.severity),
        "confidence": rule.confidence, "message": fill_message(rule.message, facts), "side": facts.get("side"), "why": rule.why,
        "fix": [{"framework": fix.framework, "text": fix.text, "code": fix.code} for fix in rule.fix], "references": list(rule.references),
    }  # fmt: skip
