"""Texts that repeat from event to event of a Kineto file, decoded once each: headers, and what of the args no number tells apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracediag.readers._chrome import Event
from tracediag.readers._coding import NONE, Dictionary, Growing
from tracediag.readers._jsonrepair import UNREADABLE
from tracediag.readers._kineto_args import DeviceArgs, OpArgs, RuntimeArgs, decode_args
from tracediag.readers._kineto_groups import Group, device_group, op_group, runtime_group

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.readers._words import Words

__all__ = ["ArgTexts", "Headers", "device_texts", "op_texts", "runtime_texts"]

_EVENT = msgspec.json.Decoder(Event)
_PLAIN = Event()


class _Numbered(Dictionary):
    """Numbers texts and keeps those that were not there before."""

    def __init__(self) -> None:
        self.fresh: list[bytes] = []

    def __missing__(self, key: Hashable) -> int:
        self.fresh.append(key)  # type: ignore[arg-type]
        return super().__missing__(key)

    def number(self, text: Words, start: IntArray, end: IntArray) -> tuple[npt.NDArray[np.int32], list[bytes]]:
        """Codes of the spans, shape (n,), and the new texts among them in the order of their codes."""
        buffer = text.buffer
        codes = self.codes([buffer[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)], len(start))
        fresh, self.fresh = self.fresh, []
        return codes, fresh


class Headers:
    """Everything of an event before its times. events: one decoded event a header, None for a header that is none."""

    def __init__(self, settle: Callable[[Event], tuple[int, int, int, int]]) -> None:
        """settle: gives code of the kind, role, name and lane of a header."""
        self._table, self._settle = _Numbered(), settle
        self.events: list[Event | None] = []
        self._columns = [Growing(np.int32) for _ in range(4)]

    def codes(self, text: Words, start: IntArray, end: IntArray) -> npt.NDArray[np.int32]:
        """Number of each header, shape (n,)."""
        codes, fresh = self._table.number(text, start, end)
        if fresh:
            rows = [self._decoded(header) for header in fresh]
            for column, values in zip(self._columns, zip(*rows, strict=True), strict=True):
                column.extend(values)
        return codes

    def _decoded(self, header: bytes) -> tuple[int, int, int, int]:
        try:
            event = _EVENT.decode(b"{" + header.rstrip().removesuffix(b",") + b"}")
        except UNREADABLE:
            event = None
        if event is not None and (event.ts, event.dur, event.args) != (_PLAIN.ts, _PLAIN.dur, _PLAIN.args):
            event = None  # times or args of its own: not the layout that is known
        self.events.append(event)
        return (-1, UNKNOWN, -1, -1) if event is None else self._settle(event)

    @property
    def columns(self) -> tuple[npt.NDArray[np.int32], ...]:
        """Kind, role, name and lane by number of the header."""
        return tuple(column.cells for column in self._columns)


UNKNOWN = -100
"""Role of events that must be read one by one."""


class ArgTexts:
    """The repeating part of the args of one group, as codes of the tables of the columns.

    numbers, strings: by column; detail: codes; sound: False for texts that are no JSON; args: decoded, one a text; each shape (k,).
    """

    def __init__(self, kind: type[Any], build: Callable[[Any, Any], Group], tables: dict[str, Dictionary], detail: Dictionary) -> None:
        self._kind, self._build, self._tables, self._details = kind, build, tables, detail
        self._table = _Numbered()
        self._numbers: dict[str, Growing] = {}
        self._strings = {column: Growing(np.int32) for column in tables}
        self._detail, self._sound = Growing(np.int32), Growing(np.bool_)
        self.places = Dictionary()  # what the texts say about the lane
        self._place = Growing(np.int32)

    def codes(self, text: Words, start: IntArray, end: IntArray) -> npt.NDArray[np.int32]:
        """Number of each text, shape (n,)."""
        codes, fresh = self._table.number(text, start, end)
        if fresh:
            self._decode([b"{" + one + b"}" for one in fresh])
        return codes

    def _decode(self, raws: Sequence[bytes]) -> None:
        sound = np.ones(len(raws), np.bool_)
        try:
            args = msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=list[self._kind])  # type: ignore[name-defined]
        except UNREADABLE:
            args = []
        if len(args) != len(raws):
            sound = np.array([_is_object(raw) for raw in raws])
            args = [decode_args(self._kind, [raw])[0] for raw in raws]
        group = self._build(args, raws)
        for column, values in group.numbers.items():
            self._numbers.setdefault(column, _padded(NONE, len(self._sound))).extend(values)
        for column, growing in self._strings.items():
            texts = group.strings.get(column)
            growing.extend(np.full(len(raws), -1, np.int32) if texts is None else self._tables[column].codes(texts, len(raws)))
        self._detail.extend(self._details.codes(group.details, len(raws)) if group.details else np.full(len(raws), -1, np.int32))
        if self._kind is DeviceArgs:
            self._place.extend(self.places.codes(((a.lane, a.device, a.stream) for a in args), len(raws)))
        self._sound.extend(sound)
        for growing in self._numbers.values():
            if len(growing) < len(self._sound):
                growing.extend(np.full(len(raws), NONE))

    @property
    def numbers(self) -> dict[str, IntArray]:
        """Numbers by column, NONE where there is none."""
        return {column: growing.cells for column, growing in self._numbers.items()}

    @property
    def strings(self) -> dict[str, npt.NDArray[np.int32]]:
        """Codes by column."""
        return {column: growing.cells for column, growing in self._strings.items()}

    @property
    def detail(self) -> npt.NDArray[np.int32]:
        """Codes of `detail`."""
        return self._detail.cells

    @property
    def place(self) -> npt.NDArray[np.int32]:
        """Codes of `places`."""
        return self._place.cells

    @property
    def sound(self) -> npt.NDArray[np.bool_]:
        """Whether the text is JSON."""
        return self._sound.cells


def _padded(value: int, n: int) -> Growing:
    growing = Growing(np.int64)
    growing.extend(np.full(n, value))
    return growing


def _is_object(raw: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(raw), dict)
    except UNREADABLE:
        return False


def op_texts(tables: dict[str, Dictionary], detail: Dictionary) -> ArgTexts:
    """Of host ops and annotations."""
    return ArgTexts(OpArgs, op_group, tables, detail)


def runtime_texts(detail: Dictionary) -> ArgTexts:
    """Of calls of the runtime."""
    return ArgTexts(RuntimeArgs, runtime_group, {}, detail)


def device_texts(label: Dictionary, detail: Dictionary) -> ArgTexts:
    """Of work on devices."""
    return ArgTexts(DeviceArgs, device_group, {"label": label}, detail)
