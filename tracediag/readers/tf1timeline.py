"""Read the timeline JSON that TensorFlow 1 users write with `timeline.Timeline(...).generate_chrome_trace_format()` into `Raw`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracediag.readers._chrome import Event, all_events, args_of, event_stream, stream_health
from tracediag.readers._coding import nanoseconds
from tracediag.readers._prototree import parse_text
from tracediag.readers._rows import MemoryRow, raw_of
from tracediag.readers._tensors import shapes_and_dtypes
from tracediag.readers._tfnodes import Node, node_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import Raw
    from tracediag.sources import Source

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "tf1-timeline"
_PROCESS = re.compile(rb'"/[^"]*(?:[cg]pu|TPU|device:\w+):\d+[^"]* (?:Compute|Tensors)"', re.IGNORECASE)
_SUFFIX = re.compile(r" (Compute|Tensors)$")


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a timeline: its processes are devices, each with 'Compute' and 'Tensors'."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith((b"{", b"[")) and b'"ph"' in text and _PROCESS.search(text) is not None


def read(source: Source) -> Raw:
    """Columns of one timeline; several runs merged into one file become its steps.

    Raises NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of it, InputError on read errors.
    """
    events, stream = all_events(source, event_stream)
    processes = {event.pid: str(args_of(event).get("name", "")) for event in events if event.ph == "M" and event.name == "process_name"}
    times = nanoseconds([event.ts for event in events]).tolist()
    lengths = nanoseconds([event.dur for event in events]).tolist()
    tensors = _tensors(events)
    nodes = [
        _node(event, start, dur, processes, tensors)
        for event, start, dur in zip(events, times, lengths, strict=True)
        if event.ph == "X" and event.cat in ("Op", "")
    ]
    memory = _memory(events, times)
    return raw_of(FORMAT, "tensorflow", len(events), node_rows(nodes), health=stream_health(stream, source.truncated), memory=memory)


def _node(event: Event, start: int, dur: int, processes: dict[Any, str], tensors: dict[str, tuple[str | None, str | None]]) -> Node:
    args = args_of(event)
    name = str(args.get("name") or event.name)
    device = _SUFFIX.sub("", processes.get(event.pid, f"process {event.pid}"))
    op = str(args.get("op") or event.name)
    return Node(device, name, op, start, dur, event.tid, *tensors.get(name, (None, None)))


def _tensors(events: Sequence[Event]) -> dict[str, tuple[str | None, str | None]]:
    """Shape and dtype of each node's output, where the timeline was made with show_memory."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for event in events:
        if event.ph == "O" and event.cat == "Tensor":
            snapshot = args_of(event).get("snapshot")
            text = snapshot.get("tensor_description") if isinstance(snapshot, dict) else None
            if isinstance(text, str):
                found.setdefault(event.name, shapes_and_dtypes([parse_text(text)[0]]))
    return found


def _memory(events: Sequence[Event], times: Sequence[int]) -> list[MemoryRow]:
    """The counters of each allocator as changes of its total."""
    samples = sorted(
        (time, name, value)
        for event, time in zip(events, times, strict=True)
        if event.ph == "C" and event.cat == "Memory"
        for name, value in args_of(event).items()
        if isinstance(value, int) and 0 <= value < 1 << 62
    )
    rows = []
    before: dict[str, int] = {}
    for time, name, value in samples:
        if change := value - before.get(name, 0):
            rows.append(MemoryRow(time, change, name, allocated=value))
        before[name] = value
    return rows
