"""How much of a claim stays after the fix: from the rule, from the rows of its query, or from bytes at the bandwidth of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracediag.rule import Rule
    from tracediag.trace import Trace

__all__ = ["keep_bounds", "valid_rows"]

Array = npt.NDArray[Any]


def valid_rows(rows: Mapping[str, Array], name: str) -> tuple[Array, npt.NDArray[np.bool_]]:
    """A column and the mask of its rows that are not NULL; of one row of NULL per row when the query has no such column."""
    if name not in rows:
        n = len(rows["group_key"])
        return np.zeros(n, np.int64), np.zeros(n, np.bool_)
    column = rows[name]
    valid = ~np.ma.getmaskarray(column)
    if column.dtype.kind == "f":
        valid &= ~np.isnan(np.ma.getdata(column))
    return np.ma.getdata(column), valid


def keep_bounds(trace: Trace, rule: Rule, rows: Mapping[str, Array]) -> tuple[float | None, float | None]:
    """Lowest and highest fraction of the claimed time that stays, 0..1; (None, None) where nothing is said."""
    if rule.saving.transform == "scale_bytes":
        return _by_bytes(trace, rows)
    low, has_low = valid_rows(rows, "keep_low")
    high, has_high = valid_rows(rows, "keep_high")
    if not (has_low.any() and has_high.any()):
        return rule.saving.keep_low, rule.saving.keep_high
    bounds = float(low[has_low].min()), float(high[has_high].max())
    return min(max(bounds[0], 0.0), 1.0), min(max(bounds[1], 0.0), 1.0)


def _by_bytes(trace: Trace, rows: Mapping[str, Array]) -> tuple[float, float]:
    """`bytes_after` at the bandwidth with which the claimed ops move `bytes_now` together, or at best the fastest of them."""
    now, has_now = valid_rows(rows, "bytes_now")
    after, has_after = valid_rows(rows, "bytes_after")
    ids, has_op = valid_rows(rows, "op_id")
    use = has_now & has_after & has_op
    moved, stays = now[use].astype(np.float64), after[use].astype(np.float64)
    if moved.sum() <= 0:
        return 1.0, 1.0
    at = ids[use].astype(np.int64)
    work = trace.col("device_ns")[at] if trace.has_device else np.zeros(len(at), np.int64)
    time = np.where(work > 0, work, trace.col("dur_ns")[at])
    usual = min(stays.sum() / moved.sum(), 1.0)
    known = (time > 0) & (moved > 0)
    if not known.any():
        return usual, usual
    best = float((moved[known] / time[known]).max())
    return min(float(stays.sum() / best / time.sum()), usual), usual
