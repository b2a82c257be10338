"""Sets of half-open time intervals as sorted int64 arrays: merge, intersect, subtract, measure.

An interval set is a pair (starts, ends), both shape (n,), in ns. A merged set is sorted, its intervals do not touch or overlap and
none is empty; `merge` makes one, the other functions expect and return merged sets.
"""

from __future__ import annotations

import numpy as np

from tracediag.columns import IntArray

__all__ = ["Spans", "clip", "cover", "empty", "exclusive", "intersect", "locate", "merge", "overlap", "subtract", "total"]

Spans = tuple[IntArray, IntArray]


def empty() -> Spans:
    """The empty set."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def merge(starts: IntArray, ends: IntArray) -> Spans:
    """Union of any intervals; those with end <= start hold no time and are left out."""
    solid = ends > starts
    starts, ends = starts[solid], ends[solid]
    if len(starts) == 0:
        return empty()
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.append(True, starts[1:] > reach[:-1])
    last = np.append(first[1:], True)
    return starts[first], reach[last]


def total(spans: Spans) -> int:
    """Length of a merged set, in ns."""
    return int(np.sum(spans[1] - spans[0]))


def _depth(edges: IntArray, spans: Spans) -> IntArray:
    """For a merged set: 1 where the elementary interval that begins at `edges[i]` lies inside it, else 0."""
    return np.searchsorted(spans[0], edges, "right") - np.searchsorted(spans[1], edges, "right")


def _select(edges: IntArray, wanted: np.ndarray) -> Spans:
    """The merged set of the elementary intervals [edges[i], edges[i + 1]) that are wanted."""
    keep = wanted[:-1]
    return merge(edges[:-1][keep], edges[1:][keep])


def _edges(*sets: Spans) -> IntArray:
    return np.sort(np.concatenate([part for spans in sets for part in spans]), kind="stable")


def intersect(a: Spans, b: Spans) -> Spans:
    """Time in both merged sets."""
    if len(a[0]) == 0 or len(b[0]) == 0:
        return empty()
    edges = _edges(a, b)
    return _select(edges, (_depth(edges, a) > 0) & (_depth(edges, b) > 0))


def subtract(a: Spans, b: Spans) -> Spans:
    """Time in merged set `a` and not in merged set `b`."""
    if len(a[0]) == 0 or len(b[0]) == 0:
        return a
    edges = _edges(a, b)
    return _select(edges, (_depth(edges, a) > 0) & (_depth(edges, b) == 0))


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of a merged set within [start, end)."""
    return merge(np.maximum(spans[0], start), np.minimum(spans[1], end))


def cover(spans: Spans, times: IntArray) -> IntArray:
    """Cumulated length of a merged set before each of `times`, in ns, shape (m,)."""
    if len(spans[0]) == 0:
        return np.zeros(len(times), np.int64)
    done = np.append(0, np.cumsum(spans[1] - spans[0]))
    index = np.searchsorted(spans[0], times, "right")
    inside = np.where(index > 0, np.minimum(times, spans[1][index - 1]) - spans[1][index - 1], 0)
    return done[index] + inside


def overlap(spans: Spans, starts: IntArray, ends: IntArray) -> IntArray:
    """How much of each interval [starts[i], ends[i]) lies in a merged set, in ns, shape (m,)."""
    return cover(spans, np.maximum(ends, starts)) - cover(spans, starts)


def locate(starts: IntArray, ends: IntArray, times: IntArray) -> IntArray:
    """Index of the interval that holds each time, -1 where none does; the intervals are sorted and do not overlap."""
    if len(starts) == 0:
        return np.full(len(times), -1, np.int64)
    index = np.searchsorted(starts, times, "right") - 1
    inside = (index >= 0) & (times < ends[np.maximum(index, 0)])
    return np.where(inside, index, -1)


def exclusive(layers: list[Spans]) -> list[Spans]:
    """Give each instant to the first of the merged sets that holds it: the results are disjoint and have the same union."""
    taken, result = empty(), []
    for layer in layers:
        result.append(subtract(layer, taken))
        taken = merge(np.concatenate([taken[0], layer[0]]), np.concatenate([taken[1], layer[1]]))
    return result
