"""Read TensorFlow's RunMetadata (binary or text, also a bare StepStats) of one `session.run` into `Raw`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tracediag.columns import Health
from tracediag.errors import BrokenTraceError, NotATraceError
from tracediag.readers._prototree import Schema, Tree, decode, first, parse_text
from tracediag.readers._rows import MemoryRow, raw_of
from tracediag.readers._tensors import shapes_and_dtypes
from tracediag.readers._tfnodes import Node, label_parts, node_rows
from tracediag.readers._wire import WireError, varint
from tracediag.readers._xplane_names import kernel_details

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.columns import Raw
    from tracediag.sources import Source

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "tf1-runmetadata"
SCHEMA: Schema = {  # field numbers of tensorflow/core/protobuf/config.proto and tensorflow/core/framework/step_stats.proto
    "RunMetadata": {1: ("step_stats", "StepStats")},
    "StepStats": {1: ("dev_stats", "DeviceStepStats")},
    "DeviceStepStats": {1: ("device", "str"), 2: ("node_stats", "NodeExecStats")},
    "NodeExecStats": {
        1: ("node_name", "str"), 2: ("all_start_micros", "int"), 5: ("all_end_rel_micros", "int"), 6: ("memory", "Memory"),
        7: ("output", "NodeOutput"), 8: ("timeline_label", "str"), 10: ("thread_id", "int"), 13: ("all_start_nanos", "int"),
        16: ("all_end_rel_nanos", "int"),
    },
    "Memory": {1: ("allocator_name", "str"), 2: ("total_bytes", "int"), 5: ("allocator_bytes_in_use", "int")},
    "NodeOutput": {1: ("slot", "int"), 3: ("tensor_description", "Tensor")},
    "Tensor": {1: ("dtype", "int"), 2: ("shape", "Shape")},
    "Shape": {2: ("dim", "Dim"), 3: ("unknown_rank", "int")},
    "Dim": {1: ("size", "int")},
}  # fmt: skip
_TEXT = re.compile(rb"\s*(?:#[^\n]*\n\s*)*(?:step_stats\s*:?\s*[{<]|dev_stats\s*:?\s*[{<])")
_COPY = re.compile(r"num_bytes: (\d{1,18})\b")
_LIMIT = 1 << 61


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a message: text that opens its first field, or fields down to a device's name."""
    return _TEXT.match(head) is not None or _levels(head) is not None


def _levels(head: bytes) -> str | None:
    """Message that the file holds, found by how many levels of field 1 lie above the name of a device."""
    pos, end = 0, len(head)
    try:
        for message in (None, "StepStats", "RunMetadata"):
            number, wire, pos, end = _opening(head, pos, end)
            if number != 1 or wire != 2:
                return None
            if message and head[pos : pos + 1] == b"/" and head[pos : min(end, len(head))].isascii():
                return message
    except (WireError, StopIteration):
        return None
    return None


def _opening(head: bytes, pos: int, end: int) -> tuple[int, int, int, int]:
    """(number, wire type, start, end) of the field at `pos`, which may pass the end of what was read."""
    tag, pos = varint(head, pos)
    size, pos = varint(head, pos)
    return tag >> 3, tag & 7, pos, pos + size


def read(source: Source) -> Raw:
    """Columns of one run. Raises NotATraceError when no step was recorded, BrokenTraceError when nothing whole is left of it."""
    data = source.read()
    message = _levels(data)
    tree, whole = decode(SCHEMA, message, data, 0, len(data)) if message else parse_text(data.decode("utf-8", "replace"))
    devices = _devices(tree)
    nodes = [node for device in devices for node in _nodes(device)]
    whole = whole and not source.truncated
    if not nodes:
        if not whole:
            raise BrokenTraceError(f"{source.name}: the file ends before its first node does; copy it again")
        raise NotATraceError(f"{source.name}: RunMetadata without step_stats; run the session with trace_level=FULL_TRACE")
    cut = Health("truncated-file", "error", "the file ends inside a message", "later nodes are missing; totals are too low")
    memory = [row for device in devices for row in _memory(device)]
    return raw_of(FORMAT, "tensorflow", len(nodes), node_rows(nodes), health=() if whole else (cut,), memory=memory)


def _devices(tree: Tree) -> list[Tree]:
    steps = [*tree.get("step_stats", ()), tree]
    return [device for step in steps if isinstance(step, dict) for device in step.get("dev_stats", ()) if isinstance(device, dict)]


def _nodes(device: Tree) -> Iterator[Node]:
    place = str(first(device, "device", ""))
    for stats in device.get("node_stats", ()):
        if isinstance(stats, dict):
            yield _node(place, stats)


def _node(device: str, stats: Tree) -> Node:
    label = str(first(stats, "timeline_label", ""))
    name, _, op = str(first(stats, "node_name", "")).partition(":")
    _, labelled = label_parts(label)
    if not op and not labelled and label.startswith(f"{name}:"):  # 'Conv2D:Conv2D regs:17 shm:0 grid:1,1,1': a kernel
        op = label.removeprefix(f"{name}:").split(" ", 1)[0].split("#", 1)[0]
    size = _COPY.search(label) if name.upper().startswith(("MEMCPY", "MEMSET")) else None
    if size:  # 'Conv2D:Conv2D num_bytes: 112 destination: 0 async: false': a copy for that node
        op, name = name, label.partition(":")[0]
    detail = kernel_details(label) if "grid:" in label else {}
    start, dur = _time(stats)
    outputs = [first(out, "tensor_description", {}) for out in stats.get("output", ()) if isinstance(out, dict)]
    shapes, dtypes = shapes_and_dtypes([tensor for tensor in outputs if isinstance(tensor, dict)])
    text = json.dumps(detail, sort_keys=True, separators=(",", ":")) if detail else None
    number = int(size.group(1)) if size else None
    return Node(device, name, labelled or op, start, dur, _int(first(stats, "thread_id")), shapes, dtypes, text, number)


def _time(stats: Tree) -> tuple[int, int]:
    """(start, duration) in ns: of the fields in nanoseconds where they are filled, else of those in microseconds."""
    start, dur = _int(first(stats, "all_start_nanos")), _int(first(stats, "all_end_rel_nanos"))
    if start or dur:
        return start, dur
    return _int(first(stats, "all_start_micros")) * 1000, _int(first(stats, "all_end_rel_micros")) * 1000


def _memory(device: Tree) -> Iterator[MemoryRow]:
    """What each node took from its allocator, at its start."""
    for stats in device.get("node_stats", ()):
        for used in stats.get("memory", ()) if isinstance(stats, dict) else ():
            size = _int(first(used, "total_bytes")) if isinstance(used, dict) else 0
            if size > 0:
                total = _int(first(used, "allocator_bytes_in_use"))
                name = str(first(stats, "node_name", "")).partition(":")[0]
                yield MemoryRow(_time(stats)[0], size, str(first(used, "allocator_name", "")) or None, name or None, total or None)


def _int(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < _LIMIT else 0
