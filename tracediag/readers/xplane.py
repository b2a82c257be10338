"""Read xplane.pb (TensorFlow, JAX; CPU, GPU, TPU) into `Raw`, with a wire decoder of our own: no TensorFlow, no generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.columns import Health, Raw
from tracediag.errors import BrokenTraceError
from tracediag.readers._wire import PAD, WireError, fields, varint
from tracediag.readers._words import Words
from tracediag.readers._xplane_columns import XplaneColumns
from tracediag.readers._xplane_space import Plane, planes

if TYPE_CHECKING:
    from tracediag.sources import Source

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "xplane"
_LIMIT = 1 << 62


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is an XSpace: its first field is a plane, which begins with an id or a name."""
    try:
        if not head.startswith(b"\x0a"):
            return False
        size, pos = varint(head, 1)
        end = min(pos + size, len(head))
        number, wire, a, b = next(fields(head, pos, end))
        if number == 1 and wire == 0:
            number, wire, a, b = list(_first(head, pos, end, 2))[1]
        return number == 2 and wire == 2 and head[a:b].isascii() and head[a:b].decode().isprintable() and b > a
    except (WireError, StopIteration, IndexError):
        return False


def _first(data: bytes, start: int, end: int, count: int) -> list[tuple[int, int, int, int]]:
    found = []
    for field in fields(data, start, end):
        found.append(field)
        if len(found) == count:
            break
    return found


def read(source: Source) -> Raw:
    """Columns of one xplane.pb. Raises BrokenTraceError when nothing whole is left of it, InputError on read errors."""
    data = b"".join([*source.blocks(), bytes(PAD)])
    size = len(data) - PAD
    columns, text = XplaneColumns(), Words(data)
    environment: dict[str, Any] = {}
    whole = not source.truncated
    try:
        for plane in planes(data, size):
            whole &= plane.whole
            _environment(plane, environment)
            columns.add(plane, text)
    except WireError:
        whole = False
    if not whole and not columns.rows:
        raise BrokenTraceError(f"{source.name}: the file ends before the first plane with named events does; copy it again")
    facts = dict(environment)
    if columns.devices:
        facts["devices"] = columns.devices
    return columns.raw(FORMAT, facts, _health(columns, whole))


def _environment(plane: Plane, facts: dict[str, Any]) -> None:
    start = plane.stats.get("profile_start_time")
    if isinstance(start, int) and 0 < start < _LIMIT:
        facts["base_time_ns"] = start


def _health(columns: XplaneColumns, whole: bool) -> tuple[Health, ...]:
    items = []
    if not whole:
        text = f"the file ends inside a plane; {columns.nameless} events whose names stood behind the end were left out"
        items.append(Health("truncated-file", "error", text, "later threads and devices are missing; totals are too low"))
    if columns.lost:
        items.append(
            Health("broken-events", "warning", f"{columns.lost} events could not be decoded and were left out", "their time is missing")
        )
    if columns.bad:
        text = f"{columns.bad} events have a negative time or duration and were left out"
        items.append(Health("bad-durations", "warning", text, "their time is missing"))
    return tuple(items)
