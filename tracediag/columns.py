"""Column types and the `Raw` event columns that every reader returns.

A reader knows one file format and turns it into these columns; everything derived (parents, self time, launch links, kinds,
phases, steps, gaps) is computed from them in `trace`, once, the same way for every format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ROLES", "Coded", "Health", "IntArray", "Ints", "MemoryColumns", "Raw", "code_strings"]

IntArray = npt.NDArray[np.int64]

ROLES = (
    "op",  # a framework operator on the host (aten::mm, MatMul)
    "function",  # a call of a compiled function on the host (tf.function, PjitFunction)
    "annotation",  # a host range named by the user, the profiler or the framework (ProfilerStep#3, Optimizer.step#Adam.step)
    "python",  # a Python frame
    "runtime",  # a host call of the device runtime or driver (cudaLaunchKernel, hipMemcpyAsync)
    "framework",  # any other host range of the framework (ExecutorState::Process, Iterator::Map)
    "kernel",  # device work
    "copy",  # device copy
    "memset",  # device fill
    "device_annotation",  # a named range on the device timeline: no work of its own
    "device_sync",  # a synchronisation record on the device timeline: no work of its own
    "overhead",  # the profiler's own work
)
"""What an event is. `kernel`, `copy` and `memset` are device work; a reader maps its categories to these."""


@dataclass(frozen=True)
class Coded:
    """A string column, dictionary-coded: `values[codes[i]]`, NULL where `codes[i]` is -1.

    codes: int32, shape (n,). values: distinct strings.
    """

    codes: npt.NDArray[np.int32]
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: npt.NDArray[Any]) -> Coded:
        """The rows at `index` (integers or a boolean mask)."""
        return Coded(self.codes[index], self.values)

    def isin(self, wanted: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Boolean mask, shape (n,): rows whose string is one of `wanted`."""
        names = set(wanted)
        return self.where([value in names for value in self.values])

    def where(self, flags: Sequence[bool] | npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Spread one flag per distinct value over the rows; NULL rows are False."""
        table = np.append(np.asarray(flags, dtype=np.bool_), False)
        return table[self.codes]

    def to_objects(self) -> npt.NDArray[np.object_]:
        """Object array of strings and None: for tests and small tables only."""
        table: npt.NDArray[np.object_] = np.asarray([*self.values, None], dtype=object)
        return np.take(table, self.codes, mode="wrap")


def code_strings(strings: Iterable[str | None]) -> Coded:
    """Dictionary-code a sequence of strings, None becoming NULL; values in order of first use."""
    table: dict[str, int] = {}
    codes = [-1 if s is None else table.setdefault(s, len(table)) for s in strings]
    return Coded(np.asarray(codes, dtype=np.int32), tuple(table))


@dataclass(frozen=True)
class Ints:
    """A nullable int64 column. values: shape (n,); valid: boolean mask, shape (n,); values under an invalid mask mean nothing."""

    values: IntArray
    valid: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: npt.NDArray[Any]) -> Ints:
        """The rows at `index`."""
        return Ints(self.values[index], self.valid[index])

    @staticmethod
    def empty(n: int) -> Ints:
        """A column of `n` NULLs."""
        return Ints(np.zeros(n, np.int64), np.zeros(n, np.bool_))


@dataclass(frozen=True)
class Health:
    """One problem of the trace itself. level: info|warning|error. effect: what the rules make of it."""

    id: str
    level: str
    message: str
    effect: str


@dataclass(frozen=True)
class MemoryColumns:
    """Allocations and releases, one row each (n rows); `bytes` is negative for a release."""

    t_ns: IntArray
    bytes: IntArray
    device: Coded
    op: Coded  # label of the op that asked, NULL unless the trace says it
    shape: Coded  # "[200000,64]"
    dtype: Coded
    region: Coded  # output | temp | ... (TensorFlow), NULL elsewhere
    allocated: Ints  # total in use after the event, bytes
    reserved: Ints  # total held by the allocator after the event, bytes


@dataclass(frozen=True)
class Raw:
    """What a reader returns: the timeline events of one file as columns, in file order (n rows).

    Times are int64 nanoseconds on the file's own clock (`trace` shifts them to start at 0).
    Shapes and dtypes are canonical JSON text without spaces: '[[256,4],[4,8],[]]', '["float32","float32",null]'; dtypes are
    spelt float32|float64|float16|bfloat16|int64|int32|int16|int8|uint8|bool|complex64|string|resource|... in every framework.
    """

    format: str  # kineto | xplane | ...
    framework: str  # torch | tensorflow | jax
    events: int  # raw records in the file, whatever their kind
    rank: int | None
    name: Coded  # op type or kernel name: aten::mm, MatMul, ampere_sgemm_128x64_tn
    role: Coded  # one of ROLES
    label: Coded  # the op's own name with its scope (TensorFlow node, HLO op), NULL for torch
    device: Coded  # "cuda:0", "TPU:1"; NULL for host events
    lane: Coded  # thread or stream, unique within the file: "12345/67", "gpu 0 stream 7"
    start_ns: IntArray
    dur_ns: IntArray
    correlation: Ints  # joins a device event to the runtime call that launched it
    external: Ints  # joins a runtime call to its op (torch External id)
    in_shapes: Coded
    in_dtypes: Coded
    in_strides: Coded
    in_values: Coded  # scalar arguments (torch Concrete Inputs), JSON list of strings
    out_shapes: Coded
    out_dtypes: Coded
    bytes: Ints
    flops: Ints
    sequence: Ints  # torch Sequence number (forward and its backward share it)
    step_num: Ints  # the step that an annotation marks (ProfilerStep#N, stat step_num); NULL elsewhere
    detail: Coded  # remaining facts of the event as a JSON object with sorted keys, NULL when none
    memory: MemoryColumns | None
    facts: dict[str, Any] = field(default_factory=dict)  # of the whole file: deviceProperties, distributedInfo, versions
    health: tuple[Health, ...] = ()

    def __len__(self) -> int:
        return len(self.start_ns)
