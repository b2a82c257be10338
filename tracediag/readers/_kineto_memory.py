"""[memory] instants of Kineto -> MemoryColumns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.columns import Coded, IntArray, MemoryColumns
from tracediag.distinct import combinations
from tracediag.readers._coding import NONE, Codes, Integers, int64, joined_ints, nanoseconds
from tracediag.readers._kineto_args import MemoryArgs, decode_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.readers._chrome import Event

__all__ = ["DEVICE_TYPES", "MemoryRows"]

DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "cuda", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "npu"}
"""c10::DeviceType -> the name that torch users know; HIP (6) calls itself cuda."""


class MemoryRows:
    """Growing memory columns."""

    def __init__(self) -> None:
        self.device = Codes(_device)
        self.allocated, self.reserved = Integers(), Integers()
        self._times: list[IntArray] = []
        self._bytes: list[IntArray] = []

    def add(self, events: Sequence[Event]) -> None:
        """Append instants; those of another name than [memory] or without a size and a time are left out."""
        args = decode_args(MemoryArgs, [e.args for e in events])
        times = nanoseconds([e.ts for e in events])
        size = int64([a.bytes for a in args])
        good = (times != NONE) & (size != NONE) & np.fromiter((e.name == "[memory]" for e in events), np.bool_, len(events))
        index = np.flatnonzero(good)
        chosen = [args[i] for i in index.tolist()]
        self._times.append(times[index])
        self._bytes.append(size[index])
        self.device.add(((a.device_type, a.device_id) for a in chosen), len(chosen))
        self.allocated.add([a.allocated for a in chosen])
        self.reserved.add([a.reserved for a in chosen])

    def add_columns(self, times: IntArray, numbers: dict[str, IntArray], device_type: IntArray, device_id: IntArray) -> None:
        """Append instants as arrays, shape (n,), NONE for nothing. numbers: bytes (none: left out), allocated, reserved."""
        good = numbers["bytes"] != NONE
        self._times.append(times[good])
        self._bytes.append(numbers["bytes"][good])
        self.allocated.add(numbers["allocated"][good])
        self.reserved.add(numbers["reserved"][good])
        pairs, index = combinations(device_type[good], device_id[good])
        self.device.add_codes(self.device.table.codes(map(tuple, pairs.tolist()), len(pairs))[index])

    def columns(self, shift: int) -> MemoryColumns | None:
        """The columns, times moved by `shift` ns; None when the trace has no such events."""
        if not self._times:
            return None
        times = joined_ints(self._times)
        nothing = Coded(np.full(len(times), -1, np.int32), ())
        return MemoryColumns(
            times + shift, joined_ints(self._bytes), self.device.coded(), nothing, nothing, nothing, nothing,
            self.allocated.ints(), self.reserved.ints(),
        )  # fmt: skip


def _device(key: tuple[int | None, int | None]) -> str | None:
    kind, number = key
    if kind is None or kind == NONE:
        return None
    name = DEVICE_TYPES.get(kind, f"device{kind}")
    return name if kind == 0 or number is None or number in (NONE, -1) else f"{name}:{number}"
