"""What of a recorded step waits for what: host lanes in program order, launches, stream order, and where one waits for another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.intervals import merge
from tracediag.waits import CAP, Hold, Join, Meet, holds, waits, wakes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import IntArray
    from tracediag.intervals import Spans
    from tracediag.meetings import Meetings
    from tracediag.trace import Trace

__all__ = ["DeviceWork", "Graph", "build_graph"]

LANE_SHARE = 0.02
"""Host lanes that launch nothing count where they hold at least this part of the rank's operator time."""
QUEUED_CAP = 20_000
"""ns between two ops of a stream that its order explains; what is longer has a cause that must be found, or it is left out."""

ENOUGH_ROWS, ENOUGH_STEPS = 80_000, 16
"""Of longer recordings the first steps are replayed: about this many rows, at least so many steps."""
USUAL = 0.25
"""Quantile that counts as usual: most of what is longer waits for something."""


@dataclass(frozen=True, eq=False)
class DeviceWork:
    """Work of the devices of one rank, n ops by stream and time; all columns shape (n,), times in ns of the trace.

    row: of the trace. stream: number of the stream. lane: host lane (index) that launched it, -1: unknown. launch: start of that call
    (unknown: its own start). due: start of the last rank of a collective, else its own start. gap: idle time that the order of the stream
    leaves before it. lag: from launch to start. Both hold only what the graph explains.
    """

    row: IntArray
    stream: IntArray
    lane: IntArray
    launch: IntArray
    start: IntArray
    due: IntArray
    end: IntArray
    gap: IntArray
    lag: IntArray
    usual_lag: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def key(self) -> IntArray:
        """Time by which all that an op depends on has happened."""
        return np.maximum(self.due, self.launch)


@dataclass(frozen=True, eq=False)
class Graph:
    """The dependencies of one rank's recording.

    lanes: codes of the host lanes that train. busy: what runs on each. work: device work. joins: where a lane or stream waits, by time.
    steps: rows of the step table, the first ones of a long recording; main: lane (index) that each of them is measured on.
    """

    rank: int
    lanes: tuple[int, ...]
    busy: tuple[Spans, ...]
    work: DeviceWork
    joins: tuple[Join, ...]
    steps: IntArray
    main: IntArray


