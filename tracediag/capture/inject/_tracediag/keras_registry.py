"""Rows of `variables` and `optimizers`: what Keras layers and optimizers, and traced functions, told about them.

Rows are made while the objects live and hold no reference to them: models of a finished part of the script are freed as without us.
"""

from __future__ import annotations

import contextlib
import json
import weakref
from typing import Any

MOST_VARIABLES = 5000


class Known:
    """Objects by identity, forgotten when they die: Keras variables compare elementwise and cannot be keys."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, thing: Any) -> Any:
        """What was put for this object, or None."""
        entry = self._entries.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def put(self, thing: Any, value: Any) -> None:
        """Remember `value` for this object."""
        with contextlib.suppress(TypeError):  # cannot be referenced weakly: not remembered
            self._entries[id(thing)] = (weakref.ref(thing), value)


class Optimizer:
    """One optimizer seen at work."""

    def __init__(self, optimizer: Any, row: dict[str, Any]) -> None:
        self.reference = weakref.ref(optimizer)
        self.row = row
        self.calls = 0  # of apply outside functions

    def iterations(self) -> int | None:
        """Its own count of updates, or None (freed, or not readable now). Waits for the device."""
        optimizer = self.reference()
        value = getattr(optimizer, "iterations", None)
        try:
            return None if value is None else int(value.numpy())
        except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError):
            return None


class Registry:
    """Rows of the two tables, in order of first sight."""

    def __init__(self) -> None:
        self.variables: list[dict[str, Any]] = []
        self.optimizers: list[Optimizer] = []
        self._rows = Known()
        self._layers = Known()
        self._lines = Known()
        self._optimizers = Known()
        self._slots = Known()  # variables of optimizers: counted as slots, no rows of their own

    def made(self, layer: Any, line: str | None) -> None:
        """A layer was made on this line of the user's."""
        self._lines.put(layer, line)

    def weight(self, layer: Any, variable: Any, regularizer: Any) -> None:
        """A layer has made a weight."""
        names = [cls.__name__ for cls in type(layer).__mro__]
        info = {"layer": type(layer).__name__, "embedding": any("Embedding" in name for name in names),
                "source": self._lines.get(layer),
                "regularizer": None if regularizer is None else type(regularizer).__name__,
                "regularizer_zero": zero(regularizer)}  # fmt: skip
        self._layers.put(variable, info)

    def variable(self, variable: Any) -> dict[str, Any] | None:
        """The row of a variable, made at first sight (None when there are too many)."""
        inner = inner_variable(variable)
        if self._slots.get(inner):
            return None
        row: dict[str, Any] | None = self._rows.get(inner)
        if row is None and len(self.variables) < MOST_VARIABLES:
            row = _row(variable, inner)
            self._rows.put(inner, row)
            self.variables.append(row)
        if row is not None and row["layer"] is None:
            info = self._layers.get(variable) or self._layers.get(inner)
            if info:
                row.update(info, embedding=info["embedding"] or row["embedding"])
        return row

    def optimizer(self, optimizer: Any, source: Any) -> Optimizer:
        """The record of an optimizer; `source()` gives the line of its first use."""
        record: Optimizer | None = self._optimizers.get(optimizer)
        if record is None:
            module = type(optimizer).__module__.split(".")[0]
            row = {"class": type(optimizer).__name__, "module": module, "foreach": None, "fused": None,
                   "weight_decay": number(optimizer, "weight_decay"), "momentum": number(optimizer, "momentum"),
                   "groups": 1, "params": 0, "steps": 0, "source": source()}  # fmt: skip
            record = Optimizer(optimizer, row)
            self._optimizers.put(optimizer, record)
            self.optimizers.append(record)
        return record

    def applied(self, record: Optimizer, gradients: Any, variables: Any) -> None:
        """`optimizer` was applied to these gradients (None: no gradient for that variable)."""
        index = self.optimizers.index(record)
        shapes = self._own(record.reference())
        rows = []
        for gradient, variable in zip(gradients, variables):  # noqa: B905 (Python 3.9)
            row = self.variable(variable)
            if row is None:
                continue
            rows.append(row)
            row["optimizer"] = index
            if gradient is not None:
                _set_gradient(row, gradient)
        same: dict[str, int] = {}
        for row in rows:
            same[row["shape"]] = same.get(row["shape"], 0) + 1
        for row in rows:
            row["slots"] = shapes.count(row["shape"]) // same[row["shape"]]
        record.row["params"] = max(record.row["params"], len(rows))

    def gradients_taken(self, sources: Any, gradients: Any) -> None:
        """A tape gave gradients for these variables (nested lists are followed one level)."""
        if not isinstance(sources, (list, tuple)):
            sources, gradients = [sources], [gradients]
        for variable, gradient in zip(sources, gradients):  # noqa: B905 (Python 3.9)
            if isinstance(variable, (list, tuple)):
                self.gradients_taken(variable, gradient)
            elif hasattr(variable, "trainable") and hasattr(variable, "assign"):
                row = self.variable(variable)
                if row is not None and gradient is not None and row["gradient"] is None:
                    _set_gradient(row, gradient)

    def _own(self, optimizer: Any) -> list[str]:
        """Shapes of the optimizer's own variables, as JSON texts; they get no rows from now on."""
        own = getattr(optimizer, "variables", ())
        own = own() if callable(own) else own
        for variable in own or ():
            self._slots.put(inner_variable(variable), True)
        return [shape_text(variable) for variable in own or ()]

    def optimizer_rows(self) -> list[dict[str, Any]]:
        """The `optimizers` table; steps: its own counter where it can be read, else the calls seen."""
        for record in self.optimizers:
            record.row["steps"] = max(record.iterations() or 0, record.calls, record.row["steps"])
        return [record.row for record in self.optimizers]


