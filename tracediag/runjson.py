"""Read run.json: one of ours, of a version that is known, with values of the kinds that its readers expect."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tracediag.errors import InputError
from tracediag.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_run"]

RUN_SCHEMA = "tracediag.run/"
MAX_INT = 1 << 62
"""Numbers beyond it are no count, size or time of anything."""
MAX_COUNT = 1 << 40
MAX_TIME = 1 << 50
"""Nanoseconds of a step: thirteen days."""
LEVELS = ("info", "warning", "error")


def read_run(name: str, data: bytes) -> dict[str, Any] | None:
    """The facts in a run.json called `name`, None when it is not one of ours.

    Values of a kind that tracediag never writes are left out and named in a note. Raises InputError when the file is broken or of a
    newer major version.
    """
    try:
        run = _clean(json.loads(data, parse_constant=lambda _: None, parse_int=_int))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken JSON ({error}); remove it to explain the trace alone") from error
    schema = run.get("schema") if isinstance(run, dict) else None
    if not isinstance(schema, str) or not schema.startswith(RUN_SCHEMA):
        return None
    if schema != f"{RUN_SCHEMA}1":
        raise InputError(f"{name}: written by a newer tracediag ({schema[:40]!r}); upgrade with `pip install -U tracediag`")
    odd = [key for key, fits in _FITS.items() if run.get(key) is not None and not fits(run[key])]
    if not odd:
        return dict(run)
    message = f"{name}: {', '.join(sorted(odd))}: not what tracediag writes; left out"
    note = {"id": "odd-run-facts", "level": "warning", "message": message, "effect": "rules that need these facts are skipped"}
    kept = {key: value for key, value in run.items() if key not in odd}
    return kept | {"notes": [*(kept.get("notes") or ()), note]}


def _int(text: str) -> int | None:
    if len(text) > 20:
        return None
    value = int(text)
    return value if abs(value) < MAX_INT else None


def _clean(value: Any) -> Any:
    """The value without what cannot be written again: lone halves of surrogate pairs, numbers that are infinite."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _texts(value: Any) -> bool:
    return isinstance(value, str)


def _lists(value: Any) -> bool:
    return isinstance(value, list)


def _objects(value: Any) -> bool:
    return isinstance(value, dict)


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _windows(value: Any) -> bool:
    return _rows(value) and all(_count(row.get("steps_per_call") or 1) and _count(row.get("first_step") or 0) for row in value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < MAX_COUNT


def _notes(value: Any) -> bool:
    return _rows(value) and all(
        row.get("level") in LEVELS and isinstance(text, str) and text.isprintable() for row in value for text in row.values()
    )


def _series(value: Any) -> bool:
    """Columns of numbers; wall_ns has one for each step."""
    if not isinstance(value, dict) or not all(column is None or isinstance(column, list) for column in value.values()):
        return False
    numbers = (item for column in value.values() for item in column or ())
    return all(item is None or isinstance(item, int) for item in numbers) and all(
        isinstance(item, int) and 0 <= item < MAX_TIME for item in value.get("wall_ns") or ()
    )


def _graphs(value: Any) -> bool:
    """name -> nodes as [name, index into `strings`, ...]."""
    if not isinstance(value, dict) or not _strings(value.get("strings") or []):
        return False
    graphs = [graph for name, graph in value.items() if name != "strings"]
    return all(isinstance(graph, dict) and all(map(_node, graph.get("nodes") or ())) for graph in graphs if graph is not None) and all(
        graph is not None for graph in graphs
    )


def _node(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= 7
        and isinstance(value[0], str)
        and all(item is None or isinstance(item, int) for item in value[1:])
    )


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(item is None or isinstance(item, str) for item in value)


def _sources(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list)
        and len(row) == 4
        and isinstance(row[0], str)
        and isinstance(row[1], str | None)
        and isinstance(row[2], int)
        and isinstance(row[3], str)
        for row in value
    )


_FITS: dict[str, Callable[[Any], bool]] = {
    "framework": _texts,
    "script": _texts,
    "versions": _objects,
    "environment": _objects,
    "host": _objects,
    "flags": _objects,
    "devices": _rows,
    "windows": _windows,
    "step_series": _series,
    "batches": _strings,
    "graphs": _graphs,
    "sources": _sources,
    "warnings": _lists,
    "notes": _notes,
    **{table.name: _rows for table in TABLES if table.facts and table.name not in ("step_series", "flags", "devices")},
}
