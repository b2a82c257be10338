"""Give each instant to one class of work: of all that run at once, the class that comes first in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import distinct
from tracediag.intervals import Spans, intersect, merge, overlap, total
from tracediag.nesting import running_max

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["Pieces", "Segments", "innermost", "sweep"]

BITS = 62


@dataclass(frozen=True)
class Segments:
    """Work with a class: start, end in ns, code of the class, row that it belongs to; shape (s,)."""

    start: IntArray
    end: IntArray
    code: IntArray
    row: IntArray


@dataclass(frozen=True)
class Pieces:
    """Disjoint stretches of time in order, each with the code of its class, shape (p,); time without any class is in none."""

    start: IntArray
    end: IntArray
    code: IntArray

    def of(self, code: int) -> Spans:
        """Merged time of one class."""
        mine = self.code == code
        return merge(self.start[mine], self.end[mine])

    def at(self, times: IntArray) -> IntArray:
        """Code of the class that has each time, -1: none; shape (m,)."""
        if len(self.start) == 0:
            return np.full(len(times), -1, np.int64)
        index = np.searchsorted(self.start, times, "right") - 1
        inside = (index >= 0) & (times < self.end[np.maximum(index, 0)])
        return np.where(inside, self.code[np.maximum(index, 0)], -1)

    def totals(self, classes: int) -> IntArray:
        """Nanoseconds of each class, shape (classes,)."""
        sums = np.zeros(classes, np.int64)
        np.add.at(sums, self.code, self.end - self.start)
        return sums

    def shares(self, segments: Segments) -> npt.NDArray[np.float64]:
        """Exclusive time of each segment in ns, shape (s,): what its class has of it; segments of a class that overlap share in it."""
        own = np.zeros(len(segments.start))
        for code in distinct(segments.code).tolist():
            mine = np.flatnonzero(segments.code == code)
            spans = self.of(code)
            covered = overlap(spans, segments.start[mine], segments.end[mine])
            whole = int(covered.sum())
            own[mine] = covered * (total(spans) / whole) if whole else 0.0
        return own


def sweep(segments: Segments, window: Spans) -> Pieces:
    """Of the classes at work in each instant of `window` (merged) the lowest code gets it."""
    codes = distinct(segments.code).tolist()
    layers = [_within(segments, code, window) for code in codes]
    sizes = np.asarray([len(layer[0]) for layer in layers], np.int64)
    edges = np.concatenate([edge for start, end in layers for edge in (start, end)]) if layers else np.zeros(0, np.int64)
    if len(edges) == 0:
        return Pieces(edges, edges, edges)
    place = np.repeat(np.repeat(np.arange(len(codes)), 2), np.repeat(sizes, 2))
    order = np.argsort(edges, kind="stable")
    edges, place = edges[order], place[order]
    winner = _lowest(place, len(codes))
    solid = (np.diff(edges) > 0) & (winner[:-1] >= 0)
    at = np.flatnonzero(solid)
    return Pieces(edges[at], edges[at + 1], np.asarray(codes, np.int64)[winner[at]])


def _within(segments: Segments, code: int, window: Spans) -> Spans:
    mine = segments.code == code
    return intersect(merge(segments.start[mine], segments.end[mine]), window)


def _lowest(place: IntArray, count: int) -> IntArray:
    """After each edge the lowest of the layers that are open, -1: none. An edge opens or closes its layer: it flips one bit."""
    winner = np.full(len(place), -1, np.int64)
    for first in range(0, count, BITS):
        mine = (place >= first) & (place < first + BITS)
        flips = np.where(mine, np.left_shift(np.int64(1), np.where(mine, place - first, 0)), 0)
        opened = np.bitwise_xor.accumulate(flips)
        lowest = opened & -opened
        fresh = (winner < 0) & (lowest > 0)
        winner[fresh] = first + np.log2(lowest[fresh].astype(np.float64)).astype(np.int64)
    return winner


def innermost(start: IntArray, end: IntArray, parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """(start, end, row): the stretches in which each event is the innermost one, in no order. parent: -1 for none; shape (n,)."""
    everyone = np.arange(len(start))
    leaf = np.ones(len(start), np.bool_)
    child = np.flatnonzero(parent >= 0)
    leaf[parent[child]] = False
    if len(child) == 0:
        return start, end, everyone
    order = child[np.lexsort((start[child], parent[child]))]
    group = parent[order]
    first = np.append(True, group[1:] != group[:-1])
    last = np.append(first[1:], True)
    base = int(start.min())
    reach = running_max(np.cumsum(first) - 1, end[order] - base, int(end.max()) - base + 1) + base
    before = np.where(first, start[group], np.append(base, reach[:-1]))
    begin = np.concatenate([start[leaf], before, reach[last]])
    stop = np.concatenate([end[leaf], start[order], end[group[last]]])
    row = np.concatenate([everyone[leaf], group, group[last]])
    solid = stop > begin
    return begin[solid], stop[solid], row[solid]
