"""Rows of the fact tables from run.json and from what the trace files say about themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracediag.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            facts[definition.name] = [{**row, key: i} for i, row in enumerate(rows)]
    series = _series(run.get("step_series"), run.get("batches") or [])
    if series is not None:
        facts["step_series"] = series
    devices = run.get("devices") or [row for raw in raws for row in raw.facts.get("devices", ())]
    if devices:
        facts["devices"] = list({str(row.get("device")): row for row in devices}.values())
    flags = _flags(run)
    if flags:
        facts["flags"] = flags
    return facts


def _series(columns: dict[str, list[Any] | None] | None, batches: list[str]) -> list[dict[str, Any]] | None:
    """Rows of `step_series` from its columns in run.json."""
    if not columns or not columns.get("wall_ns"):
        return None
    rows = []
    for i, wall in enumerate(columns["wall_ns"] or ()):
        row = {name: values[i] for name, values in columns.items() if values is not None and i < len(values)}
        batch = row.get("batch")
        row["batch"] = batches[batch] if isinstance(batch, int) and 0 <= batch < len(batches) else None
        rows.append({**row, "step": i, "wall_ns": wall, "profiled": bool(row.get("profiled"))})
    return rows


def _flags(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings of the run as (flag, value) rows, sorted."""
    pairs = dict(run.get("flags") or {})
    pairs.update({f"env.{k}": v for k, v in (run.get("environment") or {}).items()})
    pairs.update({f"versions.{k}": v for k, v in (run.get("versions") or {}).items()})
    pairs.update({f"host.{k}": v for k, v in (run.get("host") or {}).items()})
    return [{"flag": key, "value": json.dumps(pairs[key], sort_keys=True)} for key in sorted(pairs)]
