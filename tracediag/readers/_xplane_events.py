"""Decode the events of an xplane, many at once, into numpy arrays; strings of stats are coded, not kept per event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import combinations
from tracediag.readers._coding import Dictionary
from tracediag.readers._wire import BYTES, VARINT, lockstep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.columns import IntArray
    from tracediag.readers._words import Words

    Spans = list[tuple[IntArray, IntArray, IntArray]]
    """(event, start, end) of stats, piece by piece."""

__all__ = ["Events", "Stats", "decode_events"]

UINT, INT, TEXT, REF = 3, 4, 5, 7  # field numbers of XStat.value


_STATS = 4 << 3 | BYTES


@dataclass
class Stats:
    """Stats of n events, m rows. row: event; key: id of the stat's name; kind: field number of the value; value: the number or
    reference; start, end: span of a text."""

    data: bytes
    n: int
    row: IntArray
    key: IntArray
    kind: IntArray
    value: IntArray
    start: IntArray
    end: IntArray

    def pick(self, key: int | None) -> IntArray:
        """Rows of the stat called `key`."""
        return np.flatnonzero(self.key == key) if key is not None else np.zeros(0, np.int64)

    def has(self, key: int | None) -> npt.NDArray[np.bool_]:
        """Which events have the stat, shape (n,)."""
        mask = np.zeros(self.n, np.bool_)
        mask[self.row[self.pick(key)]] = True
        return mask

    def numbers(self, key: int | None, missing: int) -> IntArray:
        """Integer value of the stat per event, shape (n,); a text of digits is read as a number."""
        result = np.full(self.n, missing, np.int64)
        index = self.pick(key)
        plain = index[np.isin(self.kind[index], (UINT, INT))]
        result[self.row[plain]] = self.value[plain]
        texts = index[self.kind[index] == TEXT]
        for row, text in zip(self.row[texts].tolist(), self._texts(texts), strict=True):
            if text.lstrip(b"-").isdigit() and len(text) < 19:
                result[row] = int(text)
        return result

    def codes(self, key: int | None, table: Dictionary, names: dict[int, str]) -> npt.NDArray[np.int32]:
        """Value of the stat as text, coded with `table`, per event; -1 where an event lacks it. Numbers become their decimal text."""
        result = np.full(self.n, -1, np.int32)
        index = self.pick(key)
        for kinds, text in (((REF,), lambda v: names.get(v, "")), ((UINT, INT), str)):
            some = index[np.isin(self.kind[index], kinds)]
            if len(some):
                result[self.row[some]] = _coded(self.value[some], table, text)
        texts = index[self.kind[index] == TEXT]
        distinct = Dictionary()
        code = distinct.codes(self._texts(texts), len(texts))
        result[self.row[texts]] = table.codes((text.decode("utf-8", "replace") for text in distinct), len(distinct))[code]
        return result

    def _texts(self, index: IntArray) -> list[bytes]:
        data = self.data
        return [data[a:b] for a, b in zip(self.start[index].tolist(), self.end[index].tolist(), strict=True)]


def _coded(values: IntArray, table: Dictionary, text: Callable[[int], str]) -> npt.NDArray[np.int32]:
    distinct, index = combinations(values)
    return table.codes((text(v) for v in distinct[:, 0].tolist()), len(distinct))[index]


@dataclass
class Events:
    """n events. meta: id of the metadata; offset_ps, dur_ps: times in ps; timed: False for counts without a time."""

    meta: IntArray
    offset_ps: IntArray
    dur_ps: IntArray
    timed: npt.NDArray[np.bool_]
    stats: Stats


def decode_events(text: Words, starts: IntArray, ends: IntArray, wanted: npt.NDArray[np.bool_]) -> Events:
    """Events in the spans [starts, ends), PAD zero bytes before the end of the text. Raises WireError for bytes that are no events.

    wanted: by id of a stat's name, whether its values are asked for; those of larger ids are always decoded.
    """
    n = len(starts)
    columns = {number: np.zeros(n, np.int64) for number in (1, 2, 3)}
    timed = np.ones(n, np.bool_)
    odd, spans = _usual_events(text, starts, ends, columns)
    if len(odd):
        spans = _odd_events(text, starts[odd], ends[odd], odd, columns, timed, spans)
    row, begins, finishes = (np.concatenate(part) if part else np.zeros(0, np.int64) for part in zip(*spans, strict=True))
    return Events(columns[1], columns[2], columns[3], timed, _decode_stats(text, n, row, begins, finishes, wanted))


_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _usual_events(text: Words, starts: IntArray, ends: IntArray, columns: dict[int, IntArray]) -> tuple[IntArray, Spans]:
    """Read the events that hold id, offset, duration and stats in this order; returns the other events and the stats."""
    row = np.flatnonzero(starts < ends)
    pos, end = starts[row], ends[row]
    for number, column in columns.items():
        at = np.flatnonzero((text.data[pos] == number << 3) & (pos < end))
        value, after, known = text.varints(pos[at] + 1)
        column[row[at]] = np.where(known, value, 0)
        pos[at] = np.where(known, after, pos[at])
    spans: Spans = [_NOTHING]
    odd = []
    while len(row):
        nested = (text.data[pos] == _STATS) & (pos < end)
        if not nested.all():
            odd.append(row[~nested & (pos != end)])
            row, pos, end = row[nested], pos[nested], end[nested]
        size, begin, known = text.varints(pos + 1)
        pos = begin + size
        whole = known & (pos <= end)
        if not whole.all():
            odd.append(row[~whole])
            row, begin, pos, end = row[whole], begin[whole], pos[whole], end[whole]
        spans.append((row, begin, pos))
    others = np.sort(np.concatenate(odd)) if odd else np.zeros(0, np.int64)
    if len(others):
        keep = np.ones(len(starts), np.bool_)
        keep[others] = False
        spans = [(row[keep[row]], begin[keep[row]], end[keep[row]]) for row, begin, end in spans]
    return others, spans


def _odd_events(
    text: Words, starts: IntArray, ends: IntArray, index: IntArray, columns: dict[int, IntArray], timed: npt.NDArray[np.bool_], spans: Spans
) -> Spans:
    """Read events of any order of fields; returns the stats, with theirs. index: which events they are."""
    for column in columns.values():
        column[index] = 0
    for f in lockstep(text.data, starts, ends):
        row = index[f.row]
        for number, column in columns.items():
            at = f.number == number
            column[row[at]] = f.value[at]
        timed[row[f.number == 5]] = False
        at = (f.number == 4) & (f.wire == 2)
        spans = [*spans, (row[at], f.start[at], f.end[at])]
    return spans


def _decode_stats(text: Words, n: int, row: IntArray, starts: IntArray, ends: IntArray, wanted: npt.NDArray[np.bool_]) -> Stats:
    """The stats whose names are wanted."""
    octets = text.words[starts]
    first, second, third = (((octets >> np.uint64(shift)) & np.uint64(255)).astype(np.int64) for shift in (0, 8, 16))
    long = second >= 128
    key = np.where(long, (second & 127) | third << 7, second)
    usual = (first == 8) & ~(long & (third >= 128)) & (starts + 2 + long <= ends)
    asked = np.flatnonzero(~usual | np.append(wanted, True)[np.minimum(key, len(wanted))])
    row, starts, ends, key, usual = row[asked], starts[asked], ends[asked], key[asked], usual[asked]
    after = starts + 2 + long[asked]
    tag = np.where(after < ends, text.data[after], 0)
    value, begin, known = text.varints(after + 1)
    sized = (tag & 7) == BYTES
    usual &= known & np.where(sized, begin + value == ends, np.where((tag & 7) == VARINT, (begin == ends) & (tag < 128), False))
    stats = Stats(text.buffer, n, row, key, tag.astype(np.int64) >> 3, np.where(sized, 0, value), begin, ends)
    odd = np.flatnonzero(~usual)
    if len(odd):
        _odd_stats(text, stats, starts, ends, odd)
    return stats


def _odd_stats(text: Words, stats: Stats, starts: IntArray, ends: IntArray, index: IntArray) -> None:
    """Read stats of any order of fields into the rows at `index`."""
    for column in (stats.key, stats.kind, stats.value):
        column[index] = 0
    for f in lockstep(text.data, starts[index], ends[index]):
        row = index[f.row]
        name = f.number == 1
        stats.key[row[name]] = f.value[name]
        rest = ~name
        for column, values in ((stats.kind, f.number), (stats.value, f.value), (stats.start, f.start), (stats.end, f.end)):
            column[row[rest]] = values[rest]
