"""Fill what a trace does not carry from the facts of the run: shapes, dtypes and lines of TensorFlow nodes, lines of torch ops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import Coded, IntArray, code_strings
from tracediag.distinct import combinations
from tracediag.nesting import inherit
from tracediag.shapelines import VaryingShapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.assemble import Events

__all__ = ["graph_columns", "python_sources", "recorded_sources"]

_PREFIX = re.compile(r"^(?:.*/(?=_\d+/)_\d+/)?(?:StatefulPartitionedCall(?:_\d+)?/|PartitionedCall(?:_\d+)?/|cluster_\d+/)*")
"""What executing a node puts before its name: calls, XLA clusters, and bodies of loops and branches (while/body/_12/<node>)."""
_CALLED = re.compile(r"__inference_\w+?_\d+(?!\w)")
_NODE_COLUMNS = ("in_shapes", "in_dtypes", "out_shapes", "out_dtypes", "source")
_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): ")
_PACKAGES = (
    "torch|torchvision|torchaudio|torchrec|torchinductor_\\w+|triton|tensorflow|keras|tf_keras|numpy|scipy|pandas|PIL|tqdm|importlib|_tracediag|"
    "lightning\\w*|pytorch_lightning|accelerate|transformers|datasets|diffusers|peft|timm|deepspeed|apex|fbgemm_gpu|vllm|sglang|flashinfer|"
    "jax|jaxlib|flax|optax"
)
_LIBRARY = re.compile(
    rf"(^|/)(site-packages|dist-packages|lib/python3[^/]*|torchinductor_[^/]+|\.triton)/|^({_PACKAGES})/|(^|/)(runpy|contextlib|threading)\.py$|^<"
)
"""Frames of libraries: installed ones by their folder, and packages whose path the profiler shortened to the package's name."""


Facts = tuple[str | None, ...]


def _graphs(run: dict[str, Any]) -> dict[str, dict[str, Facts]]:
    """graph name -> node name -> (in_shapes, in_dtypes, out_shapes, out_dtypes, source)."""
    graphs = run.get("graphs") or {}
    strings = graphs.get("strings") or []

    def text(code: int | None) -> str | None:
        return strings[code] if code is not None and 0 <= code < len(strings) else None

    return {
        name: {node[0]: tuple(map(text, node[2:7])) for node in graph["nodes"]}
        for name, graph in graphs.items()
        if name != "strings" and graph.get("nodes")
    }


def _agreed(graphs: dict[str, dict[str, Facts]]) -> dict[str, Facts]:
    """Nodes of all graphs together; a name in several graphs keeps what they agree on."""
    nodes: dict[str, Facts] = {}
    for graph in graphs.values():
        for name, facts in graph.items():
            known = nodes.get(name)
            nodes[name] = facts if known is None else tuple(a if a == b else None for a, b in zip(known, facts, strict=True))
    return nodes


def _lookup(nodes: dict[str, Facts], label: str) -> Facts | None:
    """A node by its executed name: without call prefixes, then without what the graph optimizer put behind it."""
    bare = _PREFIX.sub("", label)
    return nodes.get(label) or nodes.get(bare) or nodes.get(bare.rsplit("/inputs_", 1)[0])


def _called(events: Events, names: list[str]) -> IntArray:
    """Index into `names` of the graph whose call began last before each event, -1 before the first call; shape (n,)."""
    known = {name: i for i, name in enumerate(names)}
    found = [_CALLED.search(value) for value in events.coded["name"].values]
    table = np.asarray([known.get(match[0], -1) if match else -1 for match in found] + [-1], np.int64)
    graph = table[events.coded["name"].codes]
    calls = np.flatnonzero(graph >= 0)
    if len(calls) == 0:
        return np.full(len(events), -1, np.int64)
    calls = calls[np.argsort(events.start[calls], kind="stable")]
    at = np.searchsorted(events.start[calls], events.start, "right") - 1
    return np.asarray(np.where(at >= 0, graph[calls[np.maximum(at, 0)]], -1))


