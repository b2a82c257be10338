"""Run the dependency graphs of the ranks again, untouched and with edits, all at once: when each step would have ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.edits import Removed, host_times
from tracediag.waits import Hold, Join, Meet, Wait, Wake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import IntArray
    from tracediag.depgraph import Graph
    from tracediag.edits import Edit
    from tracediag.trace import Trace

__all__ = ["Replayed", "replay", "replay_ranks"]

Floats = npt.NDArray[np.float64]
REMOVED = 0.5
"""A call of which this part is taken out does not wait any more."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """Step times of one rank in ns, one column a step. recorded: shape (m,); replayed: one row an edit, shape (k, m).

    A step lasts from where the one before it was done (host and the device work launched in it) to where it is done itself.
    host_recorded, host_replayed: the same by the host alone, which is how steps are told in the report.
    """

    recorded: Floats
    replayed: Floats
    host_recorded: Floats
    host_replayed: Floats


class _Run:
    """State of all edits: delay of each host lane, shape (k, lanes + 1), and when each device op can begin and ends, shape (k, n)."""

    def __init__(self, graph: Graph, edits: Sequence[Edit]) -> None:
        self.graph, self.edits, self.work = graph, edits, graph.work
        k, n = len(edits), len(graph.work)
        self.delay = np.zeros((k, len(graph.lanes) + 1))  # the last one: lanes that are not known
        self.ready = np.full((k, n), -np.inf)
        self.ended = np.full((k, n), -np.inf)
        self.last = np.full((k, int(self.work.stream.max(initial=-1)) + 1), -np.inf)
        work = self.work
        self.issued = host_times(edits, work.lane, work.launch)
        self.issued[:, work.lane < 0] = -np.inf
        self.stays = 1 - np.stack([edit.shrink for edit in edits])
        self.length = (work.end - work.start) * self.stays
        self.gap, self.lag = _pauses(graph, edits)
        self.joins = _JoinTimes(graph, edits)

    def launch(self, ops: IntArray) -> None:
        """The host launches these ops."""
        at = self.delay[:, self.work.lane[ops]] + self.issued[:, ops] + self.lag[:, ops]
        self.ready[:, ops] = np.maximum(self.ready[:, ops], at)

    def comes(self, op: int) -> Floats:
        """When an op, next in its stream, could begin; shape (k,)."""
        return np.asarray(np.maximum(self.ready[:, op], self.last[:, self.work.stream[op]] + self.gap[:, op]))

    def execute(self, ops: slice, stream: int) -> None:
        """A stream works off ops that lie behind each other in it: each ends at max(end before + gap, ready) + length."""
        length = self.length[:, ops]
        done = np.cumsum(self.gap[:, ops] + length, axis=1)
        begun = self.ready[:, ops] + length - done
        np.maximum(begun[:, 0], self.last[:, stream], out=begun[:, 0])
        end = np.maximum.accumulate(begun, axis=1) + done
        self.ended[:, ops], self.last[:, stream] = end, end[:, -1]

    def join(self, number: int, join: Join) -> None:
        """A lane or stream waits for what has happened so far."""
        if isinstance(join, Hold):
            np.maximum(self.ready[:, join.work], self.ended[:, join.after] + join.lag, out=self.ready[:, join.work])
            return
        if isinstance(join, Meet):  # see `_meet`
            return
        begin, time, other = self.joins.begin[:, number], self.joins.time[:, number], self.joins.other[:, number]
        came = self.delay[:, join.lane] + begin
        if isinstance(join, Wake):
            lag = self.joins.time[:, number] - self.joins.at[:, number]
            moved = np.maximum(came, self.delay[:, join.other] + other + lag)
        else:
            moved = self._waited(join, came, time - begin)
        self.delay[:, join.lane] = moved - time

    def _waited(self, join: Wait, came: Floats, left: Floats) -> Floats:
        """When the call returns; `left`: what the edits leave of its recorded time."""
        free = came + np.minimum(left, join.call)
        if not join.work:
            return free
        whole = max(join.end - join.begin, 1)
        until = self.ended[:, list(join.work)].max(axis=1) + np.minimum(join.tail, left)
        return np.where(left < (1 - REMOVED) * whole, free, np.maximum(free, until))


class _JoinTimes:
    """When lanes come to the times of the joins by the edits alone, one column a join; shape (k, joins)."""

    def __init__(self, graph: Graph, edits: Sequence[Edit]) -> None:
        joins = graph.joins
        lane = np.asarray([-1 if isinstance(j, Hold | Meet) else j.lane for j in joins], np.int64)
        begin = np.asarray([0 if isinstance(j, Hold | Meet) else j.begin for j in joins], np.int64)
        end = np.asarray([j.end if isinstance(j, Wait) else j.time for j in joins], np.int64)
        other = np.asarray([j.other if isinstance(j, Wake) else -1 for j in joins], np.int64)
        at = np.asarray([j.at if isinstance(j, Wake) else 0 for j in joins], np.int64)
        self.begin, self.time = host_times(edits, lane, begin), host_times(edits, lane, end)
        self.at, self.other = host_times(edits, lane, at), host_times(edits, other, at)


def _pauses(graph: Graph, edits: Sequence[Edit]) -> tuple[Floats, Floats]:
    """(gap, lag) of each device op with what the edits take out of idle time and launches; shape (k, n) each."""
    work = graph.work
    follows = np.append(False, work.stream[1:] == work.stream[:-1]) if len(work) else np.zeros(0, np.bool_)
    before = np.where(follows, np.append(0, work.end[:-1]), work.start) if len(work) else work.start
    at_start, at_before, at_launch = Removed(work.start), Removed(before), Removed(work.launch)
    gaps, lags = [], []
    for edit in edits:
        gap, lag = work.gap * (1 - edit.gaps), work.lag * (1 - edit.gaps)
        for spans, gone in edit.idle:
            until = at_start(spans)
            gap = np.where(gap > 0, np.maximum(gap - gone * np.maximum(until - at_before(spans), 0), 0), gap)
            lag = np.where(lag > 0, np.maximum(lag - gone * np.maximum(until - at_launch(spans), 0), 0), lag)
        gaps.append(gap)
        lags.append(lag)
    return np.stack(gaps), np.stack(lags)


def replay(trace: Trace, graph: Graph, edits: Sequence[Edit]) -> Replayed:
    """Step times of one rank's steps with each of the edits. Times only depend on what the graph knows, never on the recorded waits."""
    return replay_ranks(trace, [graph], [edits])[0]


