"""Columns of `Raw` from one object per event: for the formats whose files are small, where clarity is worth more than speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import ROLES, Coded, Health, Ints, MemoryColumns, Raw, code_strings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MemoryRow", "Row", "memory_columns", "raw_of"]

_LIMIT = 1 << 62
_CODED = ("name", "label", "device", "lane", "in_shapes", "in_dtypes", "out_shapes", "out_dtypes", "detail")
_INTS = ("correlation", "external", "bytes", "flops", "sequence", "step_num")


@dataclass(slots=True)
class Row:
    """One event; fields as the columns of `Raw`, None for unknown. Times in ns; a negative duration or a start past 2**62 is unusable."""

    role: str
    name: str
    lane: str
    start_ns: int
    dur_ns: int
    label: str | None = None
    device: str | None = None
    correlation: int | None = None
    external: int | None = None
    bytes: int | None = None
    flops: int | None = None
    sequence: int | None = None
    step_num: int | None = None
    in_shapes: str | None = None
    in_dtypes: str | None = None
    out_shapes: str | None = None
    out_dtypes: str | None = None
    detail: str | None = None


@dataclass(slots=True)
class MemoryRow:
    """One allocation (positive bytes) or release; `allocated` is the total after it."""

    t_ns: int
    bytes: int
    device: str | None
    op: str | None = None
    allocated: int | None = None


def raw_of(
    form: str,
    framework: str,
    events: int,
    rows: Sequence[Row],
    facts: dict[str, Any] | None = None,
    health: tuple[Health, ...] = (),
    memory: Sequence[MemoryRow] = (),
) -> Raw:
    """The columns. events: raw records in the file. Rows whose times are unusable are left out and counted in the health."""
    good = [row for row in rows if 0 <= row.dur_ns < _LIMIT and abs(row.start_ns) < _LIMIT]
    if bad := len(rows) - len(good):
        text = f"{bad} events have a negative, infinite or unreadable time or duration and were left out"
        health = (*health, Health("bad-durations", "warning", text, "their time is missing"))
    codes = {role: code for code, role in enumerate(ROLES)}
    nothing = Coded(np.full(len(good), -1, np.int32), ())
    columns: dict[str, Any] = {column: code_strings([getattr(row, column) for row in good]) for column in _CODED}
    columns |= {column: _ints([getattr(row, column) for row in good]) for column in _INTS}
    return Raw(
        format=form,
        framework=framework,
        events=events,
        rank=None,
        role=Coded(np.array([codes[row.role] for row in good], np.int32), ROLES),
        start_ns=np.array([row.start_ns for row in good], np.int64),
        dur_ns=np.array([row.dur_ns for row in good], np.int64),
        in_strides=nothing,
        in_values=nothing,
        memory=memory_columns(memory),
        facts=facts or {},
        health=health,
        **columns,
    )


def _ints(values: Sequence[int | None]) -> Ints:
    """A nullable column; numbers that int64 cannot hold are unknown."""
    fits = [value is not None and -(1 << 63) <= value < 1 << 63 for value in values]
    return Ints(np.array([value if ok else 0 for value, ok in zip(values, fits, strict=True)], np.int64), np.array(fits, np.bool_))


def memory_columns(rows: Sequence[MemoryRow]) -> MemoryColumns | None:
    """Memory columns, None for no row."""
    rows = [row for row in rows if abs(row.t_ns) < _LIMIT and abs(row.bytes) < _LIMIT]
    if not rows:
        return None
    nothing = code_strings([None] * len(rows))
    return MemoryColumns(
        t_ns=np.array([row.t_ns for row in rows], np.int64),
        bytes=np.array([row.bytes for row in rows], np.int64),
        device=code_strings([row.device for row in rows]),
        op=code_strings([row.op for row in rows]),
        shape=nothing,
        dtype=nothing,
        region=nothing,
        allocated=_ints([row.allocated for row in rows]),
        reserved=Ints.empty(len(rows)),
    )
