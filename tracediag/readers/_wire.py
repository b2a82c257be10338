"""Decode the protobuf wire format: a plain walk for small messages, and numpy for millions of small messages at once.

Format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.columns import IntArray

Field = tuple[int, int, int, int]
"""(number, wire type, a, b) as `fields` gives them."""

__all__ = ["PAD", "VARINT", "Fields", "WireError", "fields", "lockstep", "submessages", "varint"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
PAD = 16
"""Zero bytes that must stand behind the data given to `lockstep`."""
MANY = 300
"""Fields that `lockstep` takes one by one of all messages at once; longer messages are none that a profiler writes."""


class WireError(ValueError):
    """The bytes are no such message, or end inside one."""


class Fields(NamedTuple):
    """One field each of m messages. row: which message; number, wire: of the field; value: the varint, or the bits of a fixed64,
    as int64; start, end: span of a length-delimited value in the data (all int64, shape (m,))."""

    row: IntArray
    number: IntArray
    wire: IntArray
    value: IntArray
    start: IntArray
    end: IntArray


def varint(data: bytes, pos: int) -> tuple[int, int]:
    """(value, position behind it) of the unsigned varint at `pos`. Raises WireError."""
    value = shift = 0
    try:
        while True:
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, pos
            shift += 7
            if shift > 63:
                raise WireError("varint of more than ten bytes")
    except IndexError:
        raise WireError("message ends inside a number") from None


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Fields of one message as (number, wire type, a, b): a is the value of a number; [a, b) the span of bytes.

    A last value that passes `end` raises WireError, after all whole fields were given.
    """
    pos = start
    while pos < end:
        tag, pos = varint(data, pos)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError("field number 0")
        if wire == VARINT:
            value, pos = varint(data, pos)
            yield number, wire, value, 0
            continue
        size, pos = (8, pos) if wire == FIXED64 else (4, pos) if wire == FIXED32 else varint(data, pos) if wire == BYTES else (-1, pos)
        if size < 0:
            raise WireError(f"wire type {wire} of field {number}")
        if pos + size > end:
            raise WireError(f"field {number} passes the end of its message", number, pos)
        if wire == BYTES:
            yield number, wire, pos, pos + size
        else:
            yield number, wire, int.from_bytes(data[pos : pos + size], "little"), 0
        pos += size


def submessages(data: bytes, start: int, end: int, number: int) -> tuple[list[int], list[int], list[Field], bool]:
    """Spans of the repeated message field `number` in [start, end): (starts, ends, other fields, whole).

    One tight loop, for lists of millions. Stops before a message that passes `end`; whole is then False.
    """
    starts: list[int] = []
    ends: list[int] = []
    others: list[Field] = []
    tag = number << 3 | BYTES
    pos = start
    try:
        while pos < end:
            if data[pos] == tag:
                size = data[pos + 1]
                pos += 2
                if size >= 0x80:
                    size, pos = varint(data, pos - 1)
                if pos + size > end:
                    return starts, ends, others, False
                starts.append(pos)
                pos += size
                ends.append(pos)
                continue
            field, pos = _one_field(data, pos, end)
            others.append(field)
    except (WireError, IndexError):
        return starts, ends, others, False
    return starts, ends, others, True


def _one_field(data: bytes, pos: int, end: int) -> tuple[Field, int]:
    number, wire, a, b = next(fields(data, pos, end))
    _, after = varint(data, pos)
    if wire == VARINT:
        _, after = varint(data, after)
    elif wire == BYTES:
        after = b
    else:
        after += 8 if wire == FIXED64 else 4
    return (number, wire, a, b), after


def lockstep(data: npt.NDArray[np.uint8], starts: IntArray, ends: IntArray) -> Iterator[Fields]:
    """The fields of m messages at once: first the first field of each, then the second of those that have one, and so on.

    data: uint8 with PAD zero bytes behind it; starts, ends: int64 spans, shape (m,). Raises WireError for bytes that are no message.
    """
    row = np.flatnonzero(starts < ends)
    pos, end = starts[row], ends[row]
    for _ in range(MANY):
        if not len(row):
            return
        tag, pos = _varints(data, pos)
        wire = tag & 7
        value = np.zeros(len(row), np.int64)
        begin = pos
        plain = wire == VARINT
        if plain.all():
            value, pos = _varints(data, pos)
            begin = pos
        else:
            value, begin, pos = _mixed(data, wire, pos)
        if (pos > end).any():
            raise WireError("a field passes the end of its message")
        yield Fields(row, tag >> 3, wire, value, begin, pos)
        more = pos < end
        row, pos, end = row[more], pos[more], end[more]
    if len(row):
        yield _rest(data, row, pos, end)


def _rest(data: npt.NDArray[np.uint8], row: IntArray, pos: IntArray, end: IntArray) -> Fields:
    """All that is left of messages with very many fields, at once: rows repeat, in order."""
    found = []
    for i, a, b in zip(row.tolist(), pos.tolist(), end.tolist(), strict=True):
        for number, wire, x, y in fields(data[a:b].tobytes(), 0, b - a):
            value, start, finish = (0, a + x, a + y) if wire == BYTES else (x - (1 << 64) if x >> 63 else x, a, a)
            found.append((i, number, wire, value, start, finish))
    return Fields(*np.asarray(found, np.int64).reshape(-1, 6).T)


def _mixed(data: npt.NDArray[np.uint8], wire: IntArray, pos: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Values of fields of different wire types: (value, start of bytes, position behind)."""
    value = np.zeros(len(pos), np.int64)
    begin, after = pos.copy(), pos.copy()
    index = np.flatnonzero((wire == VARINT) | (wire == BYTES))
    value[index], after[index] = _varints(data, pos[index])
    begin[index] = after[index]
    sized = np.flatnonzero(wire == BYTES)
    if (value[sized] < 0).any() or (value[sized] > len(data)).any():
        raise WireError("a length that no file has")
    after[sized] += value[sized]
    value[sized] = 0
    for kind, size in ((FIXED64, 8), (FIXED32, 4)):
        index = np.flatnonzero(wire == kind)
        if len(index):
            if pos[index].max() + size > len(data):
                raise WireError("message ends inside a number")
            octets = data[pos[index][:, None] + np.arange(size)]
            value[index] = np.ascontiguousarray(octets).view(f"<i{size}").ravel()
            after[index] = pos[index] + size
    if not np.isin(wire, (VARINT, FIXED64, BYTES, FIXED32)).all():
        raise WireError("unknown wire type")
    return value, begin, after


def _varints(data: npt.NDArray[np.uint8], pos: IntArray) -> tuple[IntArray, IntArray]:
    if len(pos) and pos.max() >= len(data):
        raise WireError("message ends inside a number")
    byte = data[pos].astype(np.int64)
    value = byte & 0x7F
    after = pos + 1
    index = np.flatnonzero(byte >= 0x80)
    shift = 7
    while len(index):
        if shift > 63:
            raise WireError("varint of more than ten bytes")
        place = after[index]
        if place.max() >= len(data):
            raise WireError("message ends inside a number")
        byte = data[place].astype(np.int64)
        value[index] |= (byte & 0x7F) << shift
        after[index] = place + 1
        index = index[byte >= 0x80]
        shift += 7
    return value, after
