"""Rules about pairs: one YAML file each, whose query looks at what the comparison found.

The tables of a query: `work` (quantity, a, b, ratio, per, differs, time_share: largest part of a step in counted operations), `products`
(side, op, phase, kind, shapes, flops), `step` (a_ms, b_ms, ratio, usual_ratio, clear, same_framework, same_script), `sides` (side,
framework, script, version, newer, compiled, frameworks), `settings` (name, a, b). A row that the query returns is a finding; its columns
are the facts of the message. Sides are 'A' and 'B'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import yaml

from tracediag.evidence import fill_message
from tracediag.findings import Fix  # noqa: TC001  # msgspec reads the annotations of PairRule
from tracediag.places import rules_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["TABLES", "PairRule", "PairTest", "pair_rules", "run_pair_rules"]

TABLES: dict[str, str] = {
    "work": "quantity VARCHAR, a DOUBLE, b DOUBLE, ratio DOUBLE, per VARCHAR, differs BOOLEAN, time_share DOUBLE",
    "products": "side VARCHAR, op VARCHAR, phase VARCHAR, kind VARCHAR, shapes VARCHAR, flops DOUBLE",
    "step": "a_ms DOUBLE, b_ms DOUBLE, ratio DOUBLE, usual_ratio DOUBLE, clear BOOLEAN, same_framework BOOLEAN, same_script BOOLEAN",
    "sides": "side VARCHAR, framework VARCHAR, script VARCHAR, version VARCHAR, newer BOOLEAN, compiled BOOLEAN, frameworks INTEGER",
    "settings": "name VARCHAR, a VARCHAR, b VARCHAR",
}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class PairTest:
    """One test in a rule file. given: rows of the tables; expect: fires, message_contains."""

    name: str
    given: Rows
    expect: dict[str, Any]


@dataclass(frozen=True)
class PairRule:
    """A rule about two sides."""

    id: str
    code: str
    title: str
    severity: str
    confidence: str
    summary: str
    why: str
    fix: tuple[Fix, ...]
    query: str
    message: str
    references: tuple[str, ...]
    since: str
    tests: tuple[PairTest, ...]
    params: dict[str, float] = field(default_factory=dict)


@cache
def pair_rules(folder: Path | None = None) -> tuple[PairRule, ...]:
    """The rules of a folder (default: those that come with tracediag) in order of code. Raises msgspec.ValidationError for a wrong file."""
    files = sorted((folder or rules_folder() / "pairs").glob("*.yaml"))
    rules = [msgspec.convert(yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER), PairRule) for file in files]
    return tuple(sorted(rules, key=lambda rule: rule.code))


def run_pair_rules(rules: Sequence[PairRule], tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[dict[str, Any], ...]:
    """A finding for each rule whose query returns a row, in order of the rules."""
    connection = _database(tables)
    try:
        found = [(rule, _first(connection, rule)) for rule in rules]
    finally:
        connection.close()
    return tuple(_finding(rule, facts) for rule, facts in found if facts is not None)


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
    answer = connection.execute(rule.query, rule.params) if rule.params else connection.execute(rule.query)
    names = [column[0] for column in answer.description or ()]
    row = answer.fetchone()
    return None if row is None else dict(zip(names, row, strict=True))


def _finding(rule: PairRule, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rule": rule.id, "code": rule.code, "title": rule.title, "severity": str(facts.get("severity") or rule.severity),
        "confidence": rule.confidence, "message": fill_message(rule.message, facts), "side": facts.get("side"), "why": rule.why,
        "fix": [{"framework": fix.framework, "text": fix.text, "code": fix.code} for fix in rule.fix], "references": list(rule.references),
    }  # fmt: skip
