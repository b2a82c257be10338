"""Idle time of each device and who owns it: what the host was doing until it made the launch that ended the idle time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import distinct
from tracediag.intervals import Spans, exclusive, intersect, merge, subtract
from tracediag.nesting import lineage_order

if TYPE_CHECKING:
    from tracediag.assemble import Events
    from tracediag.columns import Coded, IntArray

__all__ = ["OWNERS", "Gaps", "HostRows", "busy_spans", "find_gaps"]

OWNERS = ("input", "compile", "alloc", "sync", "runtime", "op", "python", "long_launch", "launch", "queue", "unknown", "comm")
"""Owners of idle time. Before the launch call: the first of input..python that covers it; after it began: the launch or the queue. comm:
of the host only, a collective between ranks is under way."""
LONG_LAUNCH_NS = 1_000_000  # a launch call of over 1 ms loads code or waits for a full queue


@dataclass(frozen=True)
class Gaps:
    """Pieces of idle time, g rows; device: key of the device; owner: index into OWNERS; host: row that owns it, -1: none;
    next: device row that ends the gap, -1: none."""

    device: IntArray
    start: IntArray
    end: IntArray
    owner: IntArray
    host: IntArray
    next: IntArray


def busy_spans(events: Events, rows: IntArray) -> Spans:
    """Union of the intervals of device rows."""
    return merge(events.start[rows], events.end[rows])


def find_gaps(
    events: Events, device_key: IntArray, lineage: tuple[IntArray, IntArray], launch: IntArray, kinds: Coded, windows: dict[int, Spans]
) -> Gaps:
    """Gaps of every device. device_key: device of each row of device work, -1 elsewhere; kinds: kind of each row;
    windows: the time that counts, for each device key."""
    finder = _Owners(events, lineage, launch, kinds)
    parts = [_device_gaps(finder, key, np.flatnonzero(device_key == key), spans) for key, spans in windows.items()]
    columns = [np.concatenate([part[i] for part in parts]) for i in range(6)] if parts else [np.zeros(0, np.int64)] * 6
    return Gaps(*columns)


def _device_gaps(finder: _Owners, device: int, rows: IntArray, windows: Spans) -> tuple[IntArray, ...]:
    events = finder.events
    idle = subtract(windows, busy_spans(events, rows))
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    at = np.searchsorted(events.start[rows], idle[1], "left")
    ended = (at < len(rows)) & (events.start[rows[np.minimum(at, len(rows) - 1)]] == idle[1])
    following = np.where(ended, rows[np.minimum(at, len(rows) - 1)], -1)
    pieces = finder.split(idle, following, rows)
    return (np.full(len(pieces[0]), device, np.int64), *pieces)


class HostRows:
    """Host events in lineage order, to find what runs on a lane at a time.

    lineage: parent of each row, and the rows that can be parents in lineage order.
    """

    def __init__(self, events: Events, lineage: tuple[IntArray, IntArray]) -> None:
        self.events, (self.parent, self.order) = events, lineage
        self.host = events.coded["device"].codes < 0
        rows = np.flatnonzero(self.host & ~events.role_is("overhead"))
        if len(rows) != len(self.order):  # device work of no known device counts as the host's here
            self.order = rows[lineage_order(events.lane.codes[rows].astype(np.int64), events.start[rows], events.end[rows])]
        self.lanes, self.starts = events.lane.codes[self.order], events.start[self.order]

    def innermost(self, lane: npt.NDArray[np.int32], time: IntArray) -> IntArray:
        """Row of the innermost host event on `lane[i]` that covers `time[i]`, -1 where none does."""
        row = np.full(len(time), -1, np.int64)
        for code in distinct(lane):
            low, high = np.searchsorted(self.lanes, [code, code + 1])
            mine = np.flatnonzero(lane == code)
            at = np.searchsorted(self.starts[low:high], time[mine], "right") - 1
            begun = at >= 0
            row[mine[begun]] = self.order[low + at[begun]]
        while True:
            over = np.flatnonzero((row >= 0) & (self.events.end[np.maximum(row, 0)] <= time))
            if len(over) == 0:
                return row
            row[over] = self.parent[row[over]]


class _Owners(HostRows):
    """Host activity by owner, prepared once, asked for each device."""

    def __init__(self, events: Events, lineage: tuple[IntArray, IntArray], launch: IntArray, kinds: Coded) -> None:
        super().__init__(events, lineage)
        self.launch, self.kinds = launch, kinds

    def layers(self, lanes: npt.NDArray[np.int32]) -> list[Spans]:
        """Merged time on the launching lanes of each owner input..op, disjoint, in order of precedence."""
        on_lane = self.host & np.isin(self.events.lane.codes, lanes)
        kind = self.kinds
        on_call = on_lane & self.events.role_is("runtime")
        masks = (
            on_lane & kind.isin(["input_wait"]),
            on_lane & kind.isin(["compile"]),
            on_call & kind.isin(["alloc"]),
            on_call & kind.isin(["sync"]),
            on_call,
            on_lane & self.events.role_is("op", "function"),
        )
        return exclusive([merge(self.events.start[m], self.events.end[m]) for m in masks])

    def launching_lanes(self, rows: IntArray) -> tuple[npt.NDArray[np.int32], int]:
        """Lanes that launched the device rows, and the one with most launches; without any link the lane with most operators."""
        calls = self.launch[rows]
        calls = calls[calls >= 0]
        if len(calls) == 0:
            calls = np.flatnonzero(self.events.role_is("op", "function", "runtime"))
            uses = np.bincount(self.events.lane.codes[calls], minlength=1)
            return np.asarray([np.argmax(uses)], np.int32), int(np.argmax(uses))
        uses = np.bincount(self.events.lane.codes[calls])
        return np.flatnonzero(uses).astype(np.int32), int(np.argmax(uses))

    def split(self, idle: Spans, following: IntArray, rows: IntArray) -> tuple[IntArray, ...]:
        """(start, end, owner, host row, next device row) of every piece of the idle intervals."""
        call = np.where(following >= 0, self.launch[following], -1)
        begun = np.where(call >= 0, self.events.start[np.maximum(call, 0)], idle[1])
        cut = np.clip(begun, idle[0], idle[1])
        called = np.where(call >= 0, np.clip(self.events.end[np.maximum(call, 0)], cut, idle[1]), cut)
        lanes, usual = self.launching_lanes(rows)
        parts = [self._before(idle[0], cut, following, lanes, usual)]
        long_call = (call >= 0) & (self.events.end[np.maximum(call, 0)] - begun >= LONG_LAUNCH_NS)
        during = np.where(long_call, OWNERS.index("long_launch"), OWNERS.index("launch"))
        parts.append((cut, called, during, call, following))
        parts.append((called, idle[1], np.full(len(call), OWNERS.index("queue")), call, following))
        start, end, owner, host, following = (np.concatenate([part[i] for part in parts]) for i in range(5))
        solid = end > start
        order = np.lexsort((start[solid],))
        return tuple(column[solid][order] for column in (start, end, owner, host, following))

    def _before(
        self, start: IntArray, cut: IntArray, following: IntArray, lanes: npt.NDArray[np.int32], usual: int
    ) -> tuple[IntArray, ...]:
        """Pieces of the idle time before the launch call, by owner; the host row is the innermost one at the piece's start.

        Idle time that nothing ends any more (the tail of the window) counts as before a launch on the usual lane, and so does that
        before work whose launch the trace does not show; where the host does nothing that can own it, its owner is unknown.
        """
        waiting = merge(start, cut)
        layers = [intersect(layer, waiting) for layer in self.layers(lanes)]
        covered = merge(np.concatenate([s for s, _ in layers]), np.concatenate([e for _, e in layers])) if layers else waiting
        layers.append(subtract(waiting, covered))
        edges = distinct(np.concatenate([start, cut]))
        pieces = [_cut_at(layer, edges) for layer in layers]
        begin = np.concatenate([p[0] for p in pieces])
        end = np.concatenate([p[1] for p in pieces])
        owner = np.repeat(np.arange(len(pieces)), [len(p[0]) for p in pieces])
        gap = np.searchsorted(start, begin, "right") - 1
        nxt = following[gap]
        call = np.where(nxt >= 0, self.launch[nxt], -1)
        owner = np.where((owner == OWNERS.index("python")) & (nxt >= 0) & (call < 0), OWNERS.index("unknown"), owner)
        lane = np.where(call >= 0, self.events.lane.codes[call], usual).astype(np.int32)
        return begin, end, owner, self.innermost(lane, begin), nxt


def _cut_at(spans: Spans, edges: IntArray) -> Spans:
    """Cut merged intervals at `edges` (sorted): pieces sorted by time."""
    if len(spans[0]) == 0:
        return spans
    lo, hi = np.searchsorted(edges, spans[0], "right"), np.searchsorted(edges, spans[1], "left")
    inner = np.concatenate([edges[a:b] for a, b in zip(lo, hi, strict=True) if b > a]) if (hi > lo).any() else edges[:0]
    return np.sort(np.concatenate([spans[0], inner])), np.sort(np.concatenate([spans[1], inner]))
