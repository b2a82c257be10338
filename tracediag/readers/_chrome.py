"""Elements of traceEvents and how they are streamed out of a file: shared by every reader of Chrome-trace JSON."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag.columns import Health
from tracediag.errors import BrokenTraceError, InputError, NotATraceError
from tracediag.readers._jsonscan import EventStream

if TYPE_CHECKING:
    from tracediag.sources import Source

__all__ = ["Event", "all_events", "args_of", "check_stream", "event_stream", "paused_collector", "stream_health"]


class Event(msgspec.Struct, gc=False):
    """One element of traceEvents; fields in Kineto's order. Numbers that must stay exact are kept as text."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: msgspec.Raw = msgspec.Raw(b"0")
    dur: msgspec.Raw = msgspec.Raw(b"0")
    args: msgspec.Raw = msgspec.Raw(b"{}")


_DECODER = msgspec.json.Decoder(list[Event])


def event_stream(source: Source) -> EventStream[Event]:
    """The events of a file, batch by batch; what is damaged is repaired or counted."""
    return EventStream(source.blocks(), _DECODER.decode, _lenient_event)


def all_events(source: Source) -> tuple[list[Event], EventStream[Event]]:
    """Every event of a file at once, for formats in which names stand behind what they name.

    Raises NotATraceError, BrokenTraceError and InputError as `check_stream` and `Source.blocks` do.
    """
    stream = event_stream(source)
    events: list[Event] = []
    try:
        with paused_collector():
            for batch in stream.batches():
                events += batch
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    check_stream(source, stream, len(events))
    return events, stream


def check_stream(source: Source, stream: EventStream[Event], events: int) -> None:
    """Raise NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of them."""
    if not stream.found:
        if source.truncated:
            raise BrokenTraceError(f"{source.name}: the file ends before its first event; export or copy it again")
        raise NotATraceError(f"{source.name}: JSON without traceEvents; give the file that export_chrome_trace wrote")
    if not events and (stream.lost or stream.left_over):
        raise BrokenTraceError(f"{source.name}: no whole event could be read; export or copy it again")


def stream_health(stream: EventStream[Event], truncated: bool) -> tuple[Health, ...]:
    """What was lost of a JSON file. stream: after its end."""
    items = []
    if truncated or (not stream.closed and not (stream.bare and not stream.left_over)):
        where = f"; {stream.left_over} bytes of an unfinished event were left out" if stream.left_over else ""
        text = f"the file ends before its list of events is closed{where}"
        items.append(Health("truncated-file", "error", text, "later steps are missing; totals are too low"))
    if stream.lost:
        text = f"{stream.lost} events are no valid JSON and were left out"
        items.append(Health("broken-events", "warning", text, "their time is missing"))
    if stream.bad_utf8:
        text = f"{stream.bad_utf8} events hold bytes that are no UTF-8; they were replaced"
        items.append(Health("invalid-utf8", "info", text, "names of these events may look odd"))
    return tuple(items)


def args_of(event: Event) -> dict[str, Any]:
    """The args of one event; empty where they cannot be read."""
    try:
        values = msgspec.json.decode(event.args)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return values if isinstance(values, dict) else {}


@contextmanager
def paused_collector() -> Iterator[None]:
    """Millions of short-lived objects without cycles: looking for cycles among them costs a sixth of the time and finds none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
