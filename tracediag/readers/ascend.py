"""Read the trace_view.json of torch_npu (Huawei Ascend) into `Raw`: host ops as Kineto has them, device tasks in a process of their own.

Host ops have categories; CANN calls, tasks and the overlap analysis have none and are told apart by their process. A task belongs to the
CANN call with its connection_id, and by the flow "torch_to_npu", which begins where an op begins, to that op.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tracediag.readers._chrome import FlowEvent, all_events, args_of, flow_stream, stream_health
from tracediag.readers._coding import nanoseconds
from tracediag.readers._rows import Row, raw_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import Raw
    from tracediag.sources import Source

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "ascend"
_MARKS = (b'"Ascend Hardware"', b'"CANN"', b'"async_npu"', b'"torch_to_npu"', b'"enqueue_to_dequeue"', b'"async_task_queue"')
_QUOTED = re.compile(rb'"ts"\s*:\s*"\d{16}\.?\d*"[^{}]*"cat"\s*:\s*"cpu_op"')
_STEP = re.compile(r"ProfilerStep#(\d{1,18})$")
_RANGES = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
_COPY = re.compile(r"memcpy|^MemcpyAsync|SDMA", re.IGNORECASE)
_SYNC = re.compile(r"event_?(?:wait|record)|notify_?(?:wait|record)", re.IGNORECASE)
_DETAIL = ("Task Type", "Model Id", "level", "Input Shapes", "Output Shapes")
_FLOW = "async_npu"


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a file: it names CANN, the hardware or the flows between them.

    These may stand far behind; then by its quoted times and ops without the id that torch.profiler gives each.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"[", b"{")):
        return False
    return any(mark in text for mark in _MARKS) or (
        text.startswith(b"[") and _QUOTED.search(text) is not None and b'"External id"' not in text
    )


def read(source: Source) -> Raw:
    """Columns of one file.

    Raises NotATraceError for JSON without events, BrokenTraceError when nothing whole is left of it, InputError on read errors.
    """
    events, stream = all_events(source, flow_stream)
    processes = {event.pid: str(args_of(event).get("name", "")) for event in events if event.ph == "M" and event.name == "process_name"}
    starts = nanoseconds([event.ts for event in events]).tolist()
    lengths = nanoseconds([event.dur for event in events]).tolist()
    flows = _flows(events, starts)
    hardware = sorted({pid for pid, name in processes.items() if name == "Ascend Hardware"}, key=str)
    rows = []
    for event, start, dur in zip(events, starts, lengths, strict=True):
        if event.ph == "X" and (row := _row(event, start, dur, processes.get(event.pid, ""), hardware)) is not None:
            row.external = flows.get((event.pid, event.tid, start))
            rows.append(row)
    _join_launches(rows)
    return raw_of(FORMAT, "torch", len(events), rows, health=stream_health(stream, source.truncated))


def _flows(events: Sequence[FlowEvent], starts: Sequence[int]) -> dict[tuple[Any, Any, int], int]:
    """(pid, tid, start) of ops and of their tasks -> number of the op. Ids of flows may be text, or a time; several begin at one op."""
    flows = [(e.ph, bytes(e.id), (e.pid, e.tid, start)) for e, start in zip(events, starts, strict=True) if e.cat == _FLOW]
    begin = {flow: place for ph, flow, place in flows if ph == "s"}
    numbers = {place: number for number, place in enumerate(sorted(set(begin.values()), key=str), 1)}
    ends = {place: numbers[begin[flow]] for ph, flow, place in flows if ph == "f" and flow in begin}
    return ends | numbers


def _row(event: FlowEvent, start: int, dur: int, process: str, hardware: Sequence[Any]) -> Row | None:
    """A row, None for what the overlap analysis derives from others (Computing, Communication, Free)."""
    if event.cat:
        return _host_row(event, start, dur)
    args = args_of(event)
    if process == "Ascend Hardware":
        return _task(event, start, dur, args, hardware.index(event.pid))
    if process != "CANN":
        return None
    thread = args.get("Thread Id", event.tid)
    name = event.name.removeprefix("AscendCL@").removeprefix("Node@")
    return Row("runtime", name, f"thread {thread}", start, dur, correlation=_id(args.get("connection_id")), detail=_detail(args))


def _host_row(event: FlowEvent, start: int, dur: int) -> Row:
    step = _STEP.match(event.name)
    role = {"cpu_op": "op", "user_annotation": "annotation", "python_function": "python"}.get(event.cat, "framework")
    if role == "op" and event.name.startswith(_RANGES):
        role = "annotation"
    sequence = _id(args_of(event).get("Sequence number"))
    number = int(step.group(1)) if step else None
    return Row(role, event.name, f"thread {event.tid}", start, dur, sequence=sequence, step_num=number)


def _task(event: FlowEvent, start: int, dur: int, args: dict[str, Any], device: int) -> Row:
    kind = str(args.get("Task Type", ""))
    role = "kernel"
    if _SYNC.search(event.name) or _SYNC.search(kind):
        role = "device_sync"
    elif _COPY.search(event.name) or _COPY.search(kind):
        role = "copy"
    lane = f"npu {device} stream {args.get('Stream Id', event.tid)}"
    correlation = _id(args.get("connection_id"))
    return Row(role, event.name, lane, start, dur, device=f"npu:{device}", correlation=correlation, detail=_detail(args))


def _join_launches(rows: Sequence[Row]) -> None:
    """Give the CANN call of a task the flow of that task, which leads on to the op."""
    external = {row.correlation: row.external for row in rows if row.device is not None and row.external is not None}
    for row in rows:
        if row.role == "runtime" and row.correlation in external:
            row.external = external[row.correlation]


def _id(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else None


def _detail(args: dict[str, Any]) -> str | None:
    found = {key: args[key] for key in _DETAIL if args.get(key) not in (None, "", 4294967295)}
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if found else None
