"""Read the JSON of torch.profiler (Kineto), new and old, whole or damaged, into `Raw`."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag.errors import BrokenTraceError, InputError, NotATraceError
from tracediag.readers._jsonscan import EventStream
from tracediag.readers._kineto_args import Event
from tracediag.readers._kineto_columns import KinetoColumns
from tracediag.readers._kineto_facts import trace_facts, trace_health
from tracediag.readers._unknown import foreign
from tracediag.sources import HEAD, Source

if TYPE_CHECKING:
    from tracediag.columns import Raw

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "kineto"
_EVENT = re.compile(rb'"ph"\s*:\s*"')
_DECODER = msgspec.json.Decoder(list[Event])


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is a Chrome-trace JSON as torch writes it (an object, or a bare list of events)."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if foreign(text):
        return False
    if text.startswith(b"{"):
        known = b'"traceEvents"' in text or b'"deviceProperties"' in text
        return known or (b'"nodes"' not in text and (len(head) >= HEAD or b'"schemaVersion"' in text))  # a long key may stand before them
    return text.startswith(b"[") and (_EVENT.search(text) is not None or text[1:].strip() == b"]")


def read(source: Source) -> Raw:
    """Columns of one Kineto trace.

    Raises NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of them, InputError on read errors.
    """
    stream = EventStream(source.blocks(), _DECODER.decode, _lenient_event)
    columns = KinetoColumns()
    try:
        with _paused_collector():
            for batch in stream.batches():
                columns.add(batch)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    _check(source, stream, columns.events)
    facts = trace_facts(stream.keys, columns.lane_names)
    health = trace_health(stream, source.truncated, columns.bad())
    rank = facts.get("distributed", {}).get("rank")
    return columns.raw(FORMAT, rank if isinstance(rank, int) else None, facts, health)


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Millions of short-lived objects without cycles: looking for cycles among them costs a sixth of the time and finds none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _check(source: Source, stream: EventStream[Event], events: int) -> None:
    if not stream.found:
        if source.truncated:
            raise BrokenTraceError(f"{source.name}: the file ends before its first event; export or copy it again")
        raise NotATraceError(f"{source.name}: JSON without traceEvents; give the file that export_chrome_trace wrote")
    if not events and (stream.lost or stream.left_over):
        raise BrokenTraceError(f"{source.name}: no whole event could be read; export or copy it again")


def _lenient_event(text: bytes) -> Event:
    """One event whose values have odd types. Raises ValueError when it is no JSON object."""
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    event = Event()
    for key in ("ts", "dur", "args"):
        if key in values:
            setattr(event, key, values[key])
    for key in ("ph", "cat", "name", "pid", "tid"):
        if key in values:
            setattr(event, key, _string(msgspec.json.decode(values[key])))
    return event


def _string(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return str(value)
    return value if isinstance(value, str | int) else "" if value is None else str(value)
