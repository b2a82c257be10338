"""Read the `local.trace` files (binary Trace messages of TensorBoard's trace viewer) of TensorFlow 1.15 and 2.0 into `Raw`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracediag.columns import Health
from tracediag.errors import BrokenTraceError
from tracediag.readers._prototree import Schema, Tree, decode, first
from tracediag.readers._rows import Row, raw_of
from tracediag.readers._tfnodes import Node, label_parts, node_rows, without_repeats
from tracediag.readers._wire import WireError, fields, varint
from tracediag.readers._xplane_names import host_event, plain_op

if TYPE_CHECKING:
    from tracediag.columns import Raw
    from tracediag.sources import Source

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "tf-local-trace"
SCHEMA: Schema = {  # field numbers of tensorflow/core/protobuf/trace_events.proto
    "Trace": {1: ("devices", "DeviceEntry"), 4: ("trace_events", "Event")},
    "DeviceEntry": {1: ("key", "int"), 2: ("value", "Device")},
    "Device": {1: ("name", "str"), 2: ("device_id", "int"), 3: ("resources", "ResourceEntry")},
    "ResourceEntry": {1: ("key", "int"), 2: ("value", "Resource")},
    "Resource": {1: ("name", "str"), 2: ("resource_id", "int")},
    "Event": {
        1: ("device_id", "int"), 2: ("resource_id", "int"), 3: ("name", "str"), 9: ("timestamp_ps", "int"), 10: ("duration_ps", "int"),
        11: ("args", "Arg"),
    },
    "Arg": {1: ("key", "str"), 2: ("value", "str")},
}  # fmt: skip
_HOST = "/host:CPU"
_OP = re.compile(r"_?[A-Z][A-Za-z0-9]*$")
_FUNCTION = re.compile(r"__(?:inference|forward|backward)_\w+$")


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is such a message: its first field is a device, keyed by a number, with threads or streams."""
    try:
        size, start = varint(head, 1)
        if head[:1] != b"\x0a" or start + size > len(head):
            return False
        (key, wire, _, _), (value, kind, a, b) = list(fields(head, start, start + size))
        if (key, wire, value, kind) != (1, 0, 2, 2):
            return False
        tree, whole = decode(SCHEMA, "Device", head, a, b)
        return whole and ("resources" in tree or str(first(tree, "name", "")).startswith("/"))
    except (WireError, ValueError, IndexError):
        return False


def read(source: Source) -> Raw:
    """Columns of one file. Raises BrokenTraceError when nothing whole is left of it, InputError on read errors."""
    data = source.read()
    tree, whole = decode(SCHEMA, "Trace", data, 0, len(data))
    whole = whole and not source.truncated
    events = tree.get("trace_events", [])
    if not events and not whole:
        raise BrokenTraceError(f"{source.name}: the file ends before its first event does; copy it again")
    devices = {first(entry, "key", 0): first(entry, "value", {}) for entry in tree.get("devices", ())}
    host, nodes = _split(events, devices)
    rows = [*without_repeats(node_rows(nodes, steps=False), host), *host]
    cut = Health("truncated-file", "error", "the file ends inside an event", "later events are missing; totals are too low")
    return raw_of(FORMAT, "tensorflow", len(events), rows, health=() if whole else (cut,))


def _split(events: list[Tree], devices: dict[int, Tree]) -> tuple[list[Row], list[Node]]:
    """Events of host threads as rows, those of the step statistics (executors, GPU streams) as nodes."""
    names = {key: str(first(device, "name", "")) for key, device in devices.items()}
    threads = {key: _threads(device) for key, device in devices.items()}
    host, nodes = [], []
    for event in events:
        device, thread = first(event, "device_id", 0), first(event, "resource_id", 0)
        start = first(event, "timestamp_ps", 0)
        end = start + first(event, "duration_ps", 0)
        time = start // 1000, end // 1000 - start // 1000
        name = str(first(event, "name", ""))
        label = next((str(first(arg, "value", "")) for arg in event.get("args", ()) if first(arg, "key") == "label"), "")
        if names.get(device, "").startswith("/host:") or not (names.get(device) or label_parts(label)[1]):
            host.append(_host_row(name, label, threads.get(device, {}).get(thread, f"thread {thread}"), thread, time))
        else:
            nodes.append(_node(names.get(device, ""), name, label, thread, time))
    return host, nodes


def _threads(device: Tree) -> dict[int, str]:
    entries = device.get("resources", ())
    return {first(entry, "key", 0): str(first(first(entry, "value", {}), "name", "")) for entry in entries}


def _node(device: str, name: str, label: str, thread: int, time: tuple[int, int]) -> Node:
    node, _, op = name.partition(":")
    return Node(device, node, label_parts(label)[1] or op, *time, thread=thread)


def _host_row(name: str, label: str, thread: str, number: int, time: tuple[int, int]) -> Row:
    """TensorFlow 2.0 writes bare op types ('ReadVariableOp', its args tell where it ran) and iterators without their prefix."""
    lane = f"{thread or 'thread'}/{number}"
    known = host_event(name.strip())
    role, text, node = known.role or "framework", known.name, known.label
    if role == "framework" and _FUNCTION.match(name):
        role = "function"
    elif role == "framework" and label.startswith("id=") and ",device=" in label and _OP.match(name):
        role, text = "op", plain_op(name)
    elif role == "framework" and thread.startswith("tf_data") and _OP.match(name):
        text = f"Iterator::{name}"
    return Row(role, text, lane, *time, label=node)
