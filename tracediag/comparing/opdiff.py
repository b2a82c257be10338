"""Operations and lines in which two runs of one framework differ: new, vanished, changed counts; and how much of the step that is."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediag.comparing.difference import unit_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracediag.comparing.matching import Unit
    from tracediag.comparing.opgroups import OpGroup
    from tracediag.comparing.side import Side

__all__ = ["OpDiff", "op_diff"]

MOST = 10
COUNTS = 0.05
"""Counts a step that differ by no more than this part are the same: shapes of some batches vary."""
MS = 1e6


@dataclass(frozen=True)
class OpDiff:
    """told: what the comparison says. changed: part of both steps in operations that differ in name, shapes or count."""

    told: dict[str, Any]
    changed: float


def op_diff(a: Side, b: Side, units: Sequence[Unit]) -> OpDiff:
    """From the matched units of both sides; idle time counts for the lines only."""
    work = [unit for unit in units if all(group.part.owner is None for group in (*unit.a, *unit.b))]
    matched = [unit for unit in work if unit.a and unit.b]
    only_a, only_b = [unit for unit in work if not unit.b], [unit for unit in work if not unit.a]
    differs = [unit for unit in matched if unit.by != "name" or not _same_count(unit)]
    whole = sum(unit.a_ns + unit.b_ns for unit in work)
    part = sum(unit.a_ns + unit.b_ns for unit in (*differs, *only_a, *only_b))
    told = {
        "matched": dict(sorted(Counter(unit.by for unit in matched).items())),
        "only_a": _rows(only_a), "only_b": _rows(only_b), "changed": _rows(differs), "largest": _rows(matched),
        "counts": {"only_a": len(only_a), "only_b": len(only_b), "changed": len(differs)},
        "changed_share": round(part / whole, 6) if whole else 0.0,
        "lines": _lines(a, b) if a.frameworks == b.frameworks else [],
    }  # fmt: skip
    return OpDiff(told, part / whole if whole else 0.0)


def _same_count(unit: Unit) -> bool:
    one, two = (sum(group.count for group in groups) for groups in (unit.a, unit.b))
    return abs(one - two) <= COUNTS * max(one, two)


def _rows(units: Iterable[Unit]) -> list[dict[str, Any]]:
    return [unit_row(unit) | {"phase": unit.phase, "kind": unit.kind} for unit in list(units)[:MOST]]


def _lines(a: Side, b: Side) -> list[dict[str, Any]]:
    """Exposed time a step by line of the user's code, the largest difference first."""
    one, two = _by_line(a.groups), _by_line(b.groups)
    rows: list[dict[str, Any]] = [
        {"source": line, "a_ms": round(one.get(line, 0.0) / MS, 6), "b_ms": round(two.get(line, 0.0) / MS, 6)}
        for line in sorted({*one, *two})
    ]
    return sorted(rows, key=lambda row: -abs(row["a_ms"] - row["b_ms"]))[:MOST]


def _by_line(groups: Iterable[OpGroup]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for group in groups:
        if group.source is not None:
            sums[group.source] += group.ns
    return sums
