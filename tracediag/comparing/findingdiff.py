"""Findings gone, new and the same; which of them can be the cause of a difference, and how its prediction held."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracediag.comparing.side import Side
    from tracediag.findings import Finding

__all__ = ["causes", "findings_of", "fixes"]

LOUD = ("high", "medium")
REDUCED = 0.25
"""A finding that costs less than this part of what it did counts as fixed, where it is not loud any more."""
SLACK = (0.8, 1.25)
"""How far a measured ratio may lie outside a prediction and still meet it."""
Row = dict[str, Any]


def findings_of(a: Side, b: Side) -> dict[str, tuple[Row, ...]]:
    """only_a, only_b: findings of rules that the other side does not name; both: what each side says, with status same | reduced | grown.

    Findings meet by rule: the scripts may differ, and with them the lines.
    """
    left, right = _by_rule(a), _by_rule(b)
    both = []
    for rule in [rule for rule in left if rule in right]:
        one, two = _row(left[rule][0], a, left[rule]), _row(right[rule][0], b, right[rule])
        both.append({"rule": rule, "code": one["code"], "title": one["title"], "category": one["category"],
                     "status": _status(one, two), "a": one, "b": two})  # fmt: skip
    return {
        "only_a": tuple(_row(left[rule][0], a, left[rule]) for rule in left if rule not in right),
        "only_b": tuple(_row(right[rule][0], b, right[rule]) for rule in right if rule not in left),
        "both": tuple(both),
    }


def _by_rule(side: Side) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in side.report.findings:
        found[finding.rule].append(finding)
    return found


def _row(first: Finding, side: Side, same: list[Finding]) -> Row:
    """The loudest finding of a rule; share and time of all of them."""
    share = round(min(sum(finding.share for finding in same), 1.0), 6)
    own = first.category != "measurement"
    return {
        "rule": first.rule, "code": first.code, "title": first.title, "category": first.category, "severity": first.severity,
        "confidence": first.confidence, "share": share, "share_of": first.share_of,
        "ms_per_step": round(share * side.step.ns / 1e6, 6) if own else None,
        "speedup": asdict(first.speedup) if first.speedup else None, "where": [asdict(place) for place in first.where],
        "message": first.message, "changes_training": first.changes_training, "fingerprint": first.fingerprint,
        "evidence": [dict(row) for row in first.evidence],
    }  # fmt: skip


def _status(one: Row, two: Row) -> str:
    for status, now, then in (("reduced", two, one), ("grown", one, two)):
        if then["severity"] in LOUD and now["severity"] not in LOUD and _cost(now) < REDUCED * _cost(then):
            return status
    return "same"


def _cost(row: Row) -> float:
    return float(row["ms_per_step"] or row["share"])


def causes(findings: dict[str, tuple[Row, ...]], side: str) -> list[Row]:
    """Findings of side 'a' or 'b' that can be why it is slower: loud there, gone or reduced on the other side, no fault of measurement."""
    status = "reduced" if side == "a" else "grown"
    rows = [*findings[f"only_{side}"], *(row[side] for row in findings["both"] if row["status"] == status)]
    rows = [row for row in rows if row["severity"] in LOUD and row["category"] != "measurement"]
    return sorted(rows, key=lambda row: (LOUD.index(row["severity"]), row["confidence"] == "possible"))


def fixes(findings: dict[str, tuple[Row, ...]], ratio: float | None, changed: bool, same_framework: bool = True) -> tuple[Row, ...]:
    """What each finding that only the slower side has had predicted, and what was measured; state: gone in b | new in b.

    Where the slower side has none, those of the faster one: they are gone, and it helped nothing. Where nothing changed (operations, work,
    settings), a finding of the faster side alone is none of its own: the same time is a larger share of a shorter step.
    ratio: step a / step b. measured: step with the finding by step without it, of all changes together; alone: there is no other finding.
    held: it lies in the prediction, with some slack; None: nothing was predicted. A prediction is one of a fix, never of another framework:
    between two there is none. Without a ratio (a side shows no time) nothing is told.
    """
    if not ratio:
        return ()
    slower = "a" if ratio >= 1 else "b"
    side, found = slower, causes(findings, slower)
    if not found and changed:
        side = "ba"["ab".index(slower)]
        found = causes(findings, side)
    measured = ratio if side == "a" else 1 / ratio
    predicted = [row["speedup"] if same_framework else None for row in found]
    return tuple(
        {
            "rule": row["rule"], "title": row["title"], "state": "gone" if side == "a" else "new", "predicted": speedup,
            "measured": measured, "held": _held(speedup, measured), "alone": len(found) == 1, "changes_training": row["changes_training"],
        }
        for row, speedup in zip(found, predicted, strict=True)
    )  # fmt: skip


def _held(predicted: Row | None, measured: float) -> bool | None:
    if predicted is None:
        return None
    high = predicted["high"]
    return bool(measured >= SLACK[0] * predicted["low"] and (high is None or measured <= SLACK[1] * high))
