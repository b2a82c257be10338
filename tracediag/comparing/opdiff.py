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
HALF = 0.5
"""So are counts that differ by less than this: work that others finish falls into this step or the next."""
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
    differs = [unit for unit in matched if unit.by != "name" or not _same_count(*(sum(g.count for g in side) for side in (unit.a, unit.b)))]
    changed = _changed(a.groups, b.groups) if a.trace is not None and b.trace is not None else 0.0  # a report tells no operations
    told = {
        "matched": dict(sorted(Counter(unit.by for unit in matched).items())),
        "only_a": _rows(only_a), "only_b": _rows(only_b), "changed": _rows(differs), "largest": _rows(matched),
        "counts": {"only_a": len(only_a), "only_b": len(only_b), "changed": len(differs)},
        "changed_share": round(changed, 6),
        "lines": _lines(a, b) if a.frameworks == b.frameworks else [],
    }  # fmt: skip
    return OpDiff(told, changed)


def _changed(a: Iterable[OpGroup], b: Iterable[OpGroup]) -> float:
    """Part of both steps' work in operations whose name, shapes and strides have another count on the other side."""
    sums: dict[tuple[str, str | None, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for side, groups in enumerate((a, b)):
        for group in groups:
            if group.part.owner is None:
                row = sums[group.name, group.shapes, group.strides]
                row[side] += group.count
                row[2] += group.ns
    whole = sum(ns for *_, ns in sums.values())
    return sum(ns for one, two, ns in sums.values() if not _same_count(one, two)) / whole if whole else 0.0


def _same_count(one: float, two: float) -> bool:
    return abs(one - two) <= max(COUNTS * max(one, two), HALF)


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
