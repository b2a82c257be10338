"""Steps and memory over time, thinned so that peaks stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import Coded, Ints
from tracediag.distinct import distinct
from tracediag.excerpt.thinning import thin

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["memory_series", "step_series"]

LEAST = 64 << 10


def step_series(trace: Trace) -> dict[str, Any] | None:
    """`step`, `wall` (ns) and `profiled` of the steps of the whole run where it was timed, else of the recorded steps (`whole`: false).

    None where no step is known.
    """
    rows = trace.facts.get("step_series") or []
    if rows:
        step = np.asarray([row["step"] for row in rows], np.int64)
        wall = np.asarray([row["wall_ns"] for row in rows], np.int64)
        profiled = np.asarray([bool(row["profiled"]) for row in rows])
    elif trace.has_steps:
        mine = trace.step_table.rank == trace.step_table.rank[0]
        step, wall = trace.step_table.number[mine], (trace.step_table.end - trace.step_table.start)[mine]
        profiled = np.ones(len(step), np.bool_)
    else:
        return None
    kept = thin(wall)
    columns = {"step": step[kept].tolist(), "wall": wall[kept].tolist(), "profiled": profiled[kept].astype(int).tolist()}
    return {**columns, "whole": bool(rows), "of": len(step)}


def memory_series(trace: Trace, rank: int) -> list[dict[str, Any]]:
    """For each device of a rank `name`, `time` (ns from the start of the trace), `allocated` and `reserved` (bytes; null: not told).

    Where the trace gives no totals, they are counted from its first allocation (`counted`). A device that never has LEAST bytes in use,
    or next to nothing beside another, is left out.
    """
    columns = trace.memory_columns
    if columns is None:
        return []
    device, of = columns["device"], columns["rank"]
    assert isinstance(device, Coded)
    assert isinstance(of, Ints)
    mine = np.where(of.valid, of.values, -1) == rank
    codes = distinct(device.codes[mine])
    names = [device.values[code] if code >= 0 else None for code in codes.tolist()]
    found = [_device(trace, np.flatnonzero(mine & (device.codes == code)), name) for code, name in zip(codes, names, strict=True)]
    peaks = [max(one["allocated"]) for one in found]
    return [one for one, peak in zip(found, peaks, strict=True) if peak >= max(LEAST, max(peaks) / 100)]


def _device(trace: Trace, rows: IntArray, name: str | None) -> dict[str, Any]:
    columns = trace.memory_columns or {}
    time, size = np.asarray(columns["t_ns"])[rows], np.asarray(columns["bytes"])[rows]
    order = np.argsort(time, kind="stable")
    rows, time, size = rows[order], time[order], size[order]
    allocated, reserved = columns["allocated"], columns["reserved"]
    assert isinstance(allocated, Ints)
    assert isinstance(reserved, Ints)
    told = bool(allocated.valid[rows].all())
    level = allocated.values[rows] if told else np.cumsum(size)
    kept = thin(level)
    known = reserved.valid[rows[kept]] & (reserved.values[rows[kept]] > 0)
    held = np.where(known, reserved.values[rows[kept]], 0).tolist() if known.any() else None
    return {
        "name": name,
        "time": time[kept].tolist(),
        "allocated": level[kept].tolist(),
        "reserved": held,
        "counted": not told,
        "of": len(rows),
    }
