"""Every table and column that rules and users can query: type, unit, meaning, source, said once.

Readers, the documentation page, the checks at rule load and the hand-over to DuckDB and pandas all read these definitions.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TABLES", "Column", "Table", "table"]


@dataclass(frozen=True)
class Column:
    """One column. type: DuckDB type; unit: '' | ns | bytes | flop | ...; source: where it comes from, per format."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    nullable: bool = True
    source: str = ""


@dataclass(frozen=True)
class Table:
    """One table: its rows, in one sentence, and its columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    facts: bool = False  # filled from run.json; absent (not empty) when the trace came without one

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)


_OWNERS = "input | compile | alloc | sync | runtime | op | python | long_launch | launch | queue | unknown"


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


_FACTS: tuple[Table, ...] = (
    Table(
        "params",
        "torch parameters (run.json).",
        (
            Column("param", "BIGINT", "row number", nullable=False),
            Column("name", "VARCHAR", "qualified name"),
            Column("shape", "VARCHAR", "shape as JSON"),
            Column("numel", "BIGINT", "elements"),
            Column("dtype", "VARCHAR", "dtype"),
            Column("device", "VARCHAR", "device"),
            Column("requires_grad", "BOOLEAN", "autograd computes its gradient"),
            Column("grad", "VARCHAR", "none | dense | sparse: the gradient seen after backward"),
            Column("optimizer", "BIGINT", "optimizer that owns it"),
            Column("param_group", "BIGINT", "parameter group in that optimizer"),
            Column("module", "VARCHAR", "class of the module that holds it"),
            Column("sparse", "BOOLEAN", "Embedding(sparse=True)"),
            Column("weight_decay", "DOUBLE", "weight decay of its group"),
        ),
        facts=True,
    ),
    Table(
        "optimizers",
        "Optimizers (run.json).",
        (
            Column("optimizer", "BIGINT", "row number", nullable=False),
            Column("class", "VARCHAR", "class name"),
            Column("module", "VARCHAR", "defining module: torch.optim, keras, tf_keras, ..."),
            Column("foreach", "BOOLEAN", "option as set; NULL: default"),
            Column("fused", "BOOLEAN", "option as set; NULL: default"),
            Column("weight_decay", "DOUBLE", "largest over the groups"),
            Column("momentum", "DOUBLE", "largest over the groups"),
            Column("groups", "BIGINT", "parameter groups"),
            Column("params", "BIGINT", "parameters"),
            Column("steps", "BIGINT", "step() or apply() calls seen"),
            Column("source", "VARCHAR", "file:line of the step() or apply_gradients() call"),
        ),
        facts=True,
    ),
    Table(
        "loaders",
        "Data loaders (run.json).",
        (
            Column("loader", "BIGINT", "row number", nullable=False),
            Column("class", "VARCHAR", "class name"),
            Column("dataset", "VARCHAR", "class of the dataset"),
            Column("batch_size", "BIGINT", "batch size"),
            Column("num_workers", "BIGINT", "worker processes"),
            Column("pin_memory", "BOOLEAN", "page-locked batches"),
            Column("persistent_workers", "BOOLEAN", "workers live across epochs"),
            Column("prefetch_factor", "BIGINT", "batches ahead per worker"),
            Column("drop_last", "BOOLEAN", "partial last batch dropped"),
            Column("length", "BIGINT", "batches an epoch"),
            Column("iterators", "BIGINT", "epochs started"),
            Column("source", "VARCHAR", "file:line of its iteration"),
        ),
        facts=True,
    ),
    Table(
        "variables",
        "TensorFlow variables (run.json).",
        (
            Column("variable", "BIGINT", "row number", nullable=False),
            Column("name", "VARCHAR", "name or path"),
            Column("shape", "VARCHAR", "shape as JSON"),
            Column("numel", "BIGINT", "elements"),
            Column("dtype", "VARCHAR", "dtype"),
            Column("device", "VARCHAR", "device"),
            Column("trainable", "BOOLEAN", "trainable flag"),
            Column("gradient", "VARCHAR", "indexed_slices | dense | NULL: none was applied"),
            Column("optimizer", "BIGINT", "optimizer that updates it"),
            Column("slots", "BIGINT", "optimizer variables of its shape"),
            Column("regularizer", "VARCHAR", "class of its regularizer"),
            Column("regularizer_zero", "BOOLEAN", "all its coefficients are 0"),
            Column("layer", "VARCHAR", "class of the layer that holds it"),
            Column("embedding", "BOOLEAN", "it is the table of an Embedding layer, or was looked up"),
        ),
        facts=True,
    ),
    Table(
        "functions",
        "Compiled functions (run.json): tf.function, torch.compile frames.",
        (
            Column("function", "BIGINT", "row number", nullable=False),
            Column("name", "VARCHAR", "Python name"),
            Column("calls", "BIGINT", "calls seen"),
            Column("tracing_count", "BIGINT", "times it was traced"),
            Column("jit_compile", "BOOLEAN", "XLA asked for"),
            Column("source", "VARCHAR", "file:line of its definition"),
            Column("caller", "VARCHAR", "file:line of its call"),
        ),
        facts=True,
    ),
    Table(
        "devices",
        "Devices (run.json or the trace).",
        (
            Column("device", "VARCHAR", "cuda:0, GPU:0, CPU", nullable=False),
            Column("name", "VARCHAR", "product name"),
            Column("type", "VARCHAR", "cpu | gpu | tpu | xpu | npu | mtia | hpu"),
            Column("sm_count", "BIGINT", "multiprocessors"),
            Column("memory_bytes", "BIGINT", "memory", "bytes"),
            Column("compute_capability", "DOUBLE", "NVIDIA compute capability, 8.0 for an A100"),
            Column("vendor", "VARCHAR", "nvidia | amd | intel | google | huawei | meta"),
        ),
    ),
    Table(
        "step_series",
        "One row per step of the whole run, from step 1, measured by the capture hooks (run.json).",
        (
            Column("step", "BIGINT", "number of the step, from 0", nullable=False),
            Column("wall_ns", "BIGINT", "boundary to boundary", "ns", nullable=False),
            Column("profiled", "BOOLEAN", "the profiler was on (or its export fell into it)", nullable=False),
            Column("tracings", "BIGINT", "tf.function tracings so far"),
            Column("compiles", "BIGINT", "XLA or dynamo compilations so far"),
            Column("compile_ns", "BIGINT", "time spent tracing and compiling in this step", "ns"),
            Column("allocated", "BIGINT", "memory in use at its end", "bytes"),
            Column("batch", "VARCHAR", "shapes of the batch as JSON"),
            Column("loader_ns", "BIGINT", "time the step waited in the loader", "ns"),
        ),
        facts=True,
    ),
    Table(
        "clocks",
        "Where the script reads the clock (run.json, from the source of the script).",
        (
            Column("clock", "BIGINT", "row number", nullable=False),
            Column("source", "VARCHAR", "file:line of the read that starts the measurement"),
            Column("includes_first_step", "BOOLEAN", "no warm-up step is left out of what it measures"),
            Column("synchronised", "BOOLEAN", "a device synchronisation stands before the read that ends it"),
            Column("in_traced_function", "BOOLEAN", "it stands in a function that is traced once (tf.function, jit)"),
            Column("function", "VARCHAR", "function it stands in"),
        ),
        facts=True,
    ),
    Table(
        "flags",
        "Settings of the run, one row each: backend flags, environment switches, versions, thread counts (run.json).",
        (
            Column("flag", "VARCHAR", "dotted name: torch.backends.cudnn.benchmark, env.TF_XLA_FLAGS, versions.torch", nullable=False),
            Column("value", "VARCHAR", "value as JSON text"),
        ),
    ),
)

TABLES: tuple[Table, ...] = (_ops(), _steps(), _gaps(), _memory(), *_FACTS)
"""Every base table; derived views are in tables/*.sql."""


def table(name: str) -> Table:
    """The table called `name`. Raises KeyError."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(name)
