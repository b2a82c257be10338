"""Every table and column that rules and users can query: type, unit, meaning, source, said once.

Readers, the documentation page, the checks at rule load and the hand-over to DuckDB and pandas all read these definitions.
"""

from __future__ import annotations

from tracediag.schemafacts import FACTS
from tracediag.schematypes import Column, Table

__all__ = ["TABLES", "Column", "Table", "table"]

_OWNERS = "input | compile | alloc | sync | runtime | op | python | long_launch | launch | queue | unknown | comm"


def _ops() -> Table:
    c = Column
    return Table(
        "ops",
        "One row per executed operation on host or device, the same columns for every framework and format.",
        (
            c("op_id", "BIGINT", "row number in order of the file", nullable=False),
            c("parent_id", "BIGINT", "innermost host op or range that encloses it on the same lane"),
            c("name", "VARCHAR", "op type or kernel name", nullable=False, source="Kineto name; xplane event name after the last ':'"),
            c("label", "VARCHAR", "the op's own name with its scope", source="TensorFlow node, HLO op; NULL for torch"),
            c("kind", "VARCHAR", "what it does, one of the closed vocabulary of kinds"),
            c("framework", "VARCHAR", "torch | tensorflow | jax", nullable=False),
            c("place", "VARCHAR", "host | device", nullable=False),
            c("device", "VARCHAR", "device of a device op", source="Kineto args.device; xplane plane name"),
            c("lane", "VARCHAR", "thread or stream", nullable=False, source="Kineto pid/tid, stream; xplane line"),
            c("rank", "INTEGER", "rank of the process in a distributed job"),
            c("step", "BIGINT", "step that the op belongs to: a device op belongs to the step that launched it"),
            c("phase", "VARCHAR", "input | forward | backward | optimizer | comm | other"),
            c("start_ns", "BIGINT", "start, from the start of the trace", "ns", nullable=False),
            c("dur_ns", "BIGINT", "duration", "ns", nullable=False),
            c("self_ns", "BIGINT", "duration not covered by children", "ns", nullable=False),
            c("device_ns", "BIGINT", "device work launched by the op and its children", "ns"),
            c("launch_id", "BIGINT", "host call that launched this device op", source="correlation id"),
            c("in_shapes", "VARCHAR", "input shapes as JSON", source="Kineto Input Dims; TensorFlow side-car"),
            c("in_dtypes", "VARCHAR", "input dtypes as JSON", source="Kineto Input type; TensorFlow side-car"),
            c("out_shapes", "VARCHAR", "output shapes as JSON", source="TensorFlow side-car or MemoryAllocation"),
            c("out_dtypes", "VARCHAR", "output dtypes as JSON", source="TensorFlow side-car or MemoryAllocation"),
            c("bytes", "BIGINT", "bytes moved (copies, collectives) or allocated for the output", "bytes"),
            c("flops", "BIGINT", "floating-point operations", "flop", source="Kineto flops; xplane flops stat"),
            c("source", "VARCHAR", "file:line in the user's code", source="Python frames, run.json sources, side-car"),
            c("role", "VARCHAR", "op | function | annotation | python | runtime | framework | kernel | copy | ...", nullable=False),
            c("in_strides", "VARCHAR", "input strides as JSON", source="Kineto Input Strides"),
            c("in_values", "VARCHAR", "scalar arguments as JSON", source="Kineto Concrete Inputs"),
            c("sequence", "BIGINT", "forward and backward op of one autograd node share it", source="Kineto Sequence number"),
            c("detail", "VARCHAR", "remaining facts of the event as JSON"),
        ),
    )


def _steps() -> Table:
    c = Column
    return Table(
        "steps",
        "One row per training step recorded in the trace.",
        (
            c("step", "BIGINT", "number of the step", nullable=False),
            c("rank", "INTEGER", "rank of the process"),
            c("start_ns", "BIGINT", "start", "ns", nullable=False),
            c("end_ns", "BIGINT", "end", "ns", nullable=False),
            c("dur_ns", "BIGINT", "end - start", "ns", nullable=False),
            c("steps", "INTEGER", "training steps inside (more than 1 for a loop inside one call)", nullable=False),
            c("busy_ns", "BIGINT", "device busy within it, union over streams", "ns"),
            c("settled", "BOOLEAN", "shares count it: it is none of a few far longer steps", nullable=False),
            c("found_by", "VARCHAR", "marker | optimizer | function | window", nullable=False),
        ),
    )


def _gaps() -> Table:
    c = Column
    return Table(
        "gaps",
        "Idle time of a device, cut at the launch call that ends it and given to the host activity that covers it; "
        "where no device took part: time of the steps in which no operator runs on the host.",
        (
            c("gap_id", "BIGINT", "row number", nullable=False),
            c("device", "VARCHAR", "device that idles, or host", nullable=False),
            c("rank", "INTEGER", "rank of the process"),
            c("step", "BIGINT", "step that the gap lies in"),
            c("start_ns", "BIGINT", "start", "ns", nullable=False),
            c("dur_ns", "BIGINT", "duration", "ns", nullable=False),
            c("owner", "VARCHAR", _OWNERS, nullable=False),
            c("op_id", "BIGINT", "host op that owns it"),
            c("next_op_id", "BIGINT", "device op that ends the gap"),
            c("phase", "VARCHAR", "phase of the owner"),
        ),
    )


def _memory() -> Table:
    c = Column
    return Table(
        "memory",
        "One row per allocation or release.",
        (
            c("t_ns", "BIGINT", "time", "ns", nullable=False),
            c("rank", "INTEGER", "rank of the process"),
            c("step", "BIGINT", "step that it lies in"),
            c("bytes", "BIGINT", "size, negative for a release", "bytes", nullable=False),
            c("device", "VARCHAR", "device or allocator"),
            c("op", "VARCHAR", "label of the op that asked", source="xplane tf_op"),
            c("shape", "VARCHAR", "shape of the tensor as JSON", source="xplane shape"),
            c("dtype", "VARCHAR", "dtype of the tensor", source="xplane data_type"),
            c("region", "VARCHAR", "output | temp | ...", source="xplane region_type"),
            c("allocated", "BIGINT", "in use after it", "bytes"),
            c("reserved", "BIGINT", "held by the allocator after it", "bytes"),
        ),
    )


TABLES: tuple[Table, ...] = (_ops(), _steps(), _gaps(), _memory(), *FACTS)
"""Every base table; derived views are in tables/*.sql."""


def table(name: str) -> Table:
    """The table called `name`. Raises KeyError."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(name)
