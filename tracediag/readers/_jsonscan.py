"""Cut a stream of Chrome-trace JSON into batches of whole events without loading it, whatever its layout.

The fast way guesses a boundary ("},{") near the end of a block and lets the decoder prove it: a prefix that is cut anywhere but
between two events of the array cannot be valid JSON. Where no guess holds, a string-aware walk finds the events one by one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from tracediag.errors import InputError
from tracediag.readers._jsonrepair import UNREADABLE, repair

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

__all__ = ["EventStream"]

T = TypeVar("T")

BATCH = 1 << 19
_SCANNED = 4  # times as many bytes for `scan`, which works on all of them at once
MAX_HEAD = 256 << 20
MAX_EVENT = 64 << 20  # more bytes without a whole event: the file is damaged there
_CUT = re.compile(rb'\}\s*,\s*\{\s*"')
_ARRAY = b'"traceEvents"'
# Repeated groups are bounded: each turn holds a hundred bytes until the match ends, and in a damaged file a string may never end.
# What is tried in vain ends in a literal behind one set of characters, which is sought backwards without holding anything.
_FEW_ESCAPES = rb'[^"\\]*\\.(?:[^"\\]{0,64}\\.){0,9}[^"\\]{0,64}"'
_TOKEN = re.compile(
    rb'[\[{]+|[\]}]+|"traceEvents"'
    rb'|(?:"(?!traceEvents")(?:[^"\\]*"|' + _FEW_ESCAPES + rb')[^"\[\]{}]*){1,200}'  # strings, and what is no bracket between them
    rb'|"[^"\\]*(?:\\.[^"\\]*){0,200}("?)',  # a string of many escapes, or a part of it
    re.DOTALL,
)
_MORE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,200}("?)', re.DOTALL)
_LIST = re.compile(rb"\s*:\s*(.)", re.DOTALL)
_GUESSES = 4
_OPENING, _CLOSING, _QUOTE = b"[{", b"]}", ord('"')


@dataclass
class EventStream(Generic[T]):
    """Reads blocks of bytes and gives out decoded batches of events.

    decode: turns `[event, ...]` into a list, raising msgspec.DecodeError. keys: the trace-level keys, complete after the last batch.
    """

    blocks: Iterable[bytes]
    decode: Callable[[bytes], list[T]]
    decode_one: Callable[[bytes], T]  # lenient: any JSON object; raises ValueError when nothing can be made of it
    scan: Callable[[bytes], int] | None = None  # takes events off the front of a buffer by itself; returns how many bytes it took
    keys: dict[str, Any] = field(default_factory=dict)
    lost: int = 0  # events that could not be decoded
    bad_utf8: int = 0  # events in which bytes were replaced
    closed: bool = False  # the array of events ended as it should
    bare: bool = False  # the file is a list, not an object
    left_over: int = 0  # bytes behind the last whole event of a file that never closes
    found: bool = False  # there is an array of events

    def batches(self) -> Iterator[list[T]]:
        """Lists of decoded events in file order. Raises InputError when the head is absurdly long."""
        blocks = iter(self.blocks)
        buffer = yield from self._events(self._head(blocks), blocks)
        self._tail(buffer + b"".join(_bounded(blocks)))

    def _head(self, blocks: Iterator[bytes]) -> bytes:
        """Skip to the first event; returns the rest of what was read."""
        buffer = b""
        enough = 0
        for block in blocks:
            buffer += block
            if len(buffer) < enough:
                continue
            enough = 2 * len(buffer)  # a long head is looked through at doubling sizes, not once a block
            rest = self._first_event(buffer)
            if rest is not None:
                return rest
            if len(buffer) > MAX_HEAD:
                raise InputError("no traceEvents within the first 256 MiB")
        rest = self._first_event(buffer)
        if rest is None:
            self._keys_of(buffer)
        return rest or b""

    def _first_event(self, buffer: bytes) -> bytes | None:
        """What follows the opening of the list of events, None when it was not met."""
        text = buffer.removeprefix(b"\xef\xbb\xbf").lstrip()
        if text.startswith(b"["):
            self.bare = self.found = True
            return text[1:]
        start = _find_array(text)
        if start is None:
            return None
        self.found = True
        self._keys_of(text[: start[0]].rstrip().rstrip(b",") + b"}")
        return text[start[1] :]

    def _events(self, buffer: bytes, blocks: Iterator[bytes]) -> Generator[list[T], None, bytes]:
        """Yield batches until the array ends; returns the bytes behind it."""
        batch_size = BATCH if self.scan is None else _SCANNED * BATCH
        want = batch_size
        while True:
            ended = False
            parts = [buffer]
            size = len(buffer)
            while size < want and not ended:
                block = next(blocks, b"")
                ended = not block
                parts.append(block)
                size += len(block)
            buffer = b"".join(parts)
            taken = self.scan(buffer) if self.scan is not None else 0
            if taken:
                buffer = buffer[taken:]
                want = max(batch_size, 2 * len(buffer))
                if not ended:
                    continue
            batch, rest = (None, buffer) if ended else self._guess(buffer)
            if batch is None:
                batch, rest, closed = self._walk(buffer)
                if closed or ended or len(rest) > MAX_EVENT:
                    self.closed = closed
                    self.left_over = 0 if closed else len(rest.strip(b" \t\r\n,"))
                    yield batch or []
                    return rest if closed else b""
            yield batch
            want = max(batch_size, 2 * len(rest))
            buffer = rest

    def _guess(self, buffer: bytes) -> tuple[list[T] | None, bytes]:
        """Try the last few places that look like a boundary. Returns (None, buffer) when none of them is one."""
        cuts = [match.start() + 1 for match in _CUT.finditer(buffer, max(0, len(buffer) - (1 << 14)))][-_GUESSES:]
        for cut in reversed(cuts):
            try:
                return self.decode(b"".join((b"[", memoryview(buffer)[:cut], b"]"))), buffer[cut:].lstrip().removeprefix(b",")
            except UNREADABLE:
                continue
        return None, buffer

    def _walk(self, buffer: bytes) -> tuple[list[T], bytes, bool]:
        """Every whole event of the buffer, the rest, and whether the array ended."""
        spans, end, closed = _spans(buffer)
        if not spans:
            return [], buffer[end:], closed
        try:
            batch = self.decode(b"[" + b",".join([buffer[a:b] for a, b in spans]) + b"]")
        except UNREADABLE:
            batch = [event for a, b in spans for event in self._one(buffer[a:b])]
        return batch, buffer[end:], closed

    def each(self, texts: Sequence[bytes]) -> list[list[T]]:
        """The events in each of the texts: one, or none where it is no JSON, which is counted."""
        try:
            batch = self.decode(b"[" + b",".join(texts) + b"]")
            if len(batch) == len(texts):
                return [[event] for event in batch]
        except UNREADABLE:
            pass
        return [list(self._one(text)) for text in texts]

    def _one(self, text: bytes) -> Iterator[T]:
        try:
            yield from self.decode(b"[" + text + b"]")
            return
        except UNREADABLE:
            fixed, replaced = repair(text)
        self.bad_utf8 += replaced
        try:
            yield self.decode_one(fixed)
        except ValueError:
            self.lost += 1

    def _tail(self, text: bytes) -> None:
        if self.closed and not self.bare:
            self._keys_of(b"{" + text.strip().removeprefix(b","))

    def _keys_of(self, text: bytes) -> None:
        """Add the trace-level keys in an object; what stands behind its end is ignored, what cannot be read is left out."""
        spans, _, _ = _spans(text)
        if not spans:
            return
        fixed, _ = repair(text[spans[0][0] : spans[0][1]])
        try:
            values = msgspec.json.decode(fixed)
        except UNREADABLE:
            return
        self.keys.update({key: value for key, value in values.items() if key != "traceEvents"})


def _bounded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """At most MAX_HEAD bytes of the tail: behind the events stand facts, not data."""
    size = 0
    for block in blocks:
        size += len(block)
        if size <= MAX_HEAD:
            yield block


def _tokens(text: bytes) -> Iterator[tuple[bytes, int, int]]:
    """(runs of brackets of one kind or the first bytes of strings, start, end) in order, up to a string that does not end."""
    pos = 0
    while match := _TOKEN.search(text, pos):
        start, pos = match.span()
        if match.group(1) == b"":
            rest = _MORE.match(text, pos)
            while rest is not None and not rest.group(1) and rest.end() > pos:
                pos = rest.end()
                rest = _MORE.match(text, pos)
            if rest is None or not rest.group(1):
                return
            pos = rest.end()
        yield text[start : min(pos, start + len(_ARRAY))] if text[start] == _QUOTE else text[start:pos], start, pos


def _find_array(text: bytes) -> tuple[int, int] | None:
    """(start of the key, start of the first event) of traceEvents at the top level, None when it was not met."""
    depth = 0
    for token, start, end in _tokens(text):
        if token[0] in _OPENING:
            depth += len(token)
        elif token[0] in _CLOSING:
            depth -= len(token)
        elif depth == 1 and token == _ARRAY:
            value = _LIST.match(text, end)
            if value is not None and value.group(1) == b"[":
                return start, value.end()
    return None


def _spans(text: bytes) -> tuple[list[tuple[int, int]], int, bool]:
    """Whole objects at the top level of `text`: (start, end) pairs, where the rest begins, and whether a ']' closed the list."""
    spans: list[tuple[int, int]] = []
    depth = begin = rest = 0
    for token, start, end in _tokens(text):
        if token[0] in _OPENING:
            begin = begin if depth else start
            depth += len(token)
        elif token[0] in _CLOSING:
            if len(token) < depth:
                depth -= len(token)
                continue
            if depth:
                spans.append((begin, start + depth))
            closed = token.find(b"]", depth)  # a bracket that closes nothing is no event
            if closed >= 0:
                return spans, start + closed + 1, True
            rest = end
            depth = 0
    return spans, rest, False
