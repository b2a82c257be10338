"""Keep a handful of corrupt events from moving a headline: events far outside the recording, and lengths that cannot be true.

Only a handful is touched, and only in traces of some size: many odd events are how that trace is, and `health` says so.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import Coded, Health, Ints, Raw
from tracediag.distinct import distinct
from tracediag.kinds import DEVICE_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator

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
LONG_SHARE = 0.01
"""Part of the span of the starts from which on a host event is worth a look."""
LONGEST_NS = 1 << 52
"""Fifty days: no recording lasts as long."""
SLACK_NS = 1000
"""Clocks and rounding."""
SAME_END_NS = 100_000
"""Two long events that agree on an end within this are believed."""
_WAIT = re.compile("(?<!a)sync", re.IGNORECASE)

Mask = npt.NDArray[np.bool_]


def plausible(raw: Raw) -> Raw:
    """`raw` without far events and with believable lengths; how many were touched is said in its health."""
    raw, beyond = _within(raw)
    if len(raw) < LEAST_EVENTS:
        return replace(raw, health=(*raw.health, _note(beyond, 0, 0))) if beyond else raw
    far = _far(raw)
    if far.any():
        raw = _take(raw, ~far)
    work = raw.role.isin(DEVICE_ROLES)
    wrong = _too_long(raw)
    lengths = np.where(wrong, _usual(raw, wrong), raw.dur_ns)
    covering = _covering(raw, work, lengths)
    covering |= _crossing(raw, work, lengths)
    lengths = np.where(covering, np.minimum(_usual(raw, covering | wrong), lengths), lengths)
    if not (beyond or far.any() or wrong.any() or covering.any()):
        return raw
    return replace(raw, dur_ns=lengths, health=(*raw.health, _note(beyond + int(far.sum()), int(wrong.sum()), int(covering.sum()))))


def _within(raw: Raw) -> tuple[Raw, int]:
    """(the events that can belong to one recording, number of the others, however many they are).

    Sums of what is left fit into int64. A handful that is too long only is cut to the longest that fits; `_too_long` sees to it.
    """
    if len(raw) == 0:
        return raw, 0
    middle = int(np.partition(raw.start_ns, len(raw) // 2)[len(raw) // 2])
    inside = np.abs(raw.start_ns - middle) <= LONGEST_NS
    endless = raw.dur_ns > LONGEST_NS
    if len(raw) >= LEAST_EVENTS and _few(endless, len(raw)).any():
        raw = replace(raw, dur_ns=np.minimum(raw.dur_ns, LONGEST_NS))
    else:
        inside &= ~endless
    lost = int((~inside).sum())
    return (_take(raw, inside), lost) if lost else (raw, 0)


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
    mask = np.zeros(len(raw), np.bool_)
    for mine in _by_lane(raw, work & (length > 0)):
        start = raw.start_ns[mine]
        later = np.searchsorted(start, start + length[mine], "left") - np.arange(len(mine)) - 1
        mask[mine[later >= SWALLOWED]] = True
    mask = _few(mask, int(work.sum()))
    if mask.any():
        mask &= length > UNUSUAL * np.maximum(_usual(raw, mask), 1)
    return mask


def _crossing(raw: Raw, work: Mask, length: IntArray) -> Mask:
    """Long host events of an unusual length that are not nested with others of their thread, or hold several of their own name.

    On a thread calls are nested, so the first is impossible; the second is no operator or runtime call of that length.
    """
    host = ~work & ~raw.role.isin(["overhead", "python"])
    odd = host & (length >= max(LONG_SHARE * int(raw.start_ns.max() - raw.start_ns.min()), 1))
    usual = _usual(raw, odd)
    odd &= (usual > 0) & (length > UNUSUAL * usual)
    odd &= ~raw.name.where([_WAIT.search(name) is not None for name in raw.name.values])  # a wait lasts as long as it lasts
    mask = np.zeros(len(raw), np.bool_)
    calls = raw.role.isin(["op", "runtime"])
    for mine in _by_lane(raw, host & np.isin(raw.lane.codes, distinct(raw.lane.codes[odd]))) if odd.any() else ():
        start, end, name = raw.start_ns[mine], (raw.start_ns + length)[mine], raw.name.codes[mine]
        for i in np.flatnonzero(odd[mine]).tolist():
            inside = slice(i + 1, int(np.searchsorted(start, end[i] - SLACK_NS)))
            around = end[:i]
            crosses = (end[inside] > end[i] + SLACK_NS).any() or ((around > start[i] + SLACK_NS) & (around < end[i] - SLACK_NS)).any()
            mask[mine[i]] = crosses or (calls[mine[i]] and int((name[inside] == name[i]).sum()) >= SWALLOWED)
    return _few(mask, len(raw))


def _by_lane(raw: Raw, wanted: Mask) -> Iterator[IntArray]:
    """The wanted rows of each lane in order of their start, longer ones first."""
    rows = np.flatnonzero(wanted)
    if len(rows) == 0:
        return
    rows = rows[np.lexsort((-raw.dur_ns[rows], raw.start_ns[rows], raw.lane.codes[rows]))]
    lanes = raw.lane.codes[rows]
    for low, high in pairwise([0, *(np.flatnonzero(lanes[1:] != lanes[:-1]) + 1).tolist(), len(rows)]):
        yield rows[low:high]


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
        f"{covering} that cover later work of their own stream or thread" if covering else "",
    ]
    return Health(
        "implausible-times",
        "warning",
        f"events with times that cannot be true: {', '.join(part for part in parts if part)}",
        "far ones are left out, lengths are replaced by the usual one of events of that name: totals may be off by as much",
    )
