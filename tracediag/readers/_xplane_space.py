"""Walk an XSpace message: planes, their names and metadata, and where the events of each line lie; decodes no event.

Message layout (field numbers) of tsl/profiler/protobuf/xplane.proto: XSpace.planes 1; XPlane id 1, name 2, lines 3,
event_metadata 4, stat_metadata 5, stats 6; XLine id 1, name 2, timestamp_ns 3, events 4, display_name 11;
XEventMetadata id 1, name 2, display_name 4, stats 5; XStatMetadata id 1, name 2;
XStat metadata_id 1, double 2, uint64 3, int64 4, str 5, bytes 6, ref 7.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracediag.readers._wire import BYTES, WireError, fields, submessages, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Line", "Meta", "Plane", "planes", "stat_value"]

Span = tuple[int, int]
Value = int | float | str | None


@dataclass
class Meta:
    """Metadata that events share. stats: by name."""

    name: str = ""
    display: str = ""
    stats: dict[str, Value] = field(default_factory=dict)


@dataclass
class Line:
    """One thread or stream. starts, ends: spans of its events in the file. timestamp_ns: what their offsets count from."""

    id: int = 0
    name: str = ""
    timestamp_ns: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass
class Plane:
    """One device or the host. whole: False when the file ends inside it."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    events: dict[int, Meta] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[str, Value] = field(default_factory=dict)
    whole: bool = True


def planes(data: bytes, size: int) -> Iterator[Plane]:
    """Planes of the first `size` bytes of `data`, the last one as far as it goes. Raises WireError for bytes that are no XSpace."""
    pos = 0
    while pos < size:
        tag, after = varint(data, pos)
        if tag & 7 != BYTES:
            raise WireError(f"field {tag >> 3} of an XSpace has wire type {tag & 7}")
        length, after = varint(data, after)
        pos = after + length
        if tag >> 3 == 1:
            yield _plane(data, after, min(pos, size), pos <= size)


def _plane(data: bytes, start: int, end: int, whole: bool) -> Plane:
    plane = Plane(whole=whole)
    metas: list[Span] = []
    stats: list[Span] = []
    try:
        for number, wire, a, b in fields(data, start, end):
            if wire != BYTES:
                continue
            if number == 2:
                plane.name = _text(data, a, b)
            elif number == 3:
                plane.lines.append(_line(data, a, b))
            elif number == 4:
                metas.append((a, b))
            elif number == 5:
                _stat_name(data, a, b, plane.stat_names)
            elif number == 6:
                stats.append((a, b))
    except WireError as error:
        plane.whole = False
        if len(error.args) == 3 and error.args[1] == 3:  # the file ends inside a line: take its whole events
            plane.lines.append(_line(data, error.args[2], end))
    for a, b in metas:
        _meta(data, a, b, plane)
    plane.stats = dict(stat_value(data, a, b, plane.stat_names) for a, b in stats)
    return plane


def _line(data: bytes, start: int, end: int) -> Line:
    line = Line()
    line.starts, line.ends, others, _ = submessages(data, start, end, 4)
    display = ""
    for number, wire, a, b in others:
        if number == 1:
            line.id = a
        elif number == 2 and wire == BYTES:
            line.name = _text(data, a, b)
        elif number == 3:
            line.timestamp_ns = _signed(a)
        elif number == 11 and wire == BYTES:
            display = _text(data, a, b)
    line.name = line.name or display
    return line


def _entry(data: bytes, start: int, end: int) -> tuple[int, Span]:
    """(key, span of the value) of one entry of a map field."""
    key, span = 0, (start, start)
    for number, wire, a, b in fields(data, start, end):
        if number == 1:
            key = a
        elif number == 2 and wire == BYTES:
            span = (a, b)
    return _signed(key), span


def _stat_name(data: bytes, start: int, end: int, names: dict[int, str]) -> None:
    key, (a, b) = _entry(data, start, end)
    names[key] = next((_text(data, x, y) for number, wire, x, y in fields(data, a, b) if number == 2 and wire == BYTES), "")


def _meta(data: bytes, start: int, end: int, plane: Plane) -> None:
    key, (a, b) = _entry(data, start, end)
    meta = Meta()
    for number, wire, x, y in fields(data, a, b):
        if wire != BYTES:
            continue
        if number == 2:
            meta.name = _text(data, x, y)
        elif number == 4:
            meta.display = _text(data, x, y)
        elif number == 5:
            name, value = stat_value(data, x, y, plane.stat_names)
            meta.stats[name] = value
    plane.events[key] = meta


def stat_value(data: bytes, start: int, end: int, names: dict[int, str]) -> tuple[str, Value]:
    """(name, value) of one XStat; references are resolved, bytes are left out (None)."""
    key, value = 0, None
    for number, wire, a, b in fields(data, start, end):
        if number == 1:
            key = _signed(a)
        else:
            value = _value(data, number, wire, a, b, names)
    return names.get(key, ""), value


def _value(data: bytes, number: int, wire: int, a: int, b: int, names: dict[int, str]) -> Value:
    if number == 5 and wire == BYTES:
        return _text(data, a, b)
    if number == 2:
        return float(struct.unpack("<d", struct.pack("<Q", a))[0])
    if number == 7:
        return names.get(_signed(a))
    return _signed(a) if number == 4 else a if number == 3 else None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode("utf-8", "replace")
