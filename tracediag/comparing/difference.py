"""Step a minus step b, split over parts whose whole nanoseconds add up to it; each with its operations and the finding that explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.comparing.findingdiff import causes
from tracediag.comparing.parts import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracediag.comparing.matching import Unit
    from tracediag.comparing.opgroups import OpGroup
    from tracediag.comparing.parts import Part
    from tracediag.comparing.side import Side

__all__ = ["UNATTRIBUTED", "attributed", "difference_of", "unit_row"]

UNATTRIBUTED = (OUTSIDE, "long_steps", "unknown")
"""Owners of time whose reason the trace does not show."""
MOST_OPS = 6
LEAST_OVERLAP = 0.2
"""Part of a difference that a finding's evidence must reach to be named as its cause."""
MS = 1e6
Row = dict[str, Any]


def difference_of(a: Side, b: Side, units: Sequence[Unit], findings: Mapping[str, Any]) -> tuple[Row, ...]:
    """One row a part that either side has time in, the largest difference first."""
    whole = a.step.ns - b.step.ns
    by_part = _units_by_part(units)
    found = {"a": causes(dict(findings), "a"), "b": causes(dict(findings), "b")}
    rows = []
    for part in {*a.parts, *b.parts}:
        one, two = a.parts.get(part, 0), b.parts.get(part, 0)
        delta = one - two
        ops = [unit_row(unit, part) for unit in by_part.get(part, ())]
        rows.append({
            "phase": part.phase, "kind": part.kind, "owner": part.owner, "a_ms": one / MS, "b_ms": two / MS, "delta_ms": delta / MS,
            "share": delta / whole if whole else None, "cause": _cause(part, delta, ops, found["a" if delta > 0 else "b"]),
            "ops": ops[:MOST_OPS], "more_ops": max(len(ops) - MOST_OPS, 0),
        })  # fmt: skip
    return tuple(sorted(rows, key=lambda row: (-abs(row["delta_ms"]), str(row["phase"]), str(row["kind"]), str(row["owner"]))))


def attributed(rows: Iterable[Row]) -> float | None:
    """Part of the sum of all differences, up and down, whose reason the trace shows or a finding names; None where there is none."""
    rows = list(rows)
    whole = sum(abs(row["delta_ms"]) for row in rows)
    lost = sum(abs(row["delta_ms"]) for row in rows if row["owner"] in UNATTRIBUTED and row["cause"] is None)
    return 1 - lost / whole if whole else None


def _units_by_part(units: Iterable[Unit]) -> dict[Part, list[Unit]]:
    found: dict[Part, list[Unit]] = {}
    for unit in units:
        for part in dict.fromkeys(group.part for group in (*unit.a, *unit.b)):
            found.setdefault(part, []).append(unit)
    for part, mine in found.items():
        mine.sort(key=lambda unit: -abs(_ns(unit.a, part) - _ns(unit.b, part)))
    return found


def _ns(groups: Iterable[OpGroup], part: Part | None) -> float:
    return sum(group.ns for group in groups if part is None or group.part == part)


def unit_row(unit: Unit, part: Part | None = None) -> Row:
    """What a unit has on both sides, of one part only where it is given. a, b None: nothing of it on that side."""
    one, two = _ns(unit.a, part), _ns(unit.b, part)
    return {
        "matched": unit.by if unit.a and unit.b else None, "delta_ms": round((one - two) / MS, 6),
        "a": _side_row(unit.a, part, one), "b": _side_row(unit.b, part, two),
    }  # fmt: skip


def _side_row(groups: Sequence[OpGroup], part: Part | None, ns: float) -> Row | None:
    mine = [group for group in groups if part is None or group.part == part]
    if not mine:
        return None
    head = mine[0]
    return {
        "op": head.name, "others": sorted({group.name for group in mine} - {head.name})[:MOST_OPS],
        "shapes": head.shapes or head.out_shapes,
        "count_per_step": round(sum(group.count for group in mine), 3), "launches_per_step": round(sum(g.launches for g in mine), 3),
        "ms_per_step": round(ns / MS, 6), "source": next((group.source for group in mine if group.source), None),
    }  # fmt: skip


def _cause(part: Part, delta: int, ops: Sequence[Row], found: Sequence[Row]) -> Row | None:
    """The finding whose evidence covers most of the difference of a part; None where none covers enough."""
    side = "a" if delta > 0 else "b"
    names = {row[side]["op"] for row in ops if row[side]} | {name for row in ops if row[side] for name in row[side]["others"]}
    best, most = None, LEAST_OVERLAP * abs(delta) / MS
    for finding in found:
        covered = sum(float(row.get("ms_per_step") or 0) for row in finding["evidence"] if _meets(part, row, names))
        if covered > most:
            best, most = finding, covered
    return None if best is None else {"rule": best["rule"], "title": best["title"], "side": side}


def _meets(part: Part, evidence: Mapping[str, Any], names: set[str]) -> bool:
    """Whether a row of evidence is about the time of a part."""
    op, kind = str(evidence.get("op")), evidence.get("kind")
    if op.startswith("steps of the run"):
        return part.owner == "long_steps" or part.kind == "compile"
    if part.owner is not None and kind is None:
        return f"({part.owner})" in op
    return (kind is not None and kind == part.kind) or op in names
