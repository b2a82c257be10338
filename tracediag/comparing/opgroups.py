"""The operations of one side, grouped by what they are: phase, kind, name and shapes, with count and exposed time a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import combinations
from tracediag.intervals import locate
from tracediag.nesting import inherit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import Coded, IntArray
    from tracediag.comparing.parts import Part, Parts
    from tracediag.trace import Trace

__all__ = ["OpGroup", "op_groups", "source_codes"]


MARKERS = ("ProfilerStep#", "tracediag_step")
MOST = 3000
"""Groups told with their shapes; a trace whose every step has other shapes has tens of thousands."""


@dataclass(frozen=True)
class OpGroup:
    """Operations of one part, name, shapes and line. count, launches: operations and device operations a step; ns: exposed time a step;
    order: place of the first of them in the recorded time. shapes: what goes in, as JSON; out_shapes: what comes out."""

    part: Part
    name: str
    shapes: str | None
    out_shapes: str | None
    values: str | None
    dtypes: str | None
    strides: str | None
    source: str | None
    count: float
    launches: float
    ns: float
    order: int


def source_codes(trace: Trace) -> IntArray:
    """Code of the source line of each row: its own, else that of what encloses or launched it; -1 for none; shape (n,)."""
    codes = inherit(trace.parent, trace.strings("source").codes.astype(np.int64))
    linked = np.flatnonzero((trace.launch >= 0) & (codes < 0))
    codes[linked] = codes[trace.launch[linked]]
    return codes


def op_groups(trace: Trace, parts: Parts, per_step: Sequence[int]) -> tuple[OpGroup, ...]:
    """Groups of all work and of the host activity that owns idle time. per_step: ns of each class in a step, as told in the comparison."""
    factor = _factors(parts, per_step)
    segments, row = parts.segments, _operator(trace, parts)
    inside = np.flatnonzero((locate(*parts.window, segments.start) >= 0) | (parts.exclusive > 0))
    code, row, time = segments.code[inside], row[inside], (parts.exclusive * factor[segments.code])[inside]
    named = [trace.strings(name) for name in ("name", "in_shapes", "out_shapes", "in_values", "in_dtypes", "in_strides")]
    source = trace.strings("source")
    columns = [np.where(row >= 0, column.codes[row], -1) for column in named]
    columns.append(np.where(row >= 0, source_codes(trace)[row], -1))
    combos, index = _grouped(code, columns, time)
    ns, launches = np.zeros(len(combos)), np.zeros(len(combos), np.int64)
    np.add.at(ns, index, time)
    work = inside < parts.gaps
    np.add.at(launches, index[work & trace.device_mask[segments.row[inside] * work]], 1)
    first = np.full(len(combos), np.iinfo(np.int64).max)
    np.minimum.at(first, index, segments.start[inside])
    counts = _counts(index, row, len(combos))
    texts = [*named, source]
    each = zip(
        combos.tolist(), (counts / parts.steps).tolist(), (launches / parts.steps).tolist(), ns.tolist(), first.tolist(), strict=True
    )
    return tuple(
        OpGroup(parts.classes[combo[0]], *_texts(texts, combo[1:]), round(count, 4), round(launched, 4), time, order)
        for combo, count, launched, time, order in each
    )


def _grouped(code: IntArray, columns: Sequence[IntArray], time: npt.NDArray[np.float64]) -> tuple[IntArray, IntArray]:
    """The different rows of class, name and facts, and which each segment is of. Beyond MOST the shortest are told by name alone."""
    combos, index = combinations(code, *columns)
    if len(combos) <= MOST:
        return combos, index
    sums = np.bincount(index, weights=time, minlength=len(combos))
    short = np.ones(len(combos), np.bool_)
    short[np.argsort(-sums, kind="stable")[:MOST]] = False
    plain = short[index]
    return combinations(code, columns[0], *(np.where(plain, -1, column) for column in columns[1:]))


def _texts(
    columns: Sequence[Coded], codes: Sequence[int]
) -> tuple[str, str | None, str | None, str | None, str | None, str | None, str | None]:
    name, *rest = (column.values[code] if code >= 0 else None for column, code in zip(columns, codes, strict=True))
    return (name or "", *rest)  # type: ignore[return-value]  # six columns follow the name


def _factors(parts: Parts, per_step: Sequence[int]) -> npt.NDArray[np.float64]:
    """Exposed time of one recorded nanosecond of each class, in a step as told."""
    recorded = parts.total.astype(np.float64)
    told = np.asarray(per_step, np.float64)
    return np.divide(told, recorded, out=np.zeros(len(told)), where=recorded > 0)


def _operator(trace: Trace, parts: Parts) -> IntArray:
    """The row that each segment is told by: the operator that launched device work, else the row itself; the host row of idle time."""
    row = parts.segments.row.copy()
    work = row[: parts.gaps]
    owner = trace.owner[work]
    row[: parts.gaps] = np.where(trace.device_mask[work] & (owner >= 0), owner, work)
    idle = trace.gap_table.host[row[parts.gaps :]]
    names = trace.strings("name")
    marker = names.where([name.startswith(MARKERS) for name in names.values])  # the step itself is nothing that the host does
    row[parts.gaps :] = np.where((idle >= 0) & ~marker[idle], idle, -1)
    return row


def _counts(index: IntArray, row: IntArray, groups: int) -> IntArray:
    """Different rows of each group, shape (groups,)."""
    known = row >= 0
    pairs, _ = combinations(index[known], row[known]) if known.any() else (np.zeros((0, 2), np.int64), None)
    return np.bincount(pairs[:, 0], minlength=groups).astype(np.int64)
