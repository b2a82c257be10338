"""Elements of traceEvents and how they are streamed out of a file: shared by every reader of Chrome-trace JSON."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracediag.columns import Health
from tracediag.errors import BrokenTraceError, InputError, NotATraceError
from tracediag.readers._jsonrepair import UNREADABLE
from tracediag.readers._jsonscan import EventStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.sources import Source

__all__ = [
    "Event",
    "FlowEvent",
    "all_events",
    "args_of",
    "check_stream",
    "event_stream",
    "flow_stream",
    "paused_collector",
    "stream_health",
]


E = TypeVar("E", bound="Event")


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


class FlowEvent(Event, gc=False):
    """An element whose flow id matters too, as raw JSON."""

    id: msgspec.Raw = msgspec.Raw(b"")


_DECODER = msgspec.json.Decoder(list[Event])
_FLOW_DECODER = msgspec.json.Decoder(list[FlowEvent])


def event_stream(source: Source) -> EventStream[Event]:
    """The events of a file, batch by batch; what is damaged is repaired or counted."""
    return EventStream(source.blocks(), _DECODER.decode, lambda text: _lenient_event(text, Event()))


def flow_stream(source: Source) -> EventStream[FlowEvent]:
    """As `event_stream`, with the ids of flows."""
    return EventStream(source.blocks(), _FLOW_DECODER.decode, lambda text: _lenient_event(text, FlowEvent()))


def all_events(source: Source, stream_of: Callable[[Source], EventStream[E]]) -> tuple[list[E], EventStream[E]]:
    """Every event of a file at once, for formats in which names stand behind what they name. stream_of: `event_stream` or `flow_stream`.

    Raises NotATraceError, BrokenTraceError and InputError as `check_stream` and `Source.blocks` do.
    """
    stream = stream_of(source)
    events: list[E] = []
    try:
        with paused_collector():
            for batch in stream.batches():
                events += batch
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    check_stream(source, stream, len(events))
    return events, stream


def check_stream(source: Source, stream: EventStream[Any], events: int) -> None:
    """Raise NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of them."""
    if not stream.found:
        if source.truncated:
            raise BrokenTraceError(f"{source.name}: the file ends before its first event; export or copy it again")
        raise NotATraceError(f"{source.name}: JSON without traceEvents; give the file that export_chrome_trace wrote")
    if not events and (stream.lost or stream.left_over):
        raise BrokenTraceError(f"{source.name}: no whole event could be read; export or copy it again")


def stream_health(stream: EventStream[Any], truncated: bool) -> tuple[Health, ...]:
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
    except UNREADABLE:
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


def _lenient_event(text: bytes, event: E) -> E:
    """One event whose values have odd types. Raises ValueError when it is no JSON object."""
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise ValueError(str(error)) from error
    for key in ("ts", "dur", "args", "id"):
        if key in values and hasattr(event, key):
            setattr(event, key, values[key])
    for key in ("ph", "cat", "name", "pid", "tid"):
        if key in values:
            value = _string(msgspec.json.decode(values[key]))
            setattr(event, key, value if key in ("pid", "tid") else str(value))
    return event


def _string(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return str(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else "" if value is None else str(value)
