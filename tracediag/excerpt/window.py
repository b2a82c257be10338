"""The stretch of a trace that stands for the whole: the median step and its neighbours, or all of it where no step is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.distinct import distinct

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["Window", "choose"]


@dataclass(frozen=True)
class Window:
    """A stretch of one rank's time line, ns from the start of the trace. steps: the rows of the step table in it, in order of time."""

    rank: int
    start: int
    end: int
    steps: IntArray

    def rows(self, trace: Trace) -> IntArray:
        """Rows of `ops` that overlap it; one without a duration counts where it stands."""
        return np.flatnonzero((trace.ranks == self.rank) & (trace.start < self.end) & (np.maximum(trace.end, trace.start + 1) > self.start))

    def as_dict(self, trace: Trace) -> dict[str, Any]:
        """Where it lies, and of what it is a part. start_ns: from the start of the trace; rank: null where the trace names none."""
        ranks = distinct(trace.ranks)
        return {
            "start_ns": self.start,
            "length_ns": self.end - self.start,
            "rank": self.rank if self.rank >= 0 else None,
            "ranks": len(ranks),
            "all_steps": int((trace.step_table.rank == self.rank).sum()) if trace.has_steps else 0,
            "trace_ns": int(trace.end.max(initial=0)),
        }


def choose(trace: Trace, most: int) -> Window:
    """The window of the first rank: its median step with the one before and the one after, the step alone where that is over `most` ops."""
    steps = trace.step_table
    rank = int(distinct(steps.rank)[0]) if len(steps) else -1
    mine = np.flatnonzero(steps.rank == rank)
    mine = mine[np.argsort(steps.start[mine], kind="stable")]
    if not trace.has_steps:
        return _whole(trace, rank)
    middle = _median(steps.end[mine] - steps.start[mine], steps.settled[mine])
    around = mine[max(middle - 1, 0) : middle + 2]
    wide = _window(trace, rank, around)
    return wide if len(wide.rows(trace)) <= most else _window(trace, rank, mine[middle : middle + 1])


def _window(trace: Trace, rank: int, rows: IntArray) -> Window:
    return Window(rank, int(trace.step_table.start[rows].min()), int(trace.step_table.end[rows].max()), rows)


def _whole(trace: Trace, rank: int) -> Window:
    mine = trace.ranks == rank
    if not mine.any():
        return Window(rank, 0, 1, np.zeros(0, np.int64))
    start = int(trace.start[mine].min())
    return Window(rank, start, max(int(trace.end[mine].max()), start + 1), np.zeros(0, np.int64))


def _median(length: IntArray, settled: npt.NDArray[np.bool_]) -> int:
    """Place of the step nearest to the median of the settled ones; of several the first that has a step on either side."""
    usual = np.flatnonzero(settled) if settled.any() else np.arange(len(length))
    off = np.abs(length[usual] - np.median(length[usual]))
    inner = (usual > 0) & (usual < len(length) - 1)
    return int(usual[np.lexsort((usual, ~inner, off))[0]])
