"""Distinct values and distinct combinations of codes, by sorting or by small tables.

`np.unique` hashes large integer arrays and sorts rows as records, both many times slower than this on columns of codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["combinations", "distinct"]

_TABLE = 1 << 20
"""Key ranges up to this, or up to a few times the rows, are counted in a table instead of sorted."""


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different values in ascending order, shape (k,)."""
    ordered = np.sort(values)
    return ordered[_first_of_run(ordered)]


def combinations(*columns: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """(rows, index): the different rows of the integer columns in ascending order, shape (k, c), and the row that each is, shape (n,)."""
    index = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        index = _dense(index, column)
    count = int(index.max(initial=-1)) + 1
    example = np.zeros(count, np.int64)
    example[index] = np.arange(len(index))
    return np.stack([column[example] for column in columns], axis=1).astype(np.int64), index


def _dense(index: IntArray, column: npt.NDArray[Any]) -> IntArray:
    """Number the pairs (index, column) from 0 in ascending order; `index` is numbered so already."""
    if len(index) == 0:
        return index
    low = int(column.min())
    span = int(column.max()) - low + 1
    if span > 2**62 // (int(index.max()) + 1):  # too wide to pack: number the column first
        column, low = np.searchsorted(distinct(column), column), 0
        span = int(column.max()) + 1
    key = index * span + (column.astype(np.int64) - low)
    size = int(key.max()) + 1
    if size <= max(_TABLE, 4 * len(key)):
        seen = np.zeros(size, np.bool_)
        seen[key] = True
        return np.asarray((np.cumsum(seen) - 1)[key])
    order = np.argsort(key, kind="stable")
    result = np.empty(len(key), np.int64)
    result[order] = np.cumsum(_first_of_run(key[order])) - 1
    return result


def _first_of_run(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.append(np.ones(min(len(ordered), 1), np.bool_), ordered[1:] != ordered[:-1])
