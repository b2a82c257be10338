"""MemoryAllocation and MemoryDeallocation events of TensorFlow -> MemoryColumns."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.columns import IntArray, Ints, MemoryColumns
from tracediag.readers._coding import NONE, Codes, Integers, joined_ints
from tracediag.readers._xplane_names import tf_dtype

if TYPE_CHECKING:
    from tracediag.readers._xplane_events import Stats

__all__ = ["MemoryRows"]

_PLAIN_SHAPE = re.compile(r"\[(?:[1-9]\d*(?:,[1-9]\d*)*)?\]$")
_ALLOCATOR = re.compile(r"GPU_(\d+)_bfc$")


class MemoryRows:
    """Growing memory columns."""

    def __init__(self) -> None:
        self._strings = {
            "allocator_name": Codes(_device),
            "tf_op": Codes(_op),
            "shape": Codes(_shape),
            "data_type": Codes(tf_dtype),
            "region_type": Codes(lambda text: text or None),
        }
        self._allocated = Integers()
        self._times: list[IntArray] = []
        self._bytes: list[IntArray] = []

    def add(
        self, index: IntArray, times: IntArray, released: npt.NDArray[np.bool_], stats: Stats, keys: dict[str, int], names: dict[int, str]
    ) -> None:
        """Append the events at `index`. times: start of every event, ns; released: True where it is a release."""
        size = stats.numbers(keys.get("allocation_bytes"), NONE)[index]
        good = index[size != NONE]
        size = size[size != NONE]
        self._times.append(times[good])
        self._bytes.append(np.where(released[good], -size, size))
        self._allocated.add(stats.numbers(keys.get("bytes_allocated"), NONE)[good])
        for stat, codes in self._strings.items():
            codes.add_codes(stats.codes(keys.get(stat), codes.table, names)[good])

    def columns(self, shift: int) -> MemoryColumns | None:
        """The columns, times moved by `shift` ns; None when there was no such event."""
        if not self._times:
            return None
        times = joined_ints(self._times)
        coded = {stat: codes.coded() for stat, codes in self._strings.items()}
        return MemoryColumns(
            t_ns=times + shift,
            bytes=joined_ints(self._bytes),
            device=coded["allocator_name"],
            op=coded["tf_op"],
            shape=coded["shape"],
            dtype=coded["data_type"],
            region=coded["region_type"],
            allocated=self._allocated.ints(),
            reserved=Ints.empty(len(times)),
        )


def _device(allocator: str) -> str | None:
    match = _ALLOCATOR.match(allocator)
    return f"GPU:{match.group(1)}" if match else allocator or None


def _op(text: str) -> str | None:
    return text.rsplit(":", 1)[0] if "/" in text or ":" in text else text or None


def _shape(text: str) -> str | None:
    if _PLAIN_SHAPE.match(text):
        return text
    try:
        return json.dumps(json.loads(text.replace("?", "null")), separators=(",", ":"))
    except ValueError:
        return None
