"""What is kept when there is more than a picture can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracediag.columns import IntArray

__all__ = ["largest", "thin"]

MAX_POINTS = 1_500
SPREAD = 2_654_435_761
"""Knuth's multiplier: numbers times this, in 32 bits, lie evenly over all, whichever stretch of them is taken."""


def largest(worth: npt.NDArray[Any], most: int) -> IntArray:
    """Places of at most `most` values, the largest, in ascending order; among equal ones those that lie evenly over all."""
    if len(worth) <= most:
        return np.arange(len(worth))
    even = np.arange(len(worth), dtype=np.uint64) * np.uint64(SPREAD) % np.uint64(1 << 32)
    return np.sort(np.lexsort((even, -worth))[:most])


def thin(values: IntArray, most: int = MAX_POINTS) -> IntArray:
    """Places of at most `most` values that keep the shape: of each stretch the first, the lowest and the highest, and the last of all."""
    if len(values) <= most:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), (most - 1) // 3 + 1).astype(np.int64)[:-1]
    low, high = np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)
    stretch = np.repeat(np.arange(len(edges)), np.diff(np.append(edges, len(values))))
    kept = [_firsts(values == bound[stretch], stretch) for bound in (low, high)]
    return np.unique(np.concatenate([edges, *kept, [len(values) - 1]]))


def _firsts(mask: np.ndarray[Any, np.dtype[np.bool_]], stretch: IntArray) -> IntArray:
    """The first place of each stretch where the mask holds."""
    at = np.flatnonzero(mask)
    return np.asarray(at[np.append(True, stretch[at][1:] != stretch[at][:-1])])