def _set_gradient(row: dict[str, Any], gradient: Any) -> None:
    sparse = hasattr(gradient, "indices") and hasattr(gradient, "dense_shape")
    row["gradient"] = "indexed_slices" if sparse else "dense"
    row["embedding"] = row["embedding"] or sparse


def inner_variable(variable: Any) -> Any:
    """The backend's variable inside a Keras 3 variable, else the variable itself."""
    return getattr(variable, "_value", None) if hasattr(variable, "_value") and hasattr(variable, "path") else variable


def shape_text(variable: Any) -> str:
    """Shape as JSON text."""
    try:
        return json.dumps([int(n) for n in variable.shape], separators=(",", ":"))
    except (TypeError, ValueError):
        return "null"


def _row(variable: Any, inner: Any) -> dict[str, Any]:
    text = shape_text(variable)
    numel = 1
    for n in json.loads(text) or ():
        numel *= n
    dtype = getattr(variable, "dtype", None)
    return {
        "name": str(getattr(variable, "path", None) or getattr(variable, "name", "")), "shape": text,
        "numel": None if text == "null" else numel, "dtype": str(getattr(dtype, "name", dtype)), "device": _device(inner),
        "trainable": bool(getattr(variable, "trainable", False)), "gradient": None, "optimizer": None, "slots": None,
        "regularizer": None, "regularizer_zero": None, "layer": None, "embedding": False,
        "source": None,
    }  # fmt: skip


def _device(variable: Any) -> str | None:
    """'GPU:0' of '/job:localhost/replica:0/task:0/device:GPU:0'."""
    try:
        text = str(variable.device)
    except (AttributeError, ValueError, RuntimeError):
        return None
    return text.rsplit("device:", 1)[-1] or None


def zero(regularizer: Any) -> bool | None:
    """All coefficients of a regularizer are 0; None where it has none that we know."""
    found = []
    for name in ("l1", "l2", "factor"):
        value = getattr(regularizer, name, None)
        if value is not None:
            try:
                found.append(float(value))
            except (TypeError, ValueError):
                return None
    return all(value == 0 for value in found) if found else None


def number(optimizer: Any, name: str) -> float | None:
    """A plain number among an optimizer's attributes or (Keras 2) hyperparameters."""
    value: Any = getattr(optimizer, name, None)
    if value is None:
        value = getattr(optimizer, "_hyper", {}).get(name)
    if hasattr(value, "numpy"):
        try:
            value = float(value.numpy())
        except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError):  # not readable while a function is traced
            return None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
