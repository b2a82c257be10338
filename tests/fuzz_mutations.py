"""Spoil a file: bytes, JSON values and protobuf fields are changed at random, the same way for the same `random.Random`."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from reader_samples import varint

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["HUGE", "mutate"]

HUGE = 4 << 20
"""Bytes that one repetition may add."""
LARGEST = 8 << 20
"""What one change doubles, another may double again: more is no small input."""
_RAW = "\ue000raw:"  # marks text that goes into the JSON without quotes
_RAW_TEXT = re.compile(rf'"{_RAW}([^"]*)"')
_NUMBER = re.compile(rb"-?\b\d+(?:\.\d+)?\b")
_NUMBERS = (
    b"NaN", b"-NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"-1", b"0", b"-0.0", b"9223372036854775807", b"1.", b"-",
    b"9223372036854775808", b"-9223372036854775808", b"18446744073709551615", b"1" * 400, b"1" * 5000, b"0." + b"3" * 5000,
    b"4611686018427387904",
    b"1e18", b"1e19", b"2147483648", b'"12"', b'"x"', b"null", b"true", b"[1]", b"{}", b"0x10", b"1.7976931348623157e308", b"00",
)  # fmt: skip
_BYTES = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"\\ud800", b"\\u0000", b'"', b"\\", b"{", b"}", b"[", b"]",
    b",", b":", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"NaN", b"},{", b'"traceEvents":[', b"\x1b[31m", b"\x7f", b"\x80" * 11,
    b"../../x",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63, -(1 << 63), 10**30, float("nan"), float("inf"), 0.1, -1e308,
    f"{_RAW}1e400", f"{_RAW}-1e999", f"{_RAW}{'7' * 6000}", "", "\ud800", "\x00", "a" * 70_000, "\u202e\x1b[2J", "🔥" * 500,
    "ProfilerStep#9", f"ProfilerStep#{'9' * 30}", "[[1,2],", "kernel", "X", [], {}, [[]], [None], {"": None}, [1, "a", None, [], {}],
    ["float"], [[-1]], [[1 << 70]], "/device:GPU:0/stream:all", "1700000000000000.001", "-5", "nan",
)  # fmt: skip
_WORDS = (
    0, 1, 2, 127, 128, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 999_999_999_999,
)  # fmt: skip


def mutate(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    """`data` with one to four changes. others: files to splice from."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        head = data[:64].lstrip()
        text = head.startswith((b"{", b"[", b"\xef\xbb\xbf"))
        change = random.choice(_JSON if text and random.random() < 0.6 else _PROTO if not text and random.random() < 0.6 else _BLIND)
        data = change(data, random, others)[:LARGEST]
    return data


def _place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def _slice(data: bytes, random: Random, longest: int) -> tuple[int, int]:
    start = _place(data, random)
    return start, min(len(data), start + random.randrange(1, longest))


