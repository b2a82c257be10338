"""Run one rule's query and turn its rows into claims on time: sets of intervals of the trace, and parts of the step series."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag import intervals
from tracediag.findings import CONFIDENCES
from tracediag.keeps import keep_bounds, valid_rows
from tracediag.rulecheck import CLAIM_COLUMNS, output_columns
from tracediag.severity import lowest_confidence
from tracediag.stats import first_warm_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from tracediag.columns import IntArray
    from tracediag.rule import Rule
    from tracediag.trace import Trace

__all__ = ["Claim", "RowError", "Totals", "claims_of", "totals_of"]

Array = npt.NDArray[Any]


class RowError(ValueError):
    """A query returned rows that cannot be a claim; the rule is skipped with this reason."""


@dataclass(frozen=True)
class Totals:
    """What shares are parts of.

    steps: merged intervals of the steps, ns; step_ns: their length; count: training steps of each rank; ranks: number of ranks.

    series_steps, series_wall: number and wall ns of the steps measured without the profiler, sorted by step, shape (m,).
    """

    steps: intervals.Spans
    step_ns: int
    count: int
    ranks: int
    series_steps: IntArray
    series_wall: IntArray

    @property
    def series_ns(self) -> int:
        """Total wall time of the unprofiled steps."""
        return int(self.series_wall.sum())


@dataclass(frozen=True, eq=False)
class Claim:
    """The rows of one rule with one group_key: one finding, if it is left enough time.

    op_ids, gap_ids: sorted row numbers claimed. starts, ends: merged intervals in the steps, ns; after ownership is settled, what is
    owned of them. series_steps, series_claims: unprofiled steps and the ns of each that are claimed. after_ns: what a step takes
    without the cause, as the recorded steps show it, ns. share: part of the step claimed (owned). stated: the share that a
    measurement rule's query gave. sources: (file:line or None, row weight in ns) of each op row.
    """

    rule: str
    code: str
    group: str
    op_ids: IntArray
    gap_ids: IntArray
    starts: IntArray
    ends: IntArray
    series_steps: IntArray
    series_claims: IntArray
    after_ns: float | None
    share: float
    stated: float | None
    keep_low: float | None
    keep_high: float | None
    confidence: str
    sources: tuple[tuple[str, int], ...]
    facts: Mapping[str, Any]

    @property
    def spans(self) -> intervals.Spans:
        """The claimed (owned) intervals."""
        return self.starts, self.ends

    @property
    def by_series(self) -> bool:
        """The claim is priced by the step series, not by intervals of the trace."""
        return len(self.series_steps) > 0

    @property
    def series_ns(self) -> int:
        """Claimed (owned) wall time of the series, ns."""
        return int(self.series_claims.sum())

    def measure(self, totals: Totals) -> float:
        """Share of the step: of the series where it claims some, else as the query stated it, else of the recorded steps."""
        if self.by_series:
            return self.series_ns / totals.series_ns if totals.series_ns else 0.0
        if self.stated is not None:
            return min(max(self.stated, 0.0), 1.0)
        return intervals.total(self.spans) / totals.step_ns if totals.step_ns else 0.0


def totals_of(trace: Trace, *, warm: bool = True) -> Totals:
    """The denominators of all shares. warm: the series begins after the warm-up (see `stats.first_warm_step`)."""
    steps = intervals.merge(*trace.step_intervals())
    series = trace.series
    numbers, wall = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if series is not None and len(series):
        free = ~series["profiled"].fillna(False).to_numpy(dtype=bool)
        numbers = series["step"].to_numpy(dtype=np.int64)[free]
        wall = series["wall_ns"].to_numpy(dtype=np.int64)[free]
        if warm:
            late = numbers >= first_warm_step(trace)
            numbers, wall = numbers[late], wall[late]
        order = np.argsort(numbers, kind="stable")
        numbers, wall = numbers[order], wall[order]
    ranks = max(len(np.unique(trace.step_table.rank)), 1)
    count = max(int(trace.step_table.settled.sum()) * trace.steps_per_row // ranks, 1)
    return Totals(steps, intervals.total(steps), count, ranks, numbers, wall)


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _fetch(trace: Trace, rule: Rule, seconds: float) -> dict[str, Array]:
    """The rows of the query in a total order: by group, claimed ids, then every other column. Raises duckdb.Error."""
    connection = trace.connection()
    with _time_limit(connection, seconds):
        names = output_columns(rule, connection)
        first = [name for name in ("group_key", "op_id", "gap_id", "series_step") if name in names]
        order = ", ".join(f'"{name}" NULLS LAST' for name in [*first, *(name for name in names if name not in first)])
        query = f"SELECT * FROM (\n{rule.query}\n) AS claims ORDER BY {order}"
        used = {name: value for name, value in rule.params.items() if name != "min_share"}
        rows: dict[str, Array] = connection.execute(query, used).fetchnumpy()
    return rows


def claims_of(trace: Trace, rule: Rule, totals: Totals, *, seconds: float) -> list[Claim]:
    """One claim for each group_key of the rule's rows, in order of group_key. Raises duckdb.Error or RowError."""
    rows = _fetch(trace, rule, seconds)
    keys = rows["group_key"]
    if np.ma.getmaskarray(keys).any():
        raise RowError("group_key is NULL in some rows")
    keys = np.asarray(keys, dtype=object)
    if len(keys) == 0:
        return []
    edges = np.append(np.flatnonzero(np.append(True, keys[1:] != keys[:-1])), len(keys))
    return [
        _claim(trace, rule, str(keys[low]), {name: column[low:high] for name, column in rows.items()}, totals)
        for low, high in pairwise(edges)
    ]


