"""Rows of the fact tables from run.json and from what the trace files say about themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracediag.schema import TABLES, Table, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracediag.columns import Raw

__all__ = ["fact_rows"]


def fact_rows(raws: Sequence[Raw], run: dict[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Rows of the fact tables: run.json first, what the trace itself says where it is silent."""
    run = run or {}
    facts: dict[str, list[dict[str, Any]]] = {}
    for definition in TABLES:
        key = definition.names[0]
        rows = run.get(definition.name)
        if definition.facts and isinstance(rows, list):
            facts[definition.name] = [_fitting({**row, key: i}, definition) for i, row in enumerate(rows)]
    series = _series(run.get("step_series"), run.get("batches") or [])
    if series is not None:
        facts["step_series"] = series
    devices = run.get("devices") or [row for raw in raws for row in raw.facts.get("devices", ())]
    if devices:
        facts["devices"] = list({str(row.get("device")): _fitting(row, table("devices")) for row in devices}.values())
    flags = _flags(run)
    if flags:
        facts["flags"] = flags
    return facts


def _fitting(row: dict[str, Any], definition: Table) -> dict[str, Any]:
    """The row with None for values that their column cannot hold: files may say anything."""
    types = {column.name: column.type for column in definition.columns}
    return {name: value if name not in types or _FITS[types[name]](value) else None for name, value in row.items()}


def _whole(value: Any, limit: int) -> bool:
    """Whether a number is whole, also one written as 3.0, and small enough."""
    number = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return number and -limit <= value < limit


_FITS: dict[str, Callable[[Any], bool]] = {
    "BIGINT": lambda value: _whole(value, 1 << 63),
    "INTEGER": lambda value: _whole(value, 1 << 31),
    "DOUBLE": lambda value: isinstance(value, int | float) and abs(value) < 1e300,
    "BOOLEAN": lambda value: value in (0, 1),
    "VARCHAR": lambda value: isinstance(value, str),
}
"""DuckDB type -> whether a value of a JSON file can stand in such a column."""


def _series(columns: dict[str, list[Any] | None] | None, batches: list[str]) -> list[dict[str, Any]] | None:
    """Rows of `step_series` from its columns in run.json."""
    if not columns or not columns.get("wall_ns"):
        return None
    rows = []
    for i, wall in enumerate(columns["wall_ns"] or ()):
        row = {name: values[i] for name, values in columns.items() if values is not None and i < len(values)}
        batch = row.get("batch")
        row["batch"] = batches[batch] if isinstance(batch, int) and 0 <= batch < len(batches) else None
        whole = {**row, "step": i, "wall_ns": wall, "profiled": bool(row.get("profiled"))}
        rows.append(_fitting(whole, table("step_series")))
    return rows


def _flags(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings of the run as (flag, value) rows, sorted."""
    pairs = dict(run.get("flags") or {})
    pairs.update({f"env.{k}": v for k, v in (run.get("environment") or {}).items()})
    pairs.update({f"versions.{k}": v for k, v in (run.get("versions") or {}).items()})
    pairs.update({f"host.{k}": v for k, v in (run.get("host") or {}).items()})
    return [{"flag": key, "value": json.dumps(pairs[key], sort_keys=True)} for key in sorted(pairs)]
