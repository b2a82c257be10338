"""Several files of one job -> one set of event columns on one clock: ranks side by side, windows one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import Coded, IntArray, Ints, MemoryColumns, Raw, code_strings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Events", "assemble", "concat_coded", "concat_ints"]

_CODED = ("name", "role", "label", "device", "in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes", "detail")
_INTS = ("correlation", "external", "bytes", "flops", "sequence", "step_num")


@dataclass(frozen=True)
class Events:
    """Event columns of all files, n rows, times from the start of the trace.

    coded / ints: the like-named columns of `Raw`. lane: Coded, unique over files. file: index of the file of each row.
    rank: Ints. framework: Coded.
    """

    coded: dict[str, Coded]
    ints: dict[str, Ints]
    lane: Coded
    framework: Coded
    file: npt.NDArray[np.int64]
    rank: Ints
    start: IntArray
    end: IntArray
    memory: MemoryColumns | None
    memory_rank: Ints | None

    def __len__(self) -> int:
        return len(self.start)

    def role_is(self, *roles: str) -> npt.NDArray[np.bool_]:
        """Mask of rows with one of `roles`."""
        return self.coded["role"].isin(roles)


def concat_coded(parts: Sequence[Coded]) -> Coded:
    """Put dictionary-coded columns below each other, with one dictionary."""
    if len(parts) == 1:
        return parts[0]
    table: dict[str, int] = {}
    codes = []
    for part in parts:
        lookup = np.asarray([table.setdefault(value, len(table)) for value in part.values] + [-1], dtype=np.int32)
        codes.append(lookup[part.codes])
    return Coded(np.concatenate(codes).astype(np.int32), tuple(table))


def concat_ints(parts: Sequence[Ints]) -> Ints:
    """Put nullable integer columns below each other."""
    if len(parts) == 1:
        return parts[0]
    return Ints(np.concatenate([p.values for p in parts]), np.concatenate([p.valid for p in parts]))


def _constant(value: int | None, n: int) -> Ints:
    if value is None:
        return Ints.empty(n)  # takes no memory as long as nothing is written
    return Ints(np.full(n, value, np.int64), np.ones(n, np.bool_))


def _origins(raws: Sequence[Raw]) -> list[int]:
    """Zero of each file's clock: one for all when the files lie within a day of each other, else each file's own start."""
    firsts = [int(raw.start_ns.min()) if len(raw) else 0 for raw in raws]
    used = [first for first, raw in zip(firsts, raws, strict=True) if len(raw)]
    if used and max(used) - min(used) < 86_400 * 10**9:
        return [min(used)] * len(raws)
    return firsts


def _lanes(raws: Sequence[Raw]) -> Coded:
    if len(raws) == 1:
        return raws[0].lane
    named = []
    for i, raw in enumerate(raws):
        prefix = f"rank {raw.rank} " if raw.rank is not None else f"file {i} "
        named.append(Coded(raw.lane.codes, tuple(prefix + value for value in raw.lane.values)))
    return concat_coded(named)


def _memory(raws: Sequence[Raw], origins: list[int]) -> tuple[MemoryColumns | None, Ints | None]:
    parts = [(raw.memory, origin, raw.rank) for raw, origin in zip(raws, origins, strict=True) if raw.memory is not None]
    if not parts:
        return None, None
    tables = [part[0] for part in parts]

    def coded(column: str) -> Coded:
        return concat_coded([getattr(m, column) for m in tables])

    merged = MemoryColumns(
        t_ns=np.concatenate([m.t_ns - origin for m, origin, _ in parts]),
        bytes=np.concatenate([m.bytes for m in tables]),
        device=coded("device"),
        op=coded("op"),
        shape=coded("shape"),
        dtype=coded("dtype"),
        region=coded("region"),
        allocated=concat_ints([m.allocated for m in tables]),
        reserved=concat_ints([m.reserved for m in tables]),
    )
    return merged, concat_ints([_constant(rank, len(m.t_ns)) for m, _, rank in parts])


def assemble(raws: Sequence[Raw], run: dict[str, Any] | None = None) -> Events:
    """Merge the files of one job. Rows keep the order of the files and within each file."""
    origins = _origins(raws)
    sizes = [len(raw) for raw in raws]
    start = np.concatenate([raw.start_ns - origin for raw, origin in zip(raws, origins, strict=True)])
    duration = np.concatenate([raw.dur_ns for raw in raws])
    memory, memory_rank = _memory(raws, origins)
    return Events(
        coded={column: concat_coded([getattr(raw, column) for raw in raws]) for column in _CODED},
        ints={column: concat_ints([getattr(raw, column) for raw in raws]) for column in _INTS},
        lane=_lanes(raws),
        framework=concat_coded([Coded(np.zeros(n, np.int32), (raw.framework,)) for raw, n in zip(raws, sizes, strict=True)]),
        file=np.repeat(np.arange(len(raws)), sizes) if len(raws) > 1 else np.zeros(sum(sizes), np.int64),
        rank=concat_ints([_constant(raw.rank, n) for raw, n in zip(raws, sizes, strict=True)]),
        start=start.astype(np.int64),
        end=(start + duration).astype(np.int64),
        memory=memory,
        memory_rank=memory_rank,
    )


def no_strings(n: int) -> Coded:
    """A string column of `n` NULLs."""
    return code_strings([None] * n)
