"""Decode the events of an xplane, many at once, into numpy arrays; strings of stats are coded, not kept per event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.readers._coding import Dictionary
from tracediag.readers._wire import lockstep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.columns import IntArray

__all__ = ["Events", "Stats", "decode_events"]

UINT, INT, TEXT, REF = 3, 4, 5, 7  # field numbers of XStat.value


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
    distinct, inverse = np.unique(values, return_inverse=True)
    return table.codes((text(v) for v in distinct.tolist()), len(distinct))[inverse]


@dataclass
class Events:
    """n events. meta: id of the metadata; offset_ps, dur_ps: times in ps; timed: False for counts without a time."""

    meta: IntArray
    offset_ps: IntArray
    dur_ps: IntArray
    timed: npt.NDArray[np.bool_]
    stats: Stats


def decode_events(data: bytes, starts: IntArray, ends: IntArray) -> Events:
    """Events in the spans [starts, ends) of `data`, which has PAD zero bytes behind it. Raises WireError for bytes that are no events."""
    view = np.frombuffer(data, np.uint8)
    n = len(starts)
    columns = {number: np.zeros(n, np.int64) for number in (1, 2, 3)}
    timed = np.ones(n, np.bool_)
    rows, begins, finishes = [], [], []
    for f in lockstep(view, starts, ends):
        for number, column in columns.items():
            index = np.flatnonzero(f.number == number)
            column[f.row[index]] = f.value[index]
        timed[f.row[f.number == 5]] = False
        index = np.flatnonzero((f.number == 4) & (f.wire == 2))
        if len(index):
            rows.append(f.row[index])
            begins.append(f.start[index])
            finishes.append(f.end[index])
    stats = _decode_stats(data, view, n, *(np.concatenate(part) if part else np.zeros(0, np.int64) for part in (rows, begins, finishes)))
    return Events(columns[1], columns[2], columns[3], timed, stats)


def _decode_stats(data: bytes, view: npt.NDArray[np.uint8], n: int, row: IntArray, starts: IntArray, ends: IntArray) -> Stats:
    m = len(row)
    key, kind, value, begin, finish = (np.zeros(m, np.int64) for _ in range(5))
    for f in lockstep(view, starts, ends):
        name = f.number == 1
        key[f.row[name]] = f.value[name]
        rest = ~name
        kind[f.row[rest]] = f.number[rest]
        value[f.row[rest]] = f.value[rest]
        begin[f.row[rest]] = f.start[rest]
        finish[f.row[rest]] = f.end[rest]
    return Stats(data, n, row, key, kind, value, begin, finish)
