"""Where a training step begins and ends: step markers, else optimizer steps, else calls of the compiled step, else the whole window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.distinct import combinations, distinct
from tracediag.intervals import locate, merge
from tracediag.kinds import DEVICE_ROLES
from tracediag.nesting import running_max

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracediag.assemble import Events
    from tracediag.columns import IntArray

__all__ = ["Steps", "find_steps", "find_windows", "mark_cut", "step_of", "without_unended"]

MARKER = "tracediag_step"
LEAST = 3  # repeats that make a pattern a step
OUTLIER = 3.0  # times the median
MOST_OUTLIERS = 0.25  # part of the steps; more of them are no outliers
LEAST_FOR_OUTLIERS = 5
CUT = 0.5  # part of the usual number of events
ALIKE = 0.8  # the other steps hold about as many


@dataclass(frozen=True)
class Steps:
    """Steps in order of rank and time, m rows. number: the marker's own number, else counted from 0. found_by: how all were found.

    window: True when there is no step and the rows are the recorded time: one a rank, or one for each of its recordings.
    """

    number: IntArray
    rank: IntArray  # -1: the trace names no rank
    start: IntArray
    end: IntArray
    found_by: str
    cut: npt.NDArray[np.bool_] | None = None  # first and last steps of which the recording holds a part only (see `mark_cut`)

    @property
    def window(self) -> bool:
        """Whether these are whole windows for want of steps."""
        return self.found_by == "window"

    def __len__(self) -> int:
        return len(self.start)

    @property
    def usual(self) -> npt.NDArray[np.bool_]:
        """All steps but a few that take several times as long as the usual one (a compilation, an evaluation, a checkpoint)."""
        length = self.end - self.start
        if self.window or len(length) < LEAST_FOR_OUTLIERS:
            return np.ones(len(length), np.bool_)
        usual = length <= OUTLIER * np.median(length)
        return usual if (~usual).mean() <= MOST_OUTLIERS else np.ones(len(length), np.bool_)

    @property
    def settled(self) -> npt.NDArray[np.bool_]:
        """Steps that shares are taken from: the usual ones that are whole; the others would drown what every step does. Those are
        named in `health`."""
        return self.usual if self.cut is None else self.usual & ~self.cut


def mark_cut(steps: Steps, step_row: IntArray, counted: npt.NDArray[np.bool_]) -> Steps:
    """`steps` with `cut` set: marked steps at either end of a rank with under half of the rows (`counted`) that the others hold.

    step_row: row of `steps` of each event, -1: none; counted: rows that every step holds many of, both shape (n,).
    """
    cut = np.zeros(len(steps), np.bool_) if steps.cut is None else steps.cut.copy()
    if steps.found_by != "marker":
        return steps
    counts = np.bincount(step_row[counted & (step_row >= 0)], minlength=len(steps))
    for rank in distinct(steps.rank):
        mine = np.flatnonzero(steps.rank == rank)
        inner = counts[mine[1:-1]]
        if len(mine) >= LEAST_FOR_OUTLIERS and inner.min() >= ALIKE * inner.max() > 0:
            ends = mine[[0, -1]]
            cut[ends] |= counts[ends] < CUT * np.median(inner)
    return replace(steps, cut=cut) if cut.any() else steps


def without_unended(steps: Steps, windows: Iterable[Mapping[str, Any]]) -> Steps:
    """`steps` without the one in which the script ended: its marker was opened, but its end was never told.

    windows: those of run.json, which count the steps that ended while the profiler was on.
    """
    if steps.found_by != "marker":
        return steps
    ended = np.zeros(len(steps), np.bool_)
    for window in windows:
        first, count = window.get("first_step"), window.get("steps")
        if isinstance(first, int) and isinstance(count, int):
            ended |= (steps.number >= first) & (steps.number < first + count)
    if ended.all() or not ended.any():
        return steps
    return Steps(steps.number[ended], steps.rank[ended], steps.start[ended], steps.end[ended], steps.found_by)


def _ranks(events: Events) -> IntArray:
    return np.where(events.rank.valid, events.rank.values, -1)


def find_steps(events: Events) -> Steps:
    """Steps of every rank by the best evidence that any of them has; none reaches from one recording (file) into the next."""
    recordings, index = combinations(_ranks(events), events.file)
    for found_by, finder in (("marker", _markers), ("optimizer", _optimizer_ends), ("function", _function_calls)):
        parts = [finder(events, index == i, rank) for i, (rank, _) in enumerate(recordings.tolist())]
        parts = [part for part in parts if len(part)]
        if parts:
            return _in_order(np.concatenate(parts), found_by)
    return find_windows(events)


def _in_order(table: IntArray, found_by: str) -> Steps:
    """Steps of all files by rank and time; where files of one rank overlap, a step ends where the next begins."""
    number, rank, start, end = table[np.lexsort((table[:, 2], table[:, 1]))].T
    follows = np.append(rank[1:] == rank[:-1], False)
    end = np.where(follows, np.minimum(end, np.append(start[1:], 0)), end)
    solid = end > start
    return Steps(number[solid], rank[solid], start[solid], end[solid], found_by)


def _table(number: IntArray, rank: int, start: IntArray, end: IntArray) -> IntArray:
    return np.stack([number, np.full(len(start), rank), start, end], axis=1).astype(np.int64)


def _markers(events: Events, mine: npt.NDArray[np.bool_], rank: int) -> IntArray:
    """Step annotations; our own before the framework's; the same number twice (host and device copies) counts once."""
    marks = np.flatnonzero(mine & events.ints["step_num"].valid & events.role_is("annotation"))
    own = events.coded["name"].isin([MARKER])[marks]
    if own.any():
        marks = marks[own]
    if len(marks) == 0:
        return _table(marks, rank, marks, marks)
    number, start, end = events.ints["step_num"].values[marks], events.start[marks], events.end[marks]
    order = np.lexsort((start - end, start, number))
    number, start, end = number[order], start[order], end[order]
    fresh = _starts_anew(number, start, end)
    number, start, end = number[fresh], start[fresh], end[fresh]
    order = np.argsort(start, kind="stable")
    number, start, end = number[order], start[order], end[order]
    end = np.minimum(end, np.append(start[1:], end[-1:]))
    solid = end > start
    return _table(number[solid], rank, start[solid], end[solid])


