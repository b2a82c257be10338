"""The private parts of TensorFlow that the hooks need, looked up in one place: what is missing is noted, and its hook stays out."""

from __future__ import annotations

import importlib
import os
from typing import Any

from . import guard

PLACES = {
    "function_class": ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "Function"),
    "concrete_class": ("tensorflow.python.eager.polymorphic_function.concrete_function", "ConcreteFunction"),
    "graph_class": ("tensorflow.python.framework.func_graph", "FuncGraph"),
    "graph_module": ("tensorflow.python.framework.func_graph", None),
    "iterator_class": ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator"),
    "stack_module": ("tensorflow.python.util.tf_stack", None),
}
OLDER = {  # TensorFlow < 2.12
    "function_class": ("tensorflow.python.eager.def_function", "Function"),
    "concrete_class": ("tensorflow.python.eager.function", "ConcreteFunction"),
}
NEEDED = {
    "function_class": ("__call__", "experimental_get_tracing_count"),
    "concrete_class": ("__call__",),
    "graph_class": ("__init__",),
    "graph_module": ("func_graph_from_py_func",),
    "iterator_class": ("__next__", "__init__"),
    "stack_module": ("extract_stack",),
}
LOST = {
    "function_class": "Steps made by tf.function are not found.",
    "concrete_class": "Steps made by concrete functions are not found.",
    "graph_class": "Shapes, dtypes and source lines of graph ops are missing.",
    "graph_module": "Tracing counts and times a step are missing.",
    "iterator_class": "Time spent in tf.data iterators is missing.",
    "stack_module": "Source lines inside tf.function are missing.",
}


def _find(name: str) -> Any:
    for places in (PLACES, OLDER):
        if name not in places:
            continue
        module_name, attribute = places[name]
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        found = module if attribute is None else getattr(module, attribute, None)
        if found is not None and all(hasattr(found, need) for need in NEEDED[name]):
            return found
    guard.note("tf-private-" + name, "warning", f"this TensorFlow has no {PLACES[name][0]}.{PLACES[name][1] or ''}", LOST[name])
    return None


class Private:
    """Attributes named as in PLACES, each None where this TensorFlow lacks it."""

    function_class: Any
    concrete_class: Any
    graph_class: Any
    graph_module: Any
    iterator_class: Any
    stack_module: Any

    def __init__(self) -> None:
        for name in PLACES:
            setattr(self, name, _find(name))
        _hide_frames()


def _hide_frames() -> None:
    """TensorFlow leaves its own frames out of the tracebacks that users see: ours among them too."""
    module: Any = importlib.import_module("tensorflow.python.util.traceback_utils")
    paths = getattr(module, "_EXCLUDED_PATHS", None)
    if isinstance(paths, tuple):
        module._EXCLUDED_PATHS = (*paths, os.path.dirname(os.path.abspath(__file__)))
