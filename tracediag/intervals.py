"""Sets of half-open time intervals as sorted int64 arrays: merge, intersect, subtract, measure.

An interval set is a pair (starts, ends), both shape (n,), in ns. A merged set is sorted, its intervals do not touch or overlap and
none is empty; `merge` makes one, the other functions expect and return merged sets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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


def _inside(a: Spans, b: Spans) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Sorted edges of two merged sets, and whether the elementary interval that begins at each lies inside `a`, inside `b`.

    Of edges at one time only the last one begins an interval with a length.
    """
    edges = np.concatenate([*a, *b])
    order = np.argsort(edges, kind="stable")  # four sorted runs: a merge
    turns = np.repeat(np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.int32), [len(a[0]), len(a[1]), len(b[0]), len(b[1])], axis=0)
    depth = np.cumsum(turns[order], axis=0)
    return edges[order], depth[:, 0] > 0, depth[:, 1] > 0


def _select(edges: IntArray, wanted: npt.NDArray[np.bool_]) -> Spans:
    """The merged set of the elementary intervals [edges[i], edges[i + 1]) that are wanted."""
    keep = wanted[:-1]
    return merge(edges[:-1][keep], edges[1:][keep])


def intersect(a: Spans, b: Spans) -> Spans:
    """Time in both merged sets."""
    if len(a[0]) == 0 or len(b[0]) == 0:
        return empty()
    if len(b[0]) == 1:
        return clip(a, int(b[0][0]), int(b[1][0]))
    edges, in_a, in_b = _inside(a, b)
    return _select(edges, in_a & in_b)


def subtract(a: Spans, b: Spans) -> Spans:
    """Time in merged set `a` and not in merged set `b`."""
    if len(a[0]) == 0 or len(b[0]) == 0:
        return a
    edges, in_a, in_b = _inside(a, b)
    return _select(edges, in_a & ~in_b)


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