def _ids(rows: Mapping[str, Array], name: str, count: int) -> IntArray:
    values, valid = valid_rows(rows, name)
    ids = np.sort(values[valid].astype(np.int64), kind="stable")  # they come sorted; np.unique would hash them
    ids = ids[np.append(True, ids[1:] != ids[:-1])] if len(ids) else ids
    if len(ids) and (ids[0] < 0 or ids[-1] >= count):
        raise RowError(f"{name} {int(ids[-1] if ids[0] >= 0 else ids[0])} does not exist")
    return ids


def _claim(trace: Trace, rule: Rule, group: str, rows: Mapping[str, Array], totals: Totals) -> Claim:
    op_ids = _ids(rows, "op_id", len(trace.parent))
    gap_ids = _ids(rows, "gap_id", len(trace.gap_table.start))
    parts = _op_spans(trace, rows, op_ids)
    parts += [trace.gap_claim(gap_ids)] if len(gap_ids) else []
    spans = intervals.empty()
    if parts:
        spans = intervals.merge(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))
        spans = intervals.intersect(spans, totals.steps)
    steps, claimed = _series(rows, totals)
    keep_low, keep_high = keep_bounds(trace, rule, rows)
    stated, given = valid_rows(rows, "share")
    after, shown = valid_rows(rows, "after_ns")
    claim = Claim(
        rule=rule.id,
        code=rule.code,
        group=group,
        op_ids=op_ids,
        gap_ids=gap_ids,
        starts=spans[0],
        ends=spans[1],
        series_steps=steps,
        series_claims=claimed,
        after_ns=float(after[shown].max()) if shown.any() else None,
        share=0.0,
        stated=float(stated[given].max()) if given.any() else None,
        keep_low=keep_low,
        keep_high=keep_high,
        confidence=_confidence(rule, rows),
        sources=_sources(trace, rows),
        facts=_facts(rows),
    )
    return replace(claim, share=claim.measure(totals))


def _op_spans(trace: Trace, rows: Mapping[str, Array], op_ids: IntArray) -> list[intervals.Spans]:
    """What the op rows claim: all that the op owns, or only the part of it from `from_ns` to `to_ns`, where the query says so."""
    begin, given = valid_rows(rows, "from_ns")
    end, ended = valid_rows(rows, "to_ns")
    ids, has_op = valid_rows(rows, "op_id")
    part = given & ended & has_op
    if not part.any():
        return [trace.subtree_claim(op_ids)] if len(op_ids) else []
    cut, whole = ids[part].astype(np.int64), ids[has_op & ~part].astype(np.int64)
    shift = trace.shift[cut]
    start = np.maximum(begin[part].astype(np.int64), trace.start[cut]) + shift
    stop = np.minimum(end[part].astype(np.int64), trace.end[cut]) + shift
    return [intervals.merge(start, stop), *([trace.subtree_claim(whole)] if len(whole) else [])]


def _series(rows: Mapping[str, Array], totals: Totals) -> tuple[IntArray, IntArray]:
    """Claimed ns of each unprofiled step, at most its wall time; claims on profiled steps are left out (their time is inflated)."""
    steps, known = valid_rows(rows, "series_step")
    claimed, given = valid_rows(rows, "claim_ns")
    both = known & given
    steps, claimed = steps[both].astype(np.int64), np.rint(claimed[both].astype(np.float64)).astype(np.int64)
    place = np.searchsorted(totals.series_steps, steps)
    found = place < len(totals.series_steps)
    found[found] = totals.series_steps[place[found]] == steps[found]
    sums = np.zeros(len(totals.series_steps), np.int64)
    np.add.at(sums, place[found], np.maximum(claimed[found], 0))
    sums = np.minimum(sums, totals.series_wall)
    return totals.series_steps[sums > 0], sums[sums > 0]


def _confidence(rule: Rule, rows: Mapping[str, Array]) -> str:
    values, valid = valid_rows(rows, "confidence")
    found = {str(value) for value in values[valid]}
    if found - set(CONFIDENCES):
        raise RowError(f"confidence {sorted(found - set(CONFIDENCES))[0]!r} is none of {', '.join(CONFIDENCES)}")
    return lowest_confidence([rule.confidence, *found])


def _sources(trace: Trace, rows: Mapping[str, Array]) -> tuple[tuple[str, int], ...]:
    """Lines that the query names, with the duration of the ops of their rows, in ns; longest first."""
    values, valid = valid_rows(rows, "source")
    ids, has_op = valid_rows(rows, "op_id")
    weight = np.zeros(len(valid), np.int64)
    weight[has_op] = trace.col("dur_ns")[ids[has_op].astype(np.int64)]
    sums: dict[str, int] = {}
    for value, ns in zip(values[valid], weight[valid], strict=True):
        sums[str(value)] = sums.get(str(value), 0) + int(ns)
    return tuple(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _facts(rows: Mapping[str, Array]) -> dict[str, Any]:
    """Value of each column in the first row; NULL becomes None."""
    first: dict[str, Any] = {}
    for name in rows:
        values, valid = valid_rows(rows, name)
        if name not in CLAIM_COLUMNS or name in ("group_key", "source", "confidence"):
            first[name] = values[0].item() if valid[0] and isinstance(values[0], np.generic) else values[0] if valid[0] else None
    return first
