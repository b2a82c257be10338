"""Read the JSON of torch.profiler (Kineto), new and old, whole or damaged, into `Raw`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracediag.errors import InputError
from tracediag.readers._chrome import check_stream, event_stream, paused_collector
from tracediag.readers._kineto_columns import KinetoColumns
from tracediag.readers._kineto_facts import recording_health, trace_facts, trace_health
from tracediag.readers._kineto_lines import LineRows
from tracediag.readers._kineto_vendors import accelerator
from tracediag.readers._unknown import foreign
from tracediag.sources import HEAD, Source

if TYPE_CHECKING:
    from tracediag.columns import Raw

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "kineto"
_EVENT = re.compile(rb'"ph"\s*:\s*"')


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
    stream = event_stream(source)
    columns = KinetoColumns()
    stream.scan = LineRows(columns, stream.each).add
    try:
        with paused_collector():
            for batch in stream.batches():
                columns.add(batch)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from error
    stream.scan = None  # lets go of what was kept for it
    check_stream(source, stream, columns.events)
    columns.accelerator = accelerator(columns.labels, columns.categories(), stream.keys)
    facts = trace_facts(stream.keys, columns.lane_names, columns.accelerator)
    recorded = recording_health(columns.categories(), columns.nameless, facts, stream.closed)
    health = (*trace_health(stream, source.truncated, columns.bad()), *recorded)
    rank = facts.get("distributed", {}).get("rank")
    known = isinstance(rank, int) and 0 <= rank < 1 << 31
    return columns.raw(FORMAT, rank if known else None, facts, health)
