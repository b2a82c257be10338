"""Keep a handful of corrupt events from moving a headline: events far outside the recording, and lengths that cannot be true.

Only a handful is touched, and only in traces of some size: many odd events are how that trace is, and `health` says so.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import Coded, Health, Ints, Raw
from tracediag.distinct import distinct
from tracediag.kinds import DEVICE_ROLES

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["plausible"]

LEAST_EVENTS = 100
"""Smaller traces have no usual behaviour to compare with."""
HANDFUL, HANDFUL_SHARE = 10, 0.001
"""So many events, or this part of them where that is more, may be corrupt."""
FAR = 100
"""An event is far when it lies this many lengths of the recording away from it."""
LONGER = 1.2
"""Times the span of the starts; a kernel or a wait may outlast the last start by a little."""
SWALLOWED = 3
"""Later work of its own stream that one piece of work covers: real ones cover at most one."""
UNUSUAL = 10
"""Times the usual length of events of its name."""
SAME_END_NS = 100_000
"""Two long events that agree on an end within this are believed."""

Mask = npt.NDArray[np.bool_]


def plausible(raw: Raw) -> Raw:
    """`raw` without far events and with believable lengths; how many were touched is said in its health."""
    if len(raw) < LEAST_EVENTS:
        return raw
    far = _far(raw)
    if far.any():
        raw = _take(raw, ~far)
    work = raw.role.isin(DEVICE_ROLES)
    wrong = _too_long(raw)
    lengths = np.where(wrong, _usual(raw, wrong), raw.dur_ns)
    covering = _covering(raw, work, lengths)
    lengths = np.where(covering, np.minimum(_usual(raw, covering | wrong), lengths), lengths)
    shortened = int((wrong | covering).sum())
    if not far.any() and not shortened:
        return raw
    return replace(raw, dur_ns=lengths, health=(*raw.health, _note(int(far.sum()), int(wrong.sum()), int(covering.sum()))))


def _handful(n: int) -> int:
    return max(HANDFUL, int(n * HANDFUL_SHARE))


def _few(mask: Mask, n: int) -> Mask:
    """The mask, or none of it where it is more than a handful of n events."""
    return mask if 0 < int(mask.sum()) <= _handful(n) else np.zeros(len(mask), np.bool_)


def _far(raw: Raw) -> Mask:
    """Events that begin or end many lengths of the recording before or after it."""
    n = len(raw)
    edge = min(_handful(n), n // 10)
    low, high = np.partition(raw.start_ns, [edge, n - 1 - edge])[[edge, n - 1 - edge]].tolist()
    reach = FAR * max(high - low, 1_000_000)
    end = np.minimum(raw.dur_ns, reach) + raw.start_ns
    return _few((raw.start_ns > high + reach) | (end < low - reach), n)


def _too_long(raw: Raw) -> Mask:
    """Events longer than the trace. Where two of them agree on an end, the trace reaches there: a wait and the kernel waited for."""
    first = int(raw.start_ns.min())
    span = max(int(raw.start_ns.max()) - first, 1)
    ends = np.sort((raw.start_ns + raw.dur_ns)[(raw.dur_ns > LONGER * span) & (raw.dur_ns <= FAR * span)])
    agreed = ends[1:][ends[1:] - ends[:-1] <= SAME_END_NS]
    reach = max(span, int(agreed.max(initial=first)) - first)
    return _few(raw.dur_ns > LONGER * reach, len(raw))


def _covering(raw: Raw, work: Mask, length: IntArray) -> Mask:
    """Device work of an unusual length that covers much of the later work of its own stream."""
    rows = np.flatnonzero(work & (length > 0))
    mask = np.zeros(len(raw), np.bool_)
    if len(rows) == 0:
        return mask
    rows = rows[np.lexsort((raw.start_ns[rows], raw.lane.codes[rows]))]
    lanes = raw.lane.codes[rows]
    edges = [0, *(np.flatnonzero(lanes[1:] != lanes[:-1]) + 1).tolist(), len(rows)]
    for low, high in pairwise(edges):
        mine = rows[low:high]
        start = raw.start_ns[mine]
        later = np.searchsorted(start, start + length[mine], "left") - np.arange(len(mine)) - 1
        mask[mine[later >= SWALLOWED]] = True
    mask = _few(mask, int(work.sum()))
    if mask.any():
        mask &= length > UNUSUAL * np.maximum(_usual(raw, mask), 1)
    return mask


def _usual(raw: Raw, odd: Mask) -> IntArray:
    """For each odd row the median length of the other rows of its name (of all step marks for a step mark), else 0; 0 elsewhere."""
    result = np.zeros(len(raw), np.int64)
    rows = np.flatnonzero(odd)
    sound = ~odd
    for name in distinct(raw.name.codes[rows]).tolist():
        mine = rows[raw.name.codes[rows] == name]
        others = sound & (raw.step_num.valid if raw.step_num.valid[mine].any() else raw.name.codes == name)
        if others.any():
            result[mine] = int(np.median(raw.dur_ns[others]))
    return result


def _take(raw: Raw, keep: Mask) -> Raw:
    """The rows of `raw` that are kept."""
    columns: dict[str, Any] = {}
    for column in fields(raw):
        cells = getattr(raw, column.name)
        if isinstance(cells, Coded | Ints):
            columns[column.name] = cells.take(keep)
        elif isinstance(cells, np.ndarray):
            columns[column.name] = cells[keep]
    return replace(raw, **columns)


def _note(far: int, long: int, covering: int) -> Health:
    parts = [
        f"{far} far outside the recording" if far else "",
        f"{long} longer than the trace" if long else "",
        f"{covering} that cover later work of their own stream" if covering else "",
    ]
    return Health(
        "implausible-times",
        "warning",
        f"events with times that cannot be true: {', '.join(part for part in parts if part)}",
        "far ones are left out, lengths are replaced by the usual one of events of that name: totals may be off by as much",
    )
