"""What TensorFlow's step statistics record, whatever file they stand in: nodes on devices -> rows, runs and launches.

Used for TF 1 timelines, RunMetadata and the traces of TF 1.15 and 2.0. "/job:.../gpu:0" is the host thread that dispatches to the GPU;
the GPU itself is "/gpu:0/stream:N", once more in "stream:all" and (copies) "memcpy". https://github.com/tensorflow/tensorflow/blob/
v1.15.0/tensorflow/python/client/timeline.py
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from tracediag.readers._rows import Row
from tracediag.readers._xplane_names import plain_op

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["STEP", "Node", "label_parts", "node_rows", "without_repeats"]

STEP = "Session.run"
_STREAM = re.compile(r"/(?:device:)?(gpu|tpu):(\d+)/(stream:(?:all|\d+)|memcpy|memset)", re.IGNORECASE)
_HOST = re.compile(r"/(?:device:)?(\w+:\d+)$")
_LABEL = re.compile(r"(.*?) = ([^(]+)\((.*)\)", re.DOTALL)
_EDGE = re.compile(r"^edge_\d+_")


class Node(NamedTuple):
    """One executed node. device: as the file names it; thread: number of its lane there; op: type, "" where it is not told."""

    device: str
    name: str
    op: str
    start_ns: int
    dur_ns: int
    thread: int | str = 0
    out_shapes: str | None = None
    out_dtypes: str | None = None
    detail: str | None = None
    bytes: int | None = None


class _Lane(NamedTuple):
    device: str | None  # "GPU:0"; None on the host
    name: str


def label_parts(label: str) -> tuple[str, str]:
    """(node, op type) of 'node = Op(input, input)'; ("", "") for other text."""
    match = _LABEL.match(label)
    return (match.group(1).strip(), match.group(2).strip()) if match else ("", "")


def node_rows(nodes: Sequence[Node], steps: bool = True) -> list[Row]:
    """Rows of the nodes, device work once, linked to the host node of the same name in the same run; with a step row for each run."""
    hidden = _hidden_lanes({node.device for node in nodes})
    runs = _runs(nodes)
    copies = {(n.start_ns, n.dur_ns, n.name) for n in nodes if n.device.lower().endswith("/memcpy")}
    rows: list[Row] = []
    ids = count(1)
    for run, members in enumerate(runs):
        shown = [node for node in members if node.device not in hidden]
        made = [_row(node, (node.start_ns, node.dur_ns, node.name) in copies) for node in shown]
        _link(made, ids)
        if steps and made:
            start = min(row.start_ns for row in made)
            end = max(row.start_ns + max(row.dur_ns, 0) for row in made)
            rows.append(Row("annotation", STEP, "session", start, end - start, step_num=run))
        rows += made
    return rows


def _hidden_lanes(devices: Iterable[str]) -> set[str]:
    """Lanes that repeat others: of a device with numbered streams its `stream:all` and `memcpy`; else of `memcpy` and `stream:all` none."""
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for device in devices:
        if match := _STREAM.search(device):
            kinds.setdefault((match.group(1).lower(), match.group(2)), {})[device] = match.group(3).lower()
    hidden = set()
    for lanes in kinds.values():
        if any(re.fullmatch(r"stream:\d+", lane) for lane in lanes.values()):
            hidden |= {device for device, lane in lanes.items() if not re.fullmatch(r"stream:\d+", lane)}
    return hidden


def _runs(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by session run, in order of time. A run begins with the `_SOURCE` node of its first partition; a second one on the same
    device begins the next. (Files merged by hand may swap process numbers from run to run, which changes nothing here.)"""
    order = sorted(range(len(nodes)), key=lambda i: nodes[i].start_ns)
    begins: list[int] = []
    seen: set[str] = set()
    for i in order:
        if nodes[i].name == "_SOURCE":
            if not begins or nodes[i].device in seen:
                begins.append(nodes[i].start_ns)
                seen = set()
            seen.add(nodes[i].device)
    runs: list[list[Node]] = [[] for _ in range(max(len(begins), 1))]
    for node in nodes:
        runs[max(bisect_right(begins, node.start_ns) - 1, 0)].append(node)
    return [run for run in runs if run]


def _lane(node: Node) -> _Lane:
    stream = _STREAM.search(node.device)
    if stream:
        kind, number, lane = stream.groups()
        device = f"{kind.upper()}:{number}"
        return _Lane(device, f"{kind.lower()} {number} {lane.replace(':', ' ')}")
    host = _HOST.search(node.device)
    return _Lane(None, f"{host.group(1) if host else node.device or 'host'} dispatch/{node.thread}")


def _row(node: Node, copied: bool) -> Row:
    lane = _lane(node)
    op = plain_op(node.op or node.name)
    if lane.device is None:
        role = "function" if op.startswith("__") else "op"
    elif op.upper().startswith("MEMSET"):
        role = "memset"
    else:
        role = "copy" if copied or op.upper().startswith("MEMCPY") or lane.name.endswith("memcpy") else "kernel"
    return Row(
        role, op, lane.name, node.start_ns, node.dur_ns, label=node.name, device=lane.device, out_shapes=node.out_shapes,
        out_dtypes=node.out_dtypes, detail=node.detail, bytes=node.bytes,
    )  # fmt: skip


def _link(rows: Sequence[Row], ids: Iterator[int]) -> None:
    """Give device work and the host node that launched it one correlation id: the last of its name that began before it, else the first."""
    hosts: dict[str, list[Row]] = {}
    for row in sorted((row for row in rows if row.device is None), key=_order):
        hosts.setdefault(row.label or "", []).append(row)
    for row in sorted((row for row in rows if row.device is not None), key=_order):
        label = row.label or ""
        given = hosts.get(label) or hosts.get(_EDGE.sub("", label))
        if given:
            host = given[max(bisect_right(given, row.start_ns, key=lambda one: one.start_ns) - 1, 0)]
            host.correlation = host.correlation or next(ids)
            row.correlation = host.correlation


def _order(row: Row) -> tuple[int, str, str, int]:
    return row.start_ns, row.lane, row.label or "", row.dur_ns


def without_repeats(rows: Sequence[Row], known: Sequence[Row]) -> Iterator[Row]:
    """`rows` without the host ops that `known` has too; what these launched goes over to their twin."""
    twins = {row.label: row for row in known if row.role == "op" and row.label}
    for row in rows:
        twin = twins.get(row.label or "") if row.device is None else None
        if twin is None:
            yield row
        elif row.correlation:
            twin.correlation = row.correlation
