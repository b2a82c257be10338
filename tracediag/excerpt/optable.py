"""The operations of a step by name: how often, how long, on the host or on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import Ints
from tracediag.distinct import combinations

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.excerpt.timeline import Texts
    from tracediag.trace import Trace

__all__ = ["op_table"]

MAX_ROWS = 400
ROLES = ("op", "function", "runtime", "framework", "kernel", "copy", "memset")
"""What counts as an operation: no ranges around others, no Python frames."""


def op_table(trace: Trace, texts: Texts) -> dict[str, Any]:
    """Columns name, kind, place (indexes of text), count, dur, self, device (ns; -1: none), the MAX_ROWS with most own time.

    They are sums over `steps` training steps (1 and all that was recorded where none is known); left_out: `rows` and their own time.
    """
    steps = trace.step_table
    counted = trace.strings("role").isin(ROLES)
    if trace.has_steps:
        counted &= np.append(steps.settled, False)[trace.step_row]
    rows = np.flatnonzero(counted)
    columns = [trace.strings(name) for name in ("name", "kind", "place")]
    groups, index = combinations(*(column.codes[rows] for column in columns))
    sums = {key: _sums(index, _values(trace, column, rows), len(groups)) for key, column in _TIMES.items()}
    count = np.bincount(index, minlength=len(groups))
    order = np.lexsort((np.arange(len(groups)), -sums["dur"], -sums["self"]))
    shown, rest = order[:MAX_ROWS], order[MAX_ROWS:]
    coded = {
        key: [texts.place(column.values[code]) if code >= 0 else -1 for code in groups[shown, i].tolist()]
        for i, (key, column) in enumerate(zip(("name", "kind", "place"), columns, strict=True))
    }
    numbers = {"count": count[shown].tolist()} | {key: values[shown].tolist() for key, values in sums.items()}
    left_out = {"rows": len(rest), "self": int(sums["self"][rest].sum())}
    return {**coded, **numbers, "steps": _steps(trace), "left_out": left_out}


_TIMES = {"dur": "dur_ns", "self": "self_ns", "device": "device_ns"}


def _steps(trace: Trace) -> int:
    return max(int(trace.step_table.settled.sum()), 1) * trace.steps_per_row if trace.has_steps else 1


def _values(trace: Trace, column: str, rows: IntArray) -> IntArray:
    cells = trace.columns[column]
    if isinstance(cells, Ints):
        return np.where(cells.valid[rows], cells.values[rows], 0)
    return trace.col(column)[rows]


def _sums(index: IntArray, values: IntArray, groups: int) -> IntArray:
    result = np.zeros(groups, np.int64)
    np.add.at(result, index, values)
    return result