def build_graph(trace: Trace, rank: int, met: Meetings | None = None) -> Graph | None:
    """The graph of one rank, None where it has no step or no host work in one. met: collectives with the other ranks."""
    mine = trace.ranks == rank
    active = mine & working(trace)
    steps = np.flatnonzero(trace.step_table.rank == rank)
    if len(steps) == 0:
        return None
    few = max(len(steps) * ENOUGH_ROWS // max(int(np.count_nonzero(mine)), 1), ENOUGH_STEPS)
    if few < len(steps):
        steps = steps[:few]
        mine &= np.where(trace.launch >= 0, trace.start[trace.launch], trace.start) < trace.step_table.end[steps[-1]]
        active &= mine
    lanes = _lanes(trace, mine, active)
    if len(lanes) == 0:
        return None
    codes = trace.strings("lane").codes
    busy = tuple(merge(trace.start[rows], trace.end[rows]) for rows in (np.flatnonzero(active & (codes == lane)) for lane in lanes))
    work = _device_work(trace, np.flatnonzero(mine & trace.device_mask), lanes)
    held = list(holds(trace, mine, work))
    work = _without_waits(work, held)
    met_here: list[Meet] = []
    if met is not None:
        work, met_here = _met(work, met)
    joins: list[Join] = [*waits(trace, mine, lanes, work), *wakes(busy), *held, *met_here]
    joins.sort(key=lambda join: (join.time, join.order))
    return Graph(rank, lanes, busy, work, tuple(joins), steps, _main_lanes(trace, active, lanes, steps))


def working(trace: Trace) -> npt.NDArray[np.bool_]:
    """Host rows that do something: operators, calls of functions and of the device runtime, waits for input. Ranges that only name
    what runs inside them, and Python frames, are not."""
    waiting = trace.strings("kind").isin(["input_wait", "compile"]) & ~trace.device_mask
    return trace.strings("role").isin(["op", "runtime", "function"]) | waiting


def _lanes(trace: Trace, mine: npt.NDArray[np.bool_], active: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Lanes that launch device work, and those with a part of the operators; shape of the codes of `lane`."""
    codes, own = trace.strings("lane").codes, trace.col("self_ns")
    calls = trace.launch[mine & (trace.launch >= 0)]
    spent = np.bincount(codes[active], weights=own[active], minlength=1)
    used = np.flatnonzero(spent >= LANE_SHARE * max(spent.sum(), 1))
    return tuple(int(code) for code in np.union1d(codes[calls], used))


def _main_lanes(trace: Trace, active: npt.NDArray[np.bool_], lanes: Sequence[int], steps: IntArray) -> IntArray:
    """For each step the lane with most host events in it: there the step begins and ends."""
    rows = np.flatnonzero(active & (trace.step_row >= 0))
    count = np.zeros((len(trace.step_table), len(lanes)), np.int64)
    at = np.searchsorted(lanes, trace.strings("lane").codes[rows])
    known = (at < len(lanes)) & (np.asarray(lanes)[np.minimum(at, len(lanes) - 1)] == trace.strings("lane").codes[rows])
    np.add.at(count, (trace.step_row[rows[known]], at[known]), 1)
    return np.asarray(np.argmax(count[steps], axis=1), np.int64)


def _device_work(trace: Trace, rows: IntArray, lanes: Sequence[int]) -> DeviceWork:
    codes = trace.strings("lane").codes
    call = trace.launch[rows]
    linked = call >= 0
    lane = np.where(linked, np.searchsorted(lanes, codes[call]), -1)
    launch = np.where(linked, trace.start[call], trace.start[rows])
    stream = np.unique(codes[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)
    order = np.lexsort((rows, np.maximum(trace.start[rows], launch), stream))
    rows, stream, lane, launch = rows[order], stream[order], lane[order], launch[order]
    gap, lag, usual = _explained(stream, lane >= 0, launch, trace.start[rows], trace.end[rows])
    return DeviceWork(rows, stream, lane, launch, trace.start[rows], trace.start[rows], trace.end[rows], gap, lag, usual)


def _met(work: DeviceWork, met: Meetings) -> tuple[DeviceWork, list[Meet]]:
    """The same, with the times at which collectives begin that other ranks take part in, and those."""
    at, of = met.of(work.row)
    due = work.due.copy()
    due[at] = met.last[of]
    columns = (met.last[of], at, met.number[of], met.least[of])
    return replace(work, due=due), [Meet(*map(int, row)) for row in zip(*columns, strict=True)]


def _without_waits(work: DeviceWork, held: Sequence[Hold]) -> DeviceWork:
    """The same, with the usual lag where another stream was waited for: the rest of it is that wait."""
    lag = work.lag.copy()
    at = np.asarray([hold.work for hold in held], np.int64)
    lag[at] = np.minimum(lag[at], work.usual_lag)
    return replace(work, lag=lag)


def _explained(
    stream: IntArray, linked: npt.NDArray[np.bool_], launch: IntArray, start: IntArray, end: IntArray
) -> tuple[IntArray, IntArray, int]:
    """(gap, lag, usual lag): of gap and lag one as recorded, the other what is usual in this trace; at most what is plausible.

    An op that was launched while its stream still worked follows the one before it; else its launch. Where neither explains when it
    began, the rest is left out: if that was time of the step, the replay will miss it, and nothing is predicted.
    """
    if len(stream) == 0:
        return start, start, 0
    follows = np.append(False, stream[1:] == stream[:-1])
    before = np.where(follows, np.append(0, end[:-1]), launch)
    idle, since = start - before, start - launch
    free = linked & (before <= launch)
    usual_lag = int(np.quantile(since[free], USUAL, method="lower")) if free.any() else 0
    queued = linked & follows & (before > launch + usual_lag)
    usual_gap = int(np.quantile(idle[queued], USUAL, method="lower")) if queued.any() else 0
    most_gap, most_lag = max(QUEUED_CAP, 5 * usual_gap), max(CAP, 5 * usual_lag)
    gap = np.where(queued, np.minimum(idle, most_gap), np.minimum(idle, max(usual_gap, 0)))
    lag = np.where(queued, np.minimum(since, usual_lag), np.minimum(since, most_lag))
    gap = np.where(linked, gap, np.where(follows, idle, 0))
    return gap.astype(np.int64), lag.astype(np.int64), usual_lag
