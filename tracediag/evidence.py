"""What a finding shows: the ops behind it, grouped, with count and time a step, and the lines of the user's code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag import intervals
from tracediag.findings import Place
from tracediag.gaps import OWNERS
from tracediag.rulecheck import PLACEHOLDER

if TYPE_CHECKING:
    from tracediag.claims import Claim, Totals
    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["evidence", "fill_message", "format_fact", "places"]

Row = dict[str, Any]

MAX_ROWS = 5
MAX_PLACES = 3
MAX_MEASURED = 8
"""Groups of ops whose time is measured exactly; the others are shorter by the sum of their durations."""
MAX_CLIMB = 100

_PLACE = re.compile(r"(.+):(\d+)")


def evidence(trace: Trace, claim: Claim, totals: Totals) -> tuple[Row, ...]:
    """At most five rows, longest first: claimed steps of the series, idle time, ops by name, kind and shapes."""
    rows = [*_series_rows(claim, totals), *_gap_rows(trace, claim, totals), *_op_rows(trace, claim, totals)]
    rows.sort(key=lambda row: (-row["ms_per_step"], row["op"], str(row["kind"]), str(row.get("shapes"))))
    return tuple(rows[:MAX_ROWS])


def _ms(ns: int, steps: int) -> float:
    return round(ns / steps / 1e6, 6)


def _op_rows(trace: Trace, claim: Claim, totals: Totals) -> Iterator[Row]:
    inside = intervals.locate(*totals.steps, trace.col("start_ns")[claim.op_ids]) >= 0
    ids = claim.op_ids[inside] if inside.any() else claim.op_ids
    if len(ids) == 0:
        return
    shapes = trace.strings("in_shapes"), trace.strings("out_shapes")
    columns = trace.strings("name"), trace.strings("kind"), *shapes
    codes = np.stack([column.codes[ids] for column in columns], axis=1)
    _, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    rough = np.zeros(len(first), np.int64)
    np.add.at(rough, group, trace.col("dur_ns")[ids])
    for place in np.argsort(-rough, kind="stable")[:MAX_MEASURED]:
        members, head = ids[group == place], int(ids[first[place]])
        spans = intervals.intersect(intervals.merge(*trace.subtree_claim(members)), totals.steps)
        name, kind, in_shapes, out_shapes = (_text(column.codes[head], column.values) for column in columns)
        row = {"op": name, "kind": kind, "count_per_step": round(len(members) / (totals.count * totals.ranks), 3)}
        row |= {"ms_per_step": _ms(intervals.total(spans), totals.count * totals.ranks), "shapes": in_shapes or out_shapes}
        row |= {"out_shapes": out_shapes} if in_shapes and out_shapes else {}
        label = trace.strings("label")
        yield row | ({"label": _text(label.codes[head], label.values)} if label.codes[head] >= 0 else {})


def _text(code: int, values: tuple[str, ...]) -> str | None:
    return values[code] if code >= 0 else None


def _gap_rows(trace: Trace, claim: Claim, totals: Totals) -> Iterator[Row]:
    if len(claim.gap_ids) == 0:
        return
    owners = trace.gap_table.owner[claim.gap_ids]
    idle = "idle device" if trace.has_device else "between operators"
    for owner in np.unique(owners):
        ids = claim.gap_ids[owners == owner]
        spans = intervals.intersect(intervals.merge(*trace.gap_claim(ids)), totals.steps)
        yield {
            "op": f"{idle} ({OWNERS[owner]})",
            "kind": None,
            "count_per_step": round(len(ids) / (totals.count * totals.ranks), 3),
            "ms_per_step": _ms(intervals.total(spans), totals.count * totals.ranks),
            "shapes": None,
        }


def _series_rows(claim: Claim, totals: Totals) -> Iterator[Row]:
    if claim.by_series:
        yield {
            "op": "steps of the run, without the profiler",
            "kind": None,
            "count_per_step": round(len(claim.series_steps) / len(totals.series_steps), 3),
            "ms_per_step": _ms(claim.series_ns, len(totals.series_steps)),
            "shapes": None,
            "steps": [int(step) for step in claim.series_steps[:MAX_ROWS]],
        }


def places(trace: Trace, claim: Claim) -> tuple[Place, ...]:
    """At most three lines of the user's code: those that the query names, else those of the claimed ops by their time."""
    named = claim.sources or _op_sources(trace, claim)
    found = (_PLACE.fullmatch(source) for source, _ in named)
    return tuple(Place(match[1], int(match[2])) for match in found if match)[:MAX_PLACES]


def _op_sources(trace: Trace, claim: Claim) -> tuple[tuple[str, int], ...]:
    """Lines of the claimed ops, and of what the host did in the claimed gaps; the latter only where they are known of most of that time,
    else a line that has little to do with it would be the one named."""
    gaps = trace.gap_table
    owners = gaps.host[claim.gap_ids]
    gap_ns = (gaps.end - gaps.start)[claim.gap_ids]
    source = trace.strings("source")
    inside = _codes(trace, owners)
    if gap_ns[inside >= 0].sum() * 2 < gap_ns.sum():
        inside = np.full(len(inside), -1, np.int64)
    code = np.concatenate([_codes(trace, claim.op_ids), inside])
    weight = np.concatenate([trace.col("dur_ns")[claim.op_ids], gap_ns])
    sums = np.zeros(len(source.values), np.int64)
    np.add.at(sums, code[code >= 0], weight[code >= 0])
    named = [(source.values[i], int(sums[i])) for i in np.flatnonzero(np.bincount(code[code >= 0], minlength=len(sums)))]
    return tuple(sorted(named, key=lambda item: (-item[1], item[0])))


def _codes(trace: Trace, ids: IntArray) -> IntArray:
    """Code of the source line of each op or of the nearest op above it that has one; -1: none, or no op."""
    known = ids >= 0
    codes = np.full(len(ids), -1, np.int64)
    if known.any():
        codes[known] = trace.strings("source").codes[_climb(trace, ids[known])]
    return codes


def _climb(trace: Trace, ids: IntArray) -> IntArray:
    """Each op, or the nearest op above it (device work: its launch) that has a source line."""
    codes = trace.strings("source").codes
    above = np.where(trace.parent >= 0, trace.parent, trace.launch)
    for _ in range(MAX_CLIMB):
        up: IntArray = np.where(codes[ids] < 0, above[ids], -1)
        if not (up >= 0).any():
            break
        ids = np.where(up >= 0, up, ids).astype(np.int64)
    return ids


def fill_message(template: str, facts: Mapping[str, Any]) -> str:
    """Put facts into the plain {name} places of a message; nothing else is interpreted."""
    return " ".join(PLACEHOLDER.sub(lambda match: format_fact(facts.get(match[1])), template).split())


def format_fact(value: Any) -> str:
    """A value for people: three significant digits for fractions, whole numbers in full, NULL as `unknown`."""
    if value is None:
        return "unknown"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(format_fact(item) for item in value)
    return str(value)