def replay_ranks(trace: Trace, graphs: Sequence[Graph], edits: Sequence[Sequence[Edit]]) -> list[Replayed]:
    """The same for several ranks that meet in collectives; the edits of a rank, in the same order for all ranks."""
    walks = [_Walk(trace, graph, mine) for graph, mine in zip(graphs, edits, strict=True)]
    parts: dict[tuple[int, int], list[tuple[_Walk, int]]] = {}
    for walk in walks:
        for place, join in enumerate(walk.run.graph.joins):
            if isinstance(join, Meet):
                parts.setdefault((join.time, join.number), []).append((walk, place))
    for _, those in sorted(parts.items()):
        for walk, place in those:
            walk.go(place)
        _meet(those)
    for walk in walks:
        walk.go(len(walk.run.graph.joins))
    return [walk.result() for walk in walks]


def _meet(those: Sequence[tuple[_Walk, int]]) -> None:
    """All ranks of a collective begin when the last of them has come, and end together."""
    found = [(walk.run, join) for walk, place in those if isinstance(join := walk.run.graph.joins[place], Meet)]
    begin = np.max([run.comes(join.work) for run, join in found], axis=0)
    length = np.max([join.length * run.stays[:, join.work] for run, join in found], axis=0)
    for run, join in found:
        run.ready[:, join.work], run.length[:, join.work] = begin, length


