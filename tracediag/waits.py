"""Where a host lane waits for the device or for another lane, and a stream for another: the edges that program order does not give."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracediag.columns import IntArray
    from tracediag.depgraph import DeviceWork
    from tracediag.intervals import Spans
    from tracediag.trace import Trace

__all__ = ["CAP", "Hold", "Join", "Meet", "Wait", "Wake", "holds", "waits", "wakes"]

CAP = 50_000
"""ns: what a call that waits costs itself at most, and how long after the end of what it waited for it may return."""
CALL = 5_000
"""ns: what a synchronising call costs where there is nothing left to wait for."""
CLOSE = 10_000
"""ns: an op that begins this soon after one of another stream ended is taken to have waited for it."""
LONG_CALL = 20_000
"""ns: shorter calls of the allocator do not wait."""
LONG_LAUNCH = 200_000
QUEUE = 512
"""Launches ahead of the device from which a long launch call is taken to wait for room in the queue (1024 on today's drivers)."""
HANDOFF = 50_000
"""ns: shorter pauses of a lane are its own; after longer ones another lane may have woken it."""

_NO_WAIT = re.compile(r"Query|WaitEvent")
_COPY = re.compile(r"[mM]emcpy")


@dataclass(frozen=True)
class Wait:
    """A call on `lane` from begin to time that returns no earlier than `tail` after the last of `work` (indexes) ended; costs `call`."""

    order: ClassVar[int] = 0
    time: int
    lane: int
    begin: int
    end: int
    call: int
    tail: int
    work: tuple[int, ...]


@dataclass(frozen=True)
class Wake:
    """`lane`, at rest since `begin`, goes on at `time` because lane `other` came to `at`."""

    order: ClassVar[int] = 1
    time: int
    lane: int
    begin: int
    other: int
    at: int


@dataclass(frozen=True)
class Hold:
    """Device op `work` begins no earlier than `lag` after op `after` of another stream ended."""

    order: ClassVar[int] = 2
    time: int
    work: int
    after: int
    lag: int


@dataclass(frozen=True)
class Meet:
    """Device op `work` is this rank's part of collective `number`: all its ranks begin when the last has come, and take `length`."""

    order: ClassVar[int] = 3
    time: int
    work: int
    number: int
    length: int


Join = Wait | Wake | Hold | Meet


def waits(trace: Trace, mine: npt.NDArray[np.bool_], lanes: Sequence[int], work: DeviceWork) -> Iterator[Wait]:
    """The calls of the device runtime that wait, as far as the recorded times show for what."""
    if len(work) == 0:
        return
    rows = np.flatnonzero(mine & trace.strings("role").isin(["runtime"]) & np.isin(trace.strings("lane").codes, lanes))
    lane = np.searchsorted(lanes, trace.strings("lane").codes[rows])
    begin, end = trace.start[rows], trace.end[rows]
    last, until = _last_launched(work, begin, end)
    own = np.full(len(trace), -1, np.int64)
    call = trace.launch[work.row]
    own[call[call >= 0]] = np.flatnonzero(call >= 0)
    kinds = _call_kinds(trace, rows, own[rows], begin, end, until, work)
    for i in np.flatnonzero(kinds > 0).tolist():
        if kinds[i] == _COPIES:
            targets: tuple[int, ...] = (int(own[rows[i]]),)
        elif kinds[i] == _QUEUES:
            targets = _room(work, int(end[i]))
        else:
            targets = tuple(int(k) for k in last[:, i] if k >= 0)
        yield _wait(work, int(lane[i]), int(begin[i]), int(end[i]), targets)


_SYNCS, _COPIES, _QUEUES = 1, 2, 3


def _call_kinds(
    trace: Trace, rows: IntArray, own: IntArray, begin: IntArray, end: IntArray, until: IntArray, work: DeviceWork
) -> npt.NDArray[np.int64]:
    """0: does not wait; _SYNCS: for all launched before; _COPIES: for its own copy; _QUEUES: for room in the launch queue."""
    names, kind = trace.strings("name"), trace.strings("kind")
    quick = names.where([bool(_NO_WAIT.search(name)) for name in names.values])[rows]
    sync = kind.isin(["sync"])[rows] & ~quick
    ended = (until > begin) & (until <= end) & (end - until <= CAP)
    alloc = kind.isin(["alloc"])[rows] & (end - begin >= LONG_CALL) & ended
    copy = names.where([bool(_COPY.search(name)) for name in names.values])[rows] & (own >= 0)
    copy &= np.where(own >= 0, work.end[own], 0) <= end + CALL
    ahead = np.searchsorted(np.sort(work.launch), begin, "right") - np.searchsorted(np.sort(work.start), begin, "right")
    full = kind.isin(["launch"])[rows] & (end - begin >= LONG_LAUNCH) & (ahead >= QUEUE)
    return np.select([full, copy, sync | alloc], [_QUEUES, _COPIES, _SYNCS], 0)


def _last_launched(work: DeviceWork, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Of each stream (row) the last op launched before each call, -1 where none is or it outlasts the call; and the last end of them."""
    streams = int(work.stream[-1]) + 1
    last = np.full((streams, len(begin)), -1, np.int64)
    edges = np.searchsorted(work.stream, np.arange(streams + 1))
    for stream, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        order = low + np.argsort(work.launch[low:high], kind="stable")
        furthest = np.maximum.accumulate(order)
        at = np.searchsorted(work.launch[order], begin, "right") - 1
        found = np.where(at >= 0, furthest[np.maximum(at, 0)], -1)
        last[stream] = np.where((found >= 0) & (work.end[found] <= end + CALL), found, -1)
    until = np.where(last >= 0, work.end[np.maximum(last, 0)], np.iinfo(np.int64).min)
    return last, until.max(axis=0)


def _room(work: DeviceWork, end: int) -> tuple[int, ...]:
    """The op whose end made room for the launch that returned at `end`."""
    done = np.flatnonzero(work.end <= end)
    return (int(done[np.argmax(work.end[done])]),) if len(done) else ()


def _wait(work: DeviceWork, lane: int, begin: int, end: int, targets: tuple[int, ...]) -> Wait:
    until = max((int(work.end[k]) for k in targets), default=begin)
    key = max((int(max(work.start[k], work.launch[k])) for k in targets), default=begin)
    waited = until > begin
    call = min(end - begin, CALL if waited else CAP)
    return Wait(max(end, key + 1), lane, begin, end, call, min(max(end - until, 0), CAP if waited else call), targets)


def wakes(busy: Sequence[Spans]) -> Iterator[Wake]:
    """Hand-offs between host lanes (forward to backward and back): a lane that rested goes on after another one came to a point.

    The lane that ended last within the rest woke it; where none ended but one still runs, that one did.
    """
    for lane, (starts, ends) in enumerate(busy):
        begin = np.append(np.iinfo(np.int64).min, ends[:-1])
        long = np.flatnonzero((starts - np.maximum(begin, starts - 2 * HANDOFF) >= HANDOFF) | (np.arange(len(starts)) == 0))
        at = np.full(len(long), np.iinfo(np.int64).min)
        other = np.full(len(long), -1)
        for number, (_, others) in enumerate(busy):
            if number != lane and len(others):
                place = np.searchsorted(others, starts[long], "right") - 1
                ended = np.where(place >= 0, others[np.maximum(place, 0)], at)
                better = (ended > begin[long]) & (ended > at)
                at, other = np.where(better, ended, at), np.where(better, number, other)
        for number, (froms, others) in enumerate(busy):
            if number != lane and len(others):
                place = np.searchsorted(froms, starts[long], "right") - 1
                runs = (other < 0) & (place >= 0) & (others[np.maximum(place, 0)] > starts[long])
                at, other = np.where(runs, starts[long], at), np.where(runs, number, other)
        for i in np.flatnonzero(other >= 0).tolist():
            place_i = int(long[i])
            yield Wake(int(starts[place_i]), lane, int(begin[place_i]), int(other[i]), int(at[i]))


def holds(trace: Trace, mine: npt.NDArray[np.bool_], work: DeviceWork) -> Iterator[Hold]:
    """Waits of one stream for another: as recorded (`Stream Wait Event`), and where an op begins as soon as one elsewhere ended."""
    if len(work) == 0:
        return
    yield from _recorded_holds(trace, mine, work)
    key = work.key
    first = np.append(True, work.stream[1:] != work.stream[:-1])
    before = np.where(first, work.launch, np.append(0, work.end[:-1]))
    open_rows = np.flatnonzero((work.start > np.maximum(before + work.gap, work.launch + work.lag)) & (work.lane >= 0))
    order = np.argsort(work.end, kind="stable")
    at = np.searchsorted(work.end[order], work.start[open_rows], "right") - 1
    after = order[np.maximum(at, 0)]
    near = (at >= 0) & (work.start[open_rows] - work.end[after] <= CLOSE) & (work.stream[after] != work.stream[open_rows])
    for j, k in zip(open_rows[near].tolist(), after[near].tolist(), strict=True):
        yield Hold(int(key[j]), j, k, int(work.start[j] - work.end[k]))


def _recorded_holds(trace: Trace, mine: npt.NDArray[np.bool_], work: DeviceWork) -> Iterator[Hold]:
    names, details, lanes = trace.strings("name"), trace.strings("detail"), trace.strings("lane")
    rows = np.flatnonzero(mine & trace.strings("role").isin(["device_sync"]) & names.isin(["Stream Wait Event"]) & (details.codes >= 0))
    known = trace.columns.get("correlation")
    if len(rows) == 0 or known is None:
        return
    number: Any = known
    calls = np.flatnonzero(mine & trace.strings("role").isin(["runtime"]) & number.valid)
    begun = dict(zip(number.values[calls].tolist(), trace.start[calls].tolist(), strict=True))
    place = {lanes.values[lanes.codes[row]]: int(stream) for row, stream in zip(work.row.tolist(), work.stream.tolist(), strict=True)}
    for row in rows.tolist():
        fact = json.loads(details.values[details.codes[row]])
        waiting = lanes.values[lanes.codes[row]]
        waited = re.sub(r"-?\d+$", str(fact.get("wait_on_stream")), waiting)
        asked, marked = begun.get(int(number.values[row])), begun.get(fact.get("wait_on_cuda_event_record_corr_id"))
        if asked is None or marked is None or waiting not in place or waited not in place:
            continue
        later = np.flatnonzero((work.stream == place[waiting]) & (work.launch > asked))
        earlier = np.flatnonzero((work.stream == place[waited]) & (work.launch < marked))
        if len(later) and len(earlier) and work.end[earlier[-1]] <= work.start[later[0]]:
            yield Hold(int(work.key[later[0]]), int(later[0]), int(earlier[-1]), 0)
