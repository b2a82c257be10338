"""Shapes of the batch that a step worked on, as JSON text, cheaply."""

from __future__ import annotations

import json
from typing import Any

MOST = 16  # tensors of a call that are looked at
KEPT = 4096  # texts kept


class Shapes:
    """The latest batch: `text()` gives "[[256,4],[256]]" and forgets it."""

    def __init__(self, variable_class: Any = None) -> None:
        self._variable = variable_class
        self._texts: dict[Any, str] = {}
        self._of_call: Any = None
        self._of_loader: Any = None
        self._spec: Any = None  # the latest element_spec and its shapes: Keras passes the same iterator every step
        self._spec_shapes: list[Any] = []

    def of_call(self, args: Any, kwds: Any) -> None:
        """Arguments of a training function."""
        found: list[Any] = []
        for value in args:
            self._collect(value, found)
        if kwds:
            self._collect(kwds, found)
        self._of_call = tuple(found) or None

    def of_loader(self, element: Any) -> None:
        """An element that a data iterator gave."""
        found: list[Any] = []
        self._collect(element, found)
        self._of_loader = tuple(found) or None

    def text(self, take: bool = True) -> str | None:
        """JSON text of the shapes of this step's batch: of the function's arguments, else of the loader's element. take: forget it."""
        key = self._of_call or self._of_loader
        if take:
            self._of_call = self._of_loader = None
        if key is None:
            return None
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) > KEPT:
                self._texts.clear()
            text = self._texts[key] = json.dumps([None if shape is None else list(shape) for shape in key], separators=(",", ":"))
        return text

    def _collect(self, value: Any, found: list[Any]) -> None:
        if len(found) >= MOST:
            return
        quick = getattr(value, "_shape_tuple", None)
        if quick is not None:
            found.append(quick())
        elif isinstance(value, (tuple, list)):
            for item in value:
                self._collect(item, found)
        elif isinstance(value, dict):
            for item in value.values():
                self._collect(item, found)
        elif isinstance(value, (int, float, str, bytes, bool, type(None))):
            return
        elif hasattr(value, "element_spec"):
            spec = value.element_spec
            if spec is not self._spec:
                self._spec, self._spec_shapes = spec, []
                self._of_spec(spec, self._spec_shapes)
            found.extend(self._spec_shapes)
        elif hasattr(value, "shape") and not (self._variable is not None and isinstance(value, self._variable)):
            self._of_shape(value.shape, found)

    def _of_shape(self, shape: Any, found: list[Any]) -> None:
        rank = getattr(shape, "rank", 0)
        found.append(None if rank is None else tuple(shape))

    def _of_spec(self, spec: Any, found: list[Any]) -> None:
        """Static shapes of an iterator's elements: None where the size is not known."""
        if isinstance(spec, dict):
            spec = list(spec.values())
        if isinstance(spec, (tuple, list)):
            for item in spec:
                self._of_spec(item, found)
        elif hasattr(spec, "shape"):
            self._of_shape(spec.shape, found)
