"""Shapes and dtypes of TensorDescription trees (see `_prototree`) in the canonical spelling of `Raw`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracediag.readers._prototree import Tree, first
from tracediag.readers._xplane_names import tf_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["shapes_and_dtypes"]

_TEXT = {"half": "float16", "float": "float32", "double": "float64"}


def shapes_and_dtypes(tensors: Sequence[Tree]) -> tuple[str | None, str | None]:
    """('[[2,3]]', '["float32"]') of TensorDescription trees; a size that is not known is null, (None, None) without tensors."""
    if not tensors:
        return None, None
    shapes = [_shape(first(tensor, "shape", {})) for tensor in tensors]
    dtypes = [_dtype(first(tensor, "dtype")) for tensor in tensors]
    return json.dumps(shapes, separators=(",", ":")), json.dumps(dtypes, separators=(",", ":"))


def _shape(shape: Any) -> list[int | None] | None:
    if not isinstance(shape, dict) or first(shape, "unknown_rank") in ("true", 1):
        return None
    sizes = [first(dim, "size", 0) if isinstance(dim, dict) else None for dim in shape.get("dim", ())]
    return [size if isinstance(size, int) and size >= 0 else None for size in sizes]


def _dtype(value: Any) -> str | None:
    """A DataType: its number, or DT_FLOAT."""
    if isinstance(value, int):
        return tf_dtype(str(value % 100))  # reference types are 100 more
    name = str(value or "").removeprefix("DT_").removesuffix("_REF").lower()
    return _TEXT.get(name, name) or None
