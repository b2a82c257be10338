"""Where no device took part: the time of each step in which no operator runs, as gaps of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.gaps import OWNERS, Gaps, HostRows
from tracediag.intervals import intersect, merge, subtract
from tracediag.phases import INPUT_THREADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.assemble import Events
    from tracediag.columns import Coded, IntArray
    from tracediag.intervals import Spans

__all__ = ["find_host_gaps"]


def find_host_gaps(
    events: Events, lineage: tuple[IntArray, IntArray], kinds: Coded, windows: dict[int, Spans], ranks: Sequence[int]
) -> Gaps:
    """Gaps of the host within the steps of each rank. ranks: rank of each key; windows: merged time of its steps, by key.

    Busy is every operator and every wait for input; what is left is Python, framework code, or a wait for something outside: owner
    `python`. Owner `comm` where a collective is under way meanwhile. The host row is the innermost event around the gap on the lane that
    runs the next operator.
    """
    finder = HostRows(events, lineage)
    pipeline = events.lane.where([INPUT_THREADS in lane for lane in events.lane.values])  # works beside the step, not for it
    busy_rows = np.flatnonzero((events.role_is("op") & ~pipeline) | kinds.isin(["input_wait", "compile"]))
    talk_rows = np.flatnonzero(events.role_is("annotation") & kinds.isin(["collective"]))
    parts = []
    for key, window in windows.items():
        rank = _rank_rows(events, ranks[key], busy_rows)
        busy = merge(events.start[rank], events.end[rank])
        whole = subtract(window, busy)
        talking = _rank_rows(events, ranks[key], talk_rows)
        talk = intersect(whole, merge(events.start[talking], events.end[talking]))
        rank = rank[np.argsort(events.start[rank], kind="stable")]
        for name, idle in (("python", subtract(whole, talk)), ("comm", talk)):
            parts.append((np.full(len(idle[0]), key, np.int64), *idle, *_around(events, finder, rank, idle, name)))
    columns = [np.concatenate([part[i] for part in parts]) for i in range(6)] if parts else [np.zeros(0, np.int64)] * 6
    order = np.lexsort((columns[1], columns[0]))
    return Gaps(*(column[order] for column in columns))


def _around(events: Events, finder: HostRows, rank: IntArray, idle: Spans, owner: str) -> tuple[IntArray, IntArray, IntArray]:
    """(owner, host row, next row) of each gap of a rank. rank: its busy rows in order of start."""
    at = np.searchsorted(events.start[rank], idle[1], "left")
    following = np.where(at < len(rank), rank[np.minimum(at, len(rank) - 1)], -1) if len(rank) else np.full(len(idle[0]), -1, np.int64)
    lane = np.where(following >= 0, events.lane.codes[following], _usual_lane(events, rank)).astype(np.int32)
    return np.full(len(idle[0]), OWNERS.index(owner), np.int64), finder.innermost(lane, idle[0]), following


def _rank_rows(events: Events, rank: int, rows: IntArray) -> IntArray:
    mine = np.where(events.rank.valid[rows], events.rank.values[rows], -1) == rank
    return np.asarray(rows[mine])


def _usual_lane(events: Events, rows: IntArray) -> int:
    """The lane with most of the rows."""
    return int(np.bincount(events.lane.codes[rows]).argmax()) if len(rows) else 0