class _Walk:
    """The replay of one rank, from join to join."""

    def __init__(self, trace: Trace, graph: Graph, edits: Sequence[Edit]) -> None:
        self.trace, self.run = trace, _Run(graph, edits)
        work = graph.work
        times = np.asarray([join.time for join in graph.joins], np.int64)
        launches = np.searchsorted(times, work.launch, "right")
        self._launched = np.lexsort((np.arange(len(work)), launches))
        self._edges = np.searchsorted(launches[self._launched], np.arange(len(times) + 2))
        self._parts = _parts(np.searchsorted(times, work.key, "right"), work.stream, len(times) + 1)
        steps = trace.step_table
        self._marks = np.concatenate([steps.start[graph.steps], steps.end[graph.steps]])
        self._lane = np.concatenate([graph.main, graph.main])
        self._when = host_times(edits, self._lane, self._marks)
        self._block_of = np.searchsorted(times, self._marks, "right")
        self._asked = set(self._block_of.tolist())
        self._next = 0

    def go(self, place: int) -> None:
        """Go on to the join number `place`: all that comes before it has happened then."""
        for block in range(self._next, place + 1):
            if block:
                self.run.join(block - 1, self.run.graph.joins[block - 1])
            self._work_off(block)
        self._next = place + 1

    def _work_off(self, block: int) -> None:
        """What lies between two joins."""
        low, high = self._edges[block], self._edges[block + 1]
        if high > low:
            self.run.launch(self._launched[low:high])
        for begin, end, stream in self._parts.get(block, ()):
            self.run.execute(slice(begin, end), stream)
        if block in self._asked:
            here = np.flatnonzero(self._block_of == block)
            self._when[:, here] += self.run.delay[:, self._lane[here]]

    def result(self) -> Replayed:
        """The step times, when all has been gone through."""
        return _steps(self.trace, self.run.graph, self._when, self.run.ended, self._marks)


def _parts(blocks: IntArray, stream: IntArray, count: int) -> dict[int, list[tuple[int, int, int]]]:
    """For each block the stretches (begin, end, stream) of device ops in it; ops lie by stream and time."""
    if len(blocks) == 0:
        return {}
    change = np.append(True, (blocks[1:] != blocks[:-1]) | (stream[1:] != stream[:-1]))
    begin = np.flatnonzero(change)
    end = np.append(begin[1:], len(blocks))
    result: dict[int, list[tuple[int, int, int]]] = {}
    for low, high in zip(begin.tolist(), end.tolist(), strict=True):
        result.setdefault(int(blocks[low]), []).append((low, high, int(stream[low])))
    return result


def _steps(trace: Trace, graph: Graph, when: Floats, ended: Floats, marks: IntArray) -> Replayed:
    """Lengths of the steps; a step that follows another at once begins where that one is done, whatever lane either is told by."""
    m = len(graph.steps)
    both = np.concatenate([marks[None, :].astype(np.float64), when])
    start, end = both[:, :m], both[:, m:]
    device = _device_done(trace, graph, np.concatenate([graph.work.end[None, :].astype(np.float64), ended]))
    joined = np.append(False, marks[1:m] == marks[m : 2 * m - 1])
    length = _lengths(np.maximum(start, device[:, :1]), np.maximum(end, device[:, 1:]), joined)
    host = _lengths(start, end, joined)
    return Replayed(length[0], length[1:], host[0], host[1:])


def _lengths(start: Floats, end: Floats, joined: npt.NDArray[np.bool_]) -> Floats:
    done = np.maximum.accumulate(end, axis=1)
    before = np.concatenate([start[:, :1], done[:, :-1]], axis=1)
    return np.asarray(np.maximum(done - np.where(joined, before, np.maximum(start, before)), 0))


def _device_done(trace: Trace, graph: Graph, done: Floats) -> Floats:
    """When the device work launched before the first step, then in each step or before it, is done; shape (k, m + 1)."""
    row = trace.step_row[graph.work.row]
    place = np.searchsorted(graph.steps, row)
    first = trace.step_table.start[graph.steps[0]]
    early = (row < 0) & (graph.work.launch < first)
    slot = np.where(row >= 0, place + 1, np.where(early, 0, -1))
    result = np.full((len(done), len(graph.steps) + 1), -np.inf)
    for k in range(len(done)):
        np.maximum.at(result[k], slot[slot >= 0], done[k][slot >= 0])
    return np.asarray(np.maximum.accumulate(result, axis=1))
