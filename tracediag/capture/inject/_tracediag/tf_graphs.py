"""The side-car of graphs: node name -> op type, static shapes and dtypes, the user's line; TensorFlow's traces lack them.

Every FuncGraph that still lives is written, newest first: functions, the bodies of their loops and branches, their gradients.
"""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any

from . import tf_sources

if TYPE_CHECKING:
    from .tf_functions import Watch

MOST_NODES = 20_000
SAME_NAME = 3  # graphs of one name (a function that is traced again and again)
UPDATES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")
SKIPPED_OPS = frozenset(("Placeholder", "NoOp", "Const"))
SKIPPED_GRAPHS = frozenset(("keras_graph", "keras_scratch_graph", "initialize_variables", "tmp"))


class Strings:
    """Table of strings, each once."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._index: dict[str, int] = {}

    def index(self, text: str | None) -> int | None:
        """Position of a string (None stays None)."""
        if text is None:
            return None
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.values)
            self.values.append(text)
        return found


class Graphs:
    """Graphs already written are kept as rows, so that they outlive the functions."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.strings = Strings()
        self.tables: dict[str, dict[str, Any]] = {}
        self.embedded: set[int] = set()  # ids of the handles that an op looked rows up in
        self._nodes = 0
        self._done: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # graph -> number of ops when it was written
        self._captures: dict[int, Any] = {}  # of the graph that is being written: id of a placeholder -> the tensor outside

    def facts(self) -> dict[str, Any]:
        """`graphs` of run.json: {name: {"nodes": [[name, op, in_shapes, in_dtypes, out_shapes, out_dtypes, source]]}, "strings": [...]},
        everything but the node's name as a position in `strings`."""
        names = self._inference_names()
        seen: dict[str, int] = {}
        for ref in reversed(self.watch.graphs):
            graph = ref()
            if graph is None or str(graph.name) in SKIPPED_GRAPHS:
                continue
            seen[graph.name] = seen.get(graph.name, 0) + 1
            if seen[graph.name] <= SAME_NAME and self._nodes < MOST_NODES:
                self._add(graph, names.get(id(graph)))
        return {**self.tables, "strings": self.strings.values}

    def _inference_names(self) -> dict[int, str]:
        """id of a graph -> the name that its function has in the trace (__inference_step_12)."""
        names = {}
        for function in list(self.watch.records):
            for concrete in concretes(function):
                name = getattr(concrete, "name", b"")
                names[id(concrete.graph)] = name.decode() if isinstance(name, bytes) else str(name)
        return names

    def _add(self, graph: Any, name: str | None) -> None:
        operations = graph.get_operations()
        if self._done.get(graph) == len(operations):
            return
        self._done[graph] = len(operations)
        self._captures = captured(graph)
        nodes = []
        for op in operations:
            if op.type in SKIPPED_OPS:
                continue
            nodes.append(self._node(op))
            self._nodes += 1
            if self._nodes >= MOST_NODES:
                break
        if nodes:
            self.tables[self._free_name(name or str(graph.name))] = {"nodes": nodes}

    def _free_name(self, name: str) -> str:
        free, number = name, 1
        while free in self.tables:
            number += 1
            free = f"{name}#{number}"
        return free

    def _shape(self, tensor: Any) -> list[int | None] | None:
        """Static shape, None where unknown; for the handle of a variable, that of the variable."""
        if tensor.dtype.name == "resource":
            pairs = getattr(getattr(outside(tensor, self._captures), "_handle_data", None), "shape_and_type", None)
            if pairs:
                proto = pairs[0].shape
                return None if proto.unknown_rank else [d.size if d.size >= 0 else None for d in proto.dim]
        shape = tensor.shape
        return None if shape.rank is None else list(shape.as_list())

    def _node(self, op: Any) -> list[Any]:
        if op.type in ("ResourceGather", "ResourceGatherNd"):
            self.embedded.add(id(outside(op.inputs[0], self._captures)))
        index = self.strings.index
        return [
            op.name, index(op.type),
            index(_text([self._shape(t) for t in op.inputs])), index(_text([t.dtype.base_dtype.name for t in op.inputs])),
            index(_text([self._shape(t) for t in op.outputs])), index(_text([t.dtype.base_dtype.name for t in op.outputs])),
            index(tf_sources.of_frames(op.traceback or ())),
        ]  # fmt: skip


def captured(graph: Any) -> dict[int, Any]:
    """id of each placeholder that stands for a tensor outside -> that tensor."""
    return {id(inner): outer for outer, inner in getattr(graph, "captures", None) or ()}


def outside(tensor: Any, captures: dict[int, Any]) -> Any:
    """The tensor outside all functions that a placeholder stands for. captures: of the tensor's graph."""
    for _ in range(20):
        outer = captures.get(id(tensor))
        if outer is None:
            break
        tensor = outer
        graph = getattr(tensor, "graph", None)  # an eager tensor has none: outside
        if graph is None:
            break
        captures = captured(graph)
    return tensor


def updates_trainable(graphs: list[Any]) -> bool:
    """One of these graphs assigns to a trainable variable (metrics and batch statistics are not trainable)."""
    for graph in graphs:
        handles = {id(getattr(variable, "_handle", None)) for variable in graph.trainable_variables}
        captures = captured(graph)
        for op in graph.get_operations():
            if op.type.startswith(UPDATES) and id(outside(op.inputs[0], captures)) in handles:
                return True
    return False


def concretes(function: Any) -> list[Any]:
    """Concrete functions of a tf.function (or that one function), oldest first, without tracing anything."""
    if hasattr(function, "graph"):
        return [function]
    cache = getattr(function, "_function_cache", None)
    values = getattr(cache, "values", None)
    return list(values()) if callable(values) else []


def _text(values: list[Any]) -> str:
    return json.dumps(values, separators=(",", ":"))
