"""Waits for work that is not in the trace: it was queued before the recording started, so nothing may be priced from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.distinct import distinct
from tracediag.gaps import OWNERS

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.gaps import Gaps

__all__ = ["waits"]

LEAST_NS = 10_000_000
LEAST_SHARE = 0.05
"""Part of the steps below which such a wait is not worth a word."""
LEAST_WORK = 20
EARLY = 0.05
"""Part of the device's work that may come before it."""


def waits(gaps: Gaps, start: IntArray, device: IntArray, step_ns: int) -> IntArray:
    """Rows of `gaps` in which a device idles for long before queued work, near its beginning; together over 5 % of step_ns.

    start, device: start (ns) of each op and the device it ran on (-1: none), shape (n,).
    """
    length = gaps.end - gaps.start
    rows = np.flatnonzero((gaps.owner == OWNERS.index("queue")) & (length >= LEAST_NS))
    early = np.zeros(len(rows), np.bool_)
    for key in distinct(gaps.device[rows]).tolist():
        mine = gaps.device[rows] == key
        work = np.sort(start[device == key])
        early[mine] = (np.searchsorted(work, gaps.start[rows[mine]]) < EARLY * len(work)) & (len(work) >= LEAST_WORK)
    rows = rows[early]
    return rows if int(length[rows].sum()) > LEAST_SHARE * step_ns else rows[:0]
