"""The report as JSON, `tracediag.report/1`: the contract's keys in the contract's order, the same bytes for the same report."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["as_dict", "render", "schema"]

KEYS = {
    "": "schema tool inputs run health subject steps device breakdown findings skipped verdict prediction",
    "tool": "name version rules",
    "inputs": "path format framework bytes events rank",
    "run": "framework versions devices",
    "devices": "device name type",
    "health": "id level message effect",
    "subject": "script framework kind",
    "steps": "count median_ms mad_ms unprofiled_median_ms unprofiled_mean_ms found_by",
    "device": "kernels busy_ms busy_share window_ms",
    "breakdown": "phase host_ms device_ms idle_ms share",
    "findings": "rule code title category severity confidence share share_of speedup message where evidence why fix changes_training"
    " references also fingerprint",
    "speedup": "low high",
    "where": "file line function",
    "evidence": "op kind count_per_step ms_per_step shapes",
    "fix": "framework text code",
    "skipped": "rule reason",
    "prediction": "method recorded_ms replayed_ms withheld together",
    "together": "rules low high",
    "verdict": "rule text",
}
"""Keys of each section in the order of the contract; keys not named here follow in the order of the alphabet."""
DECIMALS = 6
"""Milliseconds to the nanosecond; ample for shares and ratios."""


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain dicts and lists, keys in order, floats rounded to six decimals, NaN and infinities as None."""
    return cast("dict[str, Any]", _plain(asdict(report), ""))


def render(report: Report) -> str:
    """The report as JSON text, ASCII, indented by two, ending with a newline."""
    return json.dumps(as_dict(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def schema() -> dict[str, Any]:
    """The published JSON Schema of `tracediag.report/1`, from the installed package or the source tree."""
    package = Path(__file__).resolve().parent.parent
    name = "report-1.schema.json"
    packaged = package / "_data" / "schema" / name
    file = packaged if packaged.is_file() else package.parent / "docs" / "schema" / name
    return cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))


def _plain(value: Any, section: str) -> Any:
    """`value`, which stands under the key `section`, with ordered keys and rounded floats."""
    if isinstance(value, dict):
        rank = {name: i for i, name in enumerate(KEYS.get(section, "").split())}
        return {name: _plain(value[name], name) for name in sorted(value, key=lambda name: (rank.get(name, len(rank)), name))}
    if isinstance(value, list | tuple):
        return [_plain(item, section) for item in value]
    if isinstance(value, float):
        return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None
    return value
