"""The comparison as JSON, `tracediag.comparison/1`: the same bytes for the same comparison."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracediag.comparison import Comparison

__all__ = ["as_dict", "render"]

DECIMALS = 6
"""Milliseconds to the nanosecond, so that the parts still add up; ample for shares and ratios."""


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain dicts and lists, the schema first, floats rounded to six decimals, NaN and infinities as None."""
    told = asdict(comparison)
    return {"schema": told.pop("schema"), **{name: _plain(value) for name, value in told.items()}}


def render(comparison: Comparison) -> str:
    """The comparison as JSON text, ASCII, indented by two, ending with a newline."""
    return json.dumps(as_dict(comparison), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None
    return value