def graph_columns(events: Events, run: dict[str, Any] | None) -> dict[str, Coded]:
    """Columns of TensorFlow ops from the graphs of run.json, joined by node name; empty dict where there are none.

    A function that was traced for several shapes has one graph for each: the one called last before the op counts.
    """
    graphs = _graphs(run) if run else {}
    label = events.coded["label"]
    if not graphs or not label.values:
        return {}
    names = list(graphs)
    labelled = np.flatnonzero(label.codes >= 0)
    pairs, index = combinations(_called(events, names)[labelled], label.codes[labelled])
    agreed = _agreed(graphs)
    found = [
        (_lookup(graphs[names[graph]], label.values[node]) if graph >= 0 else None) or _lookup(agreed, label.values[node])
        for graph, node in pairs.tolist()
    ]
    result = {}
    for i, column in enumerate(_NODE_COLUMNS):
        table = code_strings([facts[i] if facts else None for facts in found])
        codes = np.full(len(events), -1, np.int32)
        codes[labelled] = table.codes[index]
        spread = Coded(codes, table.values)
        result[column] = fill(events.coded[column], spread) if column in events.coded else spread
    return result


def fill(first: Coded, second: Coded) -> Coded:
    """`first`, and `second` where `first` is NULL."""
    table: dict[str, int] = {value: i for i, value in enumerate(first.values)}
    lookup = np.asarray([table.setdefault(value, len(table)) for value in second.values] + [-1], dtype=np.int32)
    return Coded(np.where(first.codes >= 0, first.codes, lookup[second.codes]).astype(np.int32), tuple(table))


def _frame_source(name: str) -> str | None:
    """'file:line' of a Python frame in the user's code, None for library frames and built-ins."""
    match = _FRAME.match(name)
    if match is None or _LIBRARY.search(match["file"]):
        return None
    return f"{match['file']}:{match['line']}"


def python_sources(events: Events, parent: IntArray, is_user: Callable[[str], str | None] = _frame_source) -> Coded | None:
    """Source line of each host event from the innermost Python frame of the user's code around it; None without such frames.

    Backward ops run outside any user frame: they take the line of the forward op that shares their sequence number.
    """
    rows = events.role_is("python")
    if not rows.any():
        return None
    name = events.coded["name"]
    table = code_strings([is_user(value) for value in name.values])
    own = np.where(rows, np.append(table.codes, np.int32(-1))[name.codes], -1).astype(np.int64)
    codes = inherit(parent, own)
    return Coded(_from_forward(events, parent, codes).astype(np.int32), table.values)


def _from_forward(events: Events, parent: IntArray, codes: IntArray) -> IntArray:
    """Fill lines of events without one through the sequence number of the nearest enclosing event that has it."""
    sequence = events.ints["sequence"]
    known = np.flatnonzero(sequence.valid & (codes >= 0) & events.role_is("op"))
    if len(known) == 0:
        return codes
    key = (events.file[known] << 48) + sequence.values[known]
    order = np.argsort(key, kind="stable")
    nearest = inherit(parent, np.where(sequence.valid, np.arange(len(events)), -1))
    missing = np.flatnonzero((codes < 0) & (nearest >= 0))
    wanted = (events.file[missing] << 48) + sequence.values[nearest[missing]]
    at = np.searchsorted(key[order], wanted, "right") - 1
    hit = (at >= 0) & (key[order][np.maximum(at, 0)] == wanted)
    codes = codes.copy()
    codes[missing[hit]] = codes[known[order[at[hit]]]]
    return codes


def recorded_sources(events: Events, run: dict[str, Any] | None, parent: IntArray, rank_in_step: IntArray) -> Coded | None:
    """Source lines from run.json `sources`: [op name, in_shapes, ordinal within the step or -1, 'file:line']; None without them.

    rank_in_step: ordinal of each event among those of its name and shapes in its step. Shapes that were not seen when lines were looked at
    are told by those that were (see `shapelines`). Events below a matched op inherit its line.
    """
    rows = (run or {}).get("sources") or []
    if not rows:
        return None
    exact, varying = {(name, shapes, ordinal): line for name, shapes, ordinal, line in rows}, VaryingShapes(rows)
    names, shapes = events.coded["name"], events.coded["in_shapes"]
    wanted = {name for name, _, _, _ in rows}
    candidates = np.flatnonzero(names.isin(wanted) & (events.coded["device"].codes < 0))
    combos, index = combinations(names.codes[candidates], shapes.codes[candidates], rank_in_step[candidates])
    shape_of = (*shapes.values, None)
    lines: list[str | None] = []
    for code, shape, ordinal in combos.tolist():
        op = names.values[code], shape_of[shape]
        lines.append(exact.get((*op, ordinal)) or exact.get((*op, -1)) or varying.line(*op, ordinal))
    table = code_strings(lines)
    own = np.full(len(events), -1, np.int64)
    own[candidates] = table.codes[index]
    return Coded(inherit(parent, own).astype(np.int32), table.values)
