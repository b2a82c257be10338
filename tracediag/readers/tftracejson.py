"""Read the trace.json(.gz) that TensorFlow and JAX make from an xplane for the trace viewer into `Raw`: complete at best, never more."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tracediag.columns import Health
from tracediag.readers._chrome import Event, all_events, args_of, event_stream, stream_health
from tracediag.readers._coding import nanoseconds
from tracediag.readers._rows import Row, raw_of
from tracediag.readers._xplane_names import Named, copy_bytes, copy_details, input_dtypes, input_shapes, kernel_details, tf_op_parts
from tracediag.readers._xplane_planes import Place, named_event, place_of, used_lines
from tracediag.readers._xplane_space import Line, Meta, Plane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracediag.columns import Raw
    from tracediag.sources import Source

__all__ = ["CAP", "FORMAT", "read", "sniff"]

FORMAT = "tf-trace-json"
CAP = 1_000_000
"""Events that the converter keeps at most: the earliest."""
_NEAR = 0.99  # of CAP: the converter counts some events that it does not write
_PROCESS = re.compile(rb'"process_name"[^{}]*\{[^{}]*"name"\s*:\s*"/(?:host|device):[\w:]+(?: \([^"]*\))?"', re.DOTALL)
_DETAIL = ("tf_function_call", "hlo_module", "hlo_category", "eager_op")
_JAX = ("PjitFunction", "PjRt", "jit_", "Pjit")
_TENSORFLOW = ("EagerLocalExecute", "EagerExecute", "ExecutorState", "FunctionRun")


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is the viewer's JSON: its metadata say so, or its processes are /host:CPU and devices."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"{") and (b'"highres-ticks"' in text or _PROCESS.search(text) is not None)


def read(source: Source) -> Raw:
    """Columns of one file, and a health item that says what the format leaves out.

    Raises NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of it, InputError on read errors.
    """
    events, stream = all_events(source, event_stream)
    rows = list(_rows(events))
    names = {row.name for row in rows}
    tensorflow = any(row.role == "function" and not row.name.startswith("Pjit") for row in rows)
    tensorflow |= any(name.startswith(_TENSORFLOW) for name in names)
    jax = any(name.startswith(_JAX) for name in names)
    health = (*stream_health(stream, source.truncated), *_losses(events))
    return raw_of(FORMAT, "jax" if jax and not tensorflow else "tensorflow", len(events), rows, health=health)


def _losses(events: Sequence[Event]) -> Iterator[Health]:
    yield Health(
        "lossy-format",
        "info",
        "trace.json is made for the trace viewer: allocations, most shapes and many facts of events are left out",
        "rules that need them are skipped; give the *.xplane.pb beside it",
    )
    timed = sum(event.ph == "X" for event in events)
    if timed >= _NEAR * CAP:
        text = f"{timed} events: the file was cut at a million, and everything later is missing"
        yield Health("event-cap", "warning", text, "later steps and other threads are missing; give the *.xplane.pb beside it")


def _rows(events: Sequence[Event]) -> Iterator[Row]:
    processes = {event.pid: str(args_of(event).get("name", "")) for event in events if event.ph == "M" and event.name == "process_name"}
    lanes = _lanes(events, processes)
    starts = nanoseconds([event.ts for event in events]).tolist()
    lengths = nanoseconds([event.dur for event in events]).tolist()
    for event, start, dur in zip(events, starts, lengths, strict=True):
        if event.ph == "X":
            lane = lanes.get((event.pid, event.tid))
            if lane is not None and (row := _row(event, *lane, start, dur)) is not None:
                yield row


def _lanes(events: Sequence[Event], processes: dict[Any, str]) -> dict[tuple[Any, Any], tuple[Place, str, str | None]]:
    """(pid, tid) -> place, lane, role of all its events; threads whose events repeat others are not in it."""
    names = {(e.pid, e.tid): str(args_of(e).get("name", "")) for e in events if e.ph == "M" and e.name == "thread_name"}
    used = {(event.pid, event.tid) for event in events if event.ph == "X"}
    taken: set[str] = set()
    lanes = {}
    for pid in sorted({pid for pid, _ in used}, key=str):
        plane = Plane(name=processes.get(pid) or "/host:CPU")  # without a name it cannot be told from the host
        place = place_of(plane)
        if place is None:
            continue
        threads = sorted((tid for own, tid in used if own == pid), key=str)
        lines = {tid: Line(id=number, name=names.get((pid, tid), "")) for number, tid in enumerate(threads)}
        plane.lines = [line if line.name or place.kind != "host" else Line(id=line.id, name=f"thread {tid}") for tid, line in lines.items()]
        tids = dict(zip((line.id for line in plane.lines), lines, strict=True))
        for one in used_lines(plane, place, taken):
            lanes[pid, tids[one.line.id]] = (place, one.lane, one.role)
    return lanes


def _row(event: Event, place: Place, lane: str, role: str | None, start: int, dur: int) -> Row | None:
    args = args_of(event)
    named = named_event(Meta(name=str(args.get("long_name") or event.name), display=event.name), place)
    if named.role is None:
        return None
    text = {key: str(value) for key, value in args.items()}
    named = _device_named(named, text) if place.device else _host_named(named, event.name, text)
    step = _int(text.get("step_num")) if named.role == "annotation" else None
    shape = text.get("shape", "") if text.get("shape", "").startswith("(") else ""
    return Row(
        role or named.role or "framework", named.name, lane, start, dur, label=named.label, device=place.device,
        correlation=_int(text.get("correlation_id")), bytes=copy_bytes(text.get("memcpy_details", "")), flops=_int(text.get("flops")),
        step_num=step, in_shapes=input_shapes(shape), in_dtypes=input_dtypes(shape), detail=_detail(text),
    )  # fmt: skip


def _host_named(named: Named, name: str, text: dict[str, str]) -> Named:
    if "hlo_op" in text:
        return Named("op", re.sub(r"(?:\.\d+)+$", "", text["hlo_op"]), text["hlo_op"])
    if named.role == "framework":
        if "step_num" in text:
            return Named("annotation", named.name, None)
        if "tf_function_call" in text:
            return Named("function", named.name, None)
        if "correlation_id" in text:
            return Named("runtime", named.name, None)
    return named


def _device_named(named: Named, text: dict[str, str]) -> Named:
    for key in ("tf_op", "annotation", "name", "hlo_op"):
        label = text.get(key, "").split("#", 1)[0].rstrip(":")
        if label and label != "XlaModule":
            return Named(named.role, named.name, named.label or tf_op_parts(label)[0] or label)
    return named


def _detail(text: dict[str, str]) -> str | None:
    found: dict[str, Any] = {key: text[key] for key in _DETAIL if text.get(key)}
    if "tracing_count" in text:
        found["tracing_count"] = _int(text["tracing_count"])
    found.update(kernel_details(text.get("kernel_details", "")))
    found.update(copy_details(text.get("memcpy_details", "")))
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if found else None


def _int(text: str | None) -> int | None:
    """A positive number in decimal text, None for anything else."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None
