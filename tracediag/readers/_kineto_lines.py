"""Rows of Kineto events that are laid out one line a part: found, split and coded by arrays, thousands of events at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tracediag.distinct import combinations
from tracediag.readers._coding import NONE, positive
from tracediag.readers._kineto_columns import DEVICE, OPS, RUNTIME, Part
from tracediag.readers._kineto_layout import find_layout
from tracediag.readers._kineto_roles import DROP, MEMORY, METADATA, role_of
from tracediag.readers._kineto_templates import Split, Templates
from tracediag.readers._kineto_texts import UNKNOWN, ArgTexts, Headers, device_texts, op_texts, runtime_texts
from tracediag.readers._kineto_vendors import is_special
from tracediag.readers._words import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.readers._chrome import Event
    from tracediag.readers._kineto_columns import KinetoColumns
    from tracediag.readers._kineto_layout import Layout

    Mask = npt.NDArray[np.bool_]
    Codes = npt.NDArray[np.int32]

__all__ = ["LineRows"]

_FRONT = {
    b"External id": ("external", 1),
    b"external id": ("external", 1),
    b"correlation": ("correlation", 1),
    b"Sequence number": ("sequence", 0),
    b"bytes": ("bytes", -(1 << 62)),
}
"""Numbers before the repeating text -> column, and the least value that is one."""
_FRONT_KEYS = frozenset((*_FRONT, b"Fwd thread id", b"device", b"stream"))
_MEMORY_KEYS = {"bytes": b"Bytes", "allocated": b"Total Allocated", "reserved": b"Total Reserved"}

_MEMORY_FRONT = frozenset((*_MEMORY_KEYS.values(), b"Device Type", b"Device Id"))


class LineRows:
    """Adds laid-out events to `columns`. Those that are laid out otherwise are decoded one by one.

    decode: the events in each of several texts, in order.
    """

    def __init__(self, columns: KinetoColumns, decode: Callable[[Sequence[bytes]], list[list[Event]]]) -> None:
        self._columns, self._decode = columns, decode
        self._headers = Headers(partial(_settle, columns))
        detail, strings = columns.detail.table, {column: codes.table for column, codes in columns.strings.items()}
        label = strings["label"]
        self._groups = (
            (OPS, Templates(_FRONT_KEYS), op_texts(strings, detail)),
            (RUNTIME, Templates(_FRONT_KEYS), runtime_texts(detail)),
            (DEVICE, Templates(_FRONT_KEYS), device_texts(label, detail)),
        )
        self._memory = Templates(_MEMORY_FRONT)

    def add(self, buffer: bytes) -> int:
        """Append the events at the beginning of `buffer`; returns how many bytes they take, 0 where they are laid out otherwise."""
        text = Words(buffer)
        layout = find_layout(text)
        if layout is None:
            return 0
        first, n = self._columns.events, len(layout.start)
        header = self._headers.codes(text, *layout.header)
        role = self._headers.columns[1][header]
        number = np.flatnonzero(layout.plain)
        done = role == DROP
        self._instants(text, layout, header, role, done)
        self._rows(text, layout, header, role, done, first + number)
        self._columns.count_kinds(self._headers.columns[0][header[done]])
        rest = np.sort(np.concatenate([np.flatnonzero(~layout.plain & ~layout.flow), number[~done]]))
        self._columns.events += n - len(rest)
        self._one_by_one(text, layout, rest, first)
        return layout.size

    def _one_by_one(self, text: Words, layout: Layout, rest: IntArray, first: int) -> None:
        if len(rest) == 0:
            return
        texts = [text.buffer[a:b] for a, b in zip(layout.start[rest].tolist(), layout.end[rest].tolist(), strict=True)]
        found = self._decode(texts)
        events = [event for several in found for event in several]
        order = np.repeat(rest + first, [len(several) for several in found])
        self._columns.add(events, order)

    def _instants(self, text: Words, layout: Layout, header: Codes, role: Codes, done: Mask) -> None:
        """[memory] events: all of the buffer, or none of them where one is not of the usual form."""
        index = np.flatnonzero(role == MEMORY)
        if len(index) == 0:
            return
        split = self._memory.split(text, layout.content[0][index], layout.content[1][index])
        if not (split.known & (split.start == split.end)).all():
            return
        done[index] = True
        columns = {name: split.number(key) for name, key in _MEMORY_KEYS.items()}
        self._columns.memory.add_columns(layout.start_ns[index], columns, split.number(b"Device Type"), split.number(b"Device Id"))

    def _rows(self, text: Words, layout: Layout, header: Codes, role: Codes, done: Mask, order: IntArray) -> None:
        """Everything that becomes a row."""
        rows = np.flatnonzero(role >= 0)
        if len(rows) == 0:
            return
        _, _, name, lane = (column[header[rows]] for column in self._headers.columns)
        part = Part(len(rows), role[rows].astype(np.int8), layout.start_ns[rows], layout.dur_ns[rows], name, lane)
        good = np.ones(len(rows), np.bool_)
        for flags, templates, texts in self._groups:
            index = np.flatnonzero(flags[part.role])
            if len(index):
                spans = layout.content[0][rows[index]], layout.content[1][rows[index]]
                split = templates.split(text, *spans)
                good[index] = self._args(text, split, texts, part, index, header[rows[index]])
        done[rows] = good
        self._columns.append(part if good.all() else part.take(good), order[rows[good]])

    def _args(self, text: Words, split: Split, texts: ArgTexts, part: Part, index: IntArray, header: Codes) -> Mask:
        """Write what the args of a group say to the rows at `index`; returns which of them could be read."""
        known = np.flatnonzero(split.known)
        if len(known) == 0:
            return split.known
        codes = texts.codes(text, split.start[known], split.end[known])
        at = index[known]
        for key, (column, least) in _FRONT.items():
            if key in split.numbers:
                values = positive(split.number(key)[known], least)
                there = values != NONE
                part.number(column)[at[there]] = values[there]
        for column, table in texts.numbers.items():
            values = table[codes]
            there = values != NONE
            part.number(column)[at[there]] = values[there]
        for column, coded in texts.strings.items():
            if (coded >= 0).any():
                part.string(column)[at] = coded[codes]
        part.detail[at] = texts.detail[codes]
        if b"Fwd thread id" in split.numbers:
            self._forward_threads(part, at, split.number(b"Fwd thread id")[known])
        if texts.places:
            self._lanes(split, texts, part, at, known, header[known], texts.place[codes])
        sound = split.known.copy()
        sound[known] = texts.sound[codes]
        return sound

    def _forward_threads(self, part: Part, at: IntArray, thread: IntArray) -> None:
        """`detail` of ops whose args say no more than the thread of their forward op."""
        table = self._columns.detail.table
        for value in np.unique(thread[thread > 0]).tolist():
            mine = at[thread == value]
            empty = mine[self._says_nothing(part.detail[mine])]
            part.detail[empty] = table[value]

    def _says_nothing(self, codes: Codes) -> Mask:
        table = self._columns.detail.table
        return np.asarray((codes < 0) | (codes == table[None]))

    def _lanes(self, split: Split, texts: ArgTexts, part: Part, at: IntArray, known: IntArray, header: Codes, place: Codes) -> None:
        """Lane and device of device work: as the args say, else process and thread."""
        device, stream = split.number(b"device")[known], split.number(b"stream")[known]
        keys, index = combinations(header, place, device, stream)
        places = list(texts.places)
        lanes, devices = [], []
        for h, p, d, s in keys.tolist():
            lane, own_device, own_stream = places[p]
            event = self._headers.events[h]
            assert event is not None  # unknown headers give no row
            on = (event.pid if d == NONE else d) if own_device == NONE else own_device
            stream_of = (event.tid if s == NONE else s) if own_stream == NONE else own_stream
            code, of_device = self._columns.lane_codes((lane or "gpu", on, stream_of))
            lanes.append(code)
            devices.append(of_device)
        part.lane[at] = np.array(lanes, np.int32)[index]
        part.device[at] = np.array(devices, np.int32)[index]


def _settle(columns: KinetoColumns, event: Event) -> tuple[int, int, int, int]:
    """Codes of a header: kind, role, name, lane."""
    role = role_of(event.ph, event.cat)
    if role == METADATA or is_special(event.ph, event.cat) or (role == MEMORY and event.name != "[memory]"):
        return -1, UNKNOWN, -1, -1
    kind, name, lane = columns.header_codes(event)
    return kind, role, name, lane