def _starts_anew(number: IntArray, start: IntArray, end: IntArray) -> npt.NDArray[np.bool_]:
    """Marks, sorted by number and start, that lie behind all earlier marks of their number."""
    change = np.append(True, number[1:] != number[:-1])
    group = np.cumsum(change) - 1
    low = int(start.min())
    reach = running_max(group, end - low, int(end.max()) - low + 1) + low
    return np.asarray(change | np.append(False, start[1:] >= reach[:-1]))


def _optimizer_ends(events: Events, mine: npt.NDArray[np.bool_], rank: int) -> IntArray:
    """From the end of one optimizer step to the end of the next; several optimizers in turn make one step."""
    flags = [value.startswith("Optimizer.step#") for value in events.coded["name"].values]
    rows = np.flatnonzero(mine & events.coded["name"].where(flags) & ~events.role_is(*DEVICE_ROLES, "device_annotation"))
    if len(rows) == 0:
        return _table(rows, rank, rows, rows)
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    names = events.coded["name"].codes[rows]
    ends = events.end[rows[names == names[-1]]] if len(distinct(names)) > 1 else events.end[rows]
    return _between(ends, rank)


def _between(ends: IntArray, rank: int) -> IntArray:
    ends = distinct(ends)
    if len(ends) < LEAST:
        return _table(ends[:0], rank, ends[:0], ends[:0])
    return _table(np.arange(len(ends) - 1), rank, ends[:-1], ends[1:])


def _function_calls(events: Events, mine: npt.NDArray[np.bool_], rank: int) -> IntArray:
    """Calls of the tf.function that takes most time, from the end of one to the end of the next (in JAX every op may be a function)."""
    rows = np.flatnonzero(mine & events.role_is("function") & events.framework.isin(["tensorflow"]))
    if len(rows) == 0:
        return _table(rows, rank, rows, rows)
    names = events.coded["name"].codes[rows]
    lanes = events.lane.codes[rows]
    _, index = combinations(names, lanes)
    counts = np.bincount(index)
    spent = np.bincount(index, weights=(events.end - events.start)[rows]) * (counts >= LEAST)
    if spent.max(initial=0) <= 0:
        return _table(rows[:0], rank, rows[:0], rows[:0])
    return _between(events.end[rows[index == int(np.argmax(spent))]], rank)


def find_windows(events: Events) -> Steps:
    """The recorded time of each rank: first operator to last operator or device event of each of its files, merged."""
    recordings, index = combinations(_ranks(events), events.file)
    counted = events.role_is("op", "function", "annotation", "runtime", "framework", *DEVICE_ROLES)
    opening = events.role_is("op", "function", "framework")
    rows = []
    for i, (rank, _) in enumerate(recordings.tolist()):
        mine = (index == i) & counted
        first = mine & opening if (mine & opening).any() else mine
        if mine.any():
            rows.append((rank, int(events.start[first].min()), int(events.end[mine].max())))
    found = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    parts = []
    for rank in distinct(found[:, 0]).tolist():
        own = found[found[:, 0] == rank]
        start, end = merge(own[:, 1], np.maximum(own[:, 2], own[:, 1] + 1))
        parts.append(_table(np.arange(len(start)), rank, start, end))
    table = np.concatenate(parts) if parts else np.zeros((0, 4), np.int64)
    return Steps(table[:, 0], table[:, 1], table[:, 2], table[:, 3], "window")


def step_of(steps: Steps, ranks: IntArray, start: IntArray, launch: IntArray) -> IntArray:
    """Row of `steps` that each event belongs to, -1: outside; a device op follows the call that launched it; shape (n,)."""
    result = np.full(len(start), -1, np.int64)
    for rank in distinct(steps.rank):
        at = np.flatnonzero(steps.rank == rank)
        mine = np.flatnonzero(ranks == rank)
        found = locate(steps.start[at], steps.end[at], start[mine])
        result[mine] = np.where(found >= 0, at[found], -1)
    linked = np.flatnonzero(launch >= 0)
    result[linked] = result[launch[linked]]
    return result