def _flip(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    out = bytearray(data or b"\0")
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        out[random.randrange(len(out))] ^= 1 << random.randrange(8)
    return bytes(out)


def _overwrite(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    start, end = _slice(data, random, random.choice((4, 64, 4096)))
    return data[:start] + random.randbytes(end - start) + data[end:]


def _cut(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    return data[: _place(data, random)] if random.random() < 0.7 else data[_place(data, random) :]


def _remove(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    start, end = _slice(data, random, random.choice((2, 16, 512)))
    return data[:start] + data[end:]


def _insert(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    at = _place(data, random)
    return data[:at] + random.choice(_BYTES) + data[at:]


def _splice(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    other = random.choice(others)
    if random.random() < 0.5:
        return data[: _place(data, random)] + other[_place(other, random) :]
    at = _place(data, random)
    start, end = _slice(other, random, 2000)
    return data[:at] + other[start:end] + data[at:]


def _repeat(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    """A piece again and again: what makes searches quadratic and nesting deep."""
    start, end = _slice(data, random, random.choice((2, 8, 40, 400)))
    piece = data[start:end] or b"["
    return (
        data[:end]
        + piece * (random.choice((100, 100, 1000, 1000, 1 << 14, 1 << 14, 1 << 16, 1 << 16, 1 << 18, HUGE)) // len(piece))
        + data[end:]
    )


def _nest(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    at = _place(data, random)
    opening = random.choice((b"[", b'{"a":', b"{", b"\x0a\x80\x01", b"dev_stats{", b'[{"traceEvents":', b"("))
    return data[:at] + opening * random.choice((50, 50, 1000, 1000, 20_000, 20_000, 400_000)) + data[at:]


def _number(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    found = list(_NUMBER.finditer(data, 0, 1 << 20))
    if not found:
        return _flip(data, random, others)
    match = random.choice(found)
    return data[: match.start()] + random.choice(_NUMBERS) + data[match.end() :]


def _recode(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    text = data.decode("latin-1")
    return text.encode(random.choice(("utf-16", "utf-16-le", "utf-8", "utf-8-sig", "utf-32")))


_BLIND: tuple[Callable[[bytes, Random, tuple[bytes, ...]], bytes], ...] = (
    _flip, _flip, _overwrite, _cut, _cut, _remove, _remove, _insert, _insert, _splice, _splice, _repeat, _nest, _number, _number, _recode,
)  # fmt: skip


def _json(data: bytes, random: Random, others: tuple[bytes, ...]) -> bytes:
    """One to six values of a JSON document replaced, dropped, doubled or wrapped."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return random.choice(_BLIND)(data, random, others)
    box = [document]
    for _ in range(random.choice((1, 1, 1, 2, 6))):
        _edit(box, random)
    try:
        text = json.dumps(box[0] if box else None, ensure_ascii=random.random() < 0.8, indent=random.choice((None, None, 1)))
        return _RAW_TEXT.sub(r"\1", text).encode("utf-8", "surrogatepass")
    except RecursionError:
        return data


def _edit(box: list[Any], random: Random) -> None:
    """Go down at random from `box`, and change what is met there."""
    holder: Any = box
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = random.choice(keys)
        value = holder[key]
        if not isinstance(value, dict | list) or not value or random.random() < 0.15:
            break
        holder = value
    kind = random.random()
    if kind < 0.5:
        holder[key] = deepcopy(random.choice(_VALUES))
    elif kind < 0.7:
        del holder[key]
    elif kind < 0.8:
        holder[key] = [value] if random.random() < 0.5 else {"args": value}
    elif kind < 0.9 and isinstance(holder, dict):
        holder[random.choice(("", "name", "ts", "dur", "args", "pid", "ph", "cat", "id", "traceEvents", "\ud800"))] = holder.pop(key)
    elif isinstance(holder, list):
        holder.extend([value] * random.choice((1, 3, 2000)) if isinstance(value, str | int | float) else [value])
    else:
        holder[key] = _deep(random.choice((20, 300, 900)))


def _deep(levels: int) -> Any:
    value: Any = 1
    for i in range(levels):
        value = [value] if i % 2 else {"a": value}
    return value


_JSON = (_json, _json, _json, _json, _number)


def _fields(data: bytes) -> list[tuple[int, int, int, int]] | None:
    """(start, start of the value, end, wire type) of each field of a message, None for bytes that are none."""
    found, pos = [], 0
    try:
        while pos < len(data):
            start = pos
            tag, pos = _read(data, pos)
            wire, begin = tag & 7, pos
            if wire == 0:
                _, pos = _read(data, pos)
            elif wire == 2:
                size, begin = _read(data, pos)
                pos = begin + size
            elif wire in (1, 5):
                pos += 8 if wire == 1 else 4
            else:
                return None
            if pos > len(data) or tag >> 3 == 0:
                return None
            found.append((start, begin, pos, wire))
    except IndexError:
        return None
    return found


def _read(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 63:
            raise IndexError


def _message(data: bytes, random: Random, others: tuple[bytes, ...], depth: int = 0) -> bytes:
    """One field of a message changed, at any depth; lengths around it stay right."""
    found = _fields(data)
    if not found:
        return random.choice(_BLIND)(data, random, others)
    start, begin, end, wire = random.choice(found)
    tag, value = data[start:begin], data[begin:end]
    if wire == 2:
        tag = varint(_read(data, start)[0])
        if depth < 8 and value and _fields(value) and random.random() < 0.85:
            return data[:start] + _chunk(tag, _message(value, random, others, depth + 1)) + data[end:]
    kind = random.random()
    if kind < 0.15:
        return data[:start] + data[end:]
    if kind < 0.25:
        return data[:end] + data[start:end] * random.choice((1, 2, 500)) + data[end:]
    if kind < 0.4:
        other_start, _, other_end, _ = random.choice(found)
        return data[:start] + data[other_start:other_end] + data[end:]
    if kind < 0.5:
        tag = varint(_read(tag, 0)[0] & 7 | random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 1000)) << 3)
    return data[:start] + _other_value(tag, value, wire, random) + data[end:]


def _other_value(tag: bytes, value: bytes, wire: int, random: Random) -> bytes:
    if wire == 0:
        return tag + varint(random.choice(_WORDS))
    if wire != 2:
        return tag + random.choice((random.randbytes(len(value)), b"\xff" * len(value), b"\0" * (len(value) - 2) + b"\xf0\x7f"))
    texts = (
        b"",
        b"\xff\xfe",
        b"A" * 100_000,
        b"/device:GPU:0",
        b"/host:CPU",
        b"a/b:C",
        value * 3,
        value[: len(value) // 2],
        b"\0",
        b"$x.py:1 f",
    )
    other = random.choice(texts)
    return _chunk(tag, other) if random.random() < 0.8 else tag + varint(random.choice(_WORDS)) + other  # a length that lies


def _chunk(tag: bytes, value: bytes) -> bytes:
    return tag + varint(len(value)) + value


_PROTO = (_message, _message, _message, _message)
