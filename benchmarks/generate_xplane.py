"""A large synthetic xplane.pb as TensorFlow writes it on a GPU: executor threads, Python frames, allocations, launches and streams.

Field numbers are those of tsl/profiler/protobuf/xplane.proto. Lengths of planes and lines are written when their end is known, as varints
of five bytes, so that memory stays small.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STAMP_NS = 1_727_743_122_000_000_000
STEP_PS = 90_000_000_000
THREADS = 4
_STATS = (
    "id", "iter_num", "_ct", "_c", "kernel_name", "num_output_edges", "num_output_control_edges", "is_eager", "shape", "step_num", "_r",
    "allocator_name", "bytes_reserved", "bytes_allocated", "bytes_available", "fragmentation", "peak_bytes_in_use", "requested_bytes",
    "allocation_bytes", "addr", "tf_op", "data_type", "region_type", "correlation_id", "context_id", "memcpy_details", "kernel_details",
    "annotation", "level 0", "group_id", "hlo_op", "hlo_module", "tf_function_call",
)  # fmt: skip
_KEY = {name: number for number, name in enumerate(_STATS, 1)}
_TYPES = ("MatMul", "BiasAdd", "Relu", "Mul", "AddV2", "Sum", "GatherV2", "Softmax", "ReluGrad", "ResourceApplyAdam", "Transpose", "Cast")
_KERNELS = (
    "ampere_sgemm_{a}x{b}_tn",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<{a}, Eigen::DefaultDevice>, {b}>",
    "fusion_{a}_{b}",
)
_NODES, _SOURCES = 900, 400


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [_varint(value) for value in range(1 << 14)]


def _number(value: int) -> bytes:
    return _SMALL[value] if value < len(_SMALL) else _varint(value)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 2) + _number(len(value)) + value


def _stat(name: str, value: int | str, kind: int = 4) -> bytes:
    """kind: 3 unsigned, 4 signed, 7 reference; text is always text."""
    body = _field(1, _KEY[name]) + (_field(5, value.encode()) if isinstance(value, str) else _field(kind, value))
    return _field(4, body)


def _event(meta: int, offset_ps: int, dur_ps: int, stats: bytes = b"") -> bytes:
    return _field(4, _field(1, meta) + _field(2, offset_ps) + _field(3, dur_ps) + stats)


@contextmanager
def _nested(file: IO[bytes], number: int) -> Iterator[None]:
    """A message field whose length is filled in at its end."""
    file.write(_number(number << 3 | 2) + bytes(5))
    start = file.tell()
    yield
    end = file.tell()
    size = end - start
    file.seek(start - 5)
    file.write(bytes([size >> shift & 127 | (128 if shift < 28 else 0) for shift in range(0, 35, 7)]))
    file.seek(end)


def _entry(number: int, key: int, name: str) -> bytes:
    return _field(number, _field(1, key) + _field(2, _field(1, key) + _field(2, name.encode())))


class _Names:
    """Names of the events of a plane by number, the same for every seed but for their details."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.nodes = [f"model/layer_{i % 48}/{_TYPES[i % len(_TYPES)].lower()}_{i}" for i in range(_NODES)]
        fixed = (
            "train",
            "FunctionRun",
            "MemoryAllocation",
            "MemoryDeallocation",
            "ExecutorState::Process",
            "ExecutorPropagateOutputs",
            "cuLaunchKernel",
        )
        self.host = [
            *fixed, *(f"{node}:{_TYPES[i % len(_TYPES)]}" for i, node in enumerate(self.nodes)),
            *(f"$module_{i % 40}.py:{rng.randrange(900)} function_{i}" for i in range(_SOURCES)),
        ]  # fmt: skip
        self.first_node, self.first_source = len(fixed) + 1, len(fixed) + 1 + _NODES
        self.device = [_KERNELS[i % 3].format(a=32 << i % 5, b=i) for i in range(300)] + ["MemcpyH2D"]
        self.texts = [_launch_text(rng, i) for i in range(500)]
        self.first_text = len(_STATS) + 1
        self.first_op = self.first_text + len(self.texts)


def _launch_text(rng: random.Random, i: int) -> str:
    shared, grid = rng.randrange(48) << 10, rng.randrange(1, 4000)
    return f"regs:{rng.randrange(16, 256)} shm:{shared} grid:{grid},1,1 block:{32 << i % 5},1,1 occ_pct:{rng.randrange(101)}"


class _Step:
    """Events of one step, line by line, each made anew from its seed."""

    def __init__(self, seed: int, number: int, names: _Names) -> None:
        self.seed, self.number, self.names = seed, number, names
        self.begin = number * STEP_PS
        self.batch = random.Random(f"{seed}/{number}").randrange(8, 129)

    def _random(self, line: str) -> random.Random:
        return random.Random(f"{self.seed}/{self.number}/{line}")

    def python(self) -> bytes:
        """Frames of Python around the call of the step, and what it allocates."""
        rng, at, out = self._random("python"), self.begin, []
        out.append(_event(1, at, STEP_PS - 2_000_000, _stat("step_num", self.number) + _stat("_r", 1) + _stat("group_id", self.number)))
        out.append(_event(2, at + 1_000_000, STEP_PS - 5_000_000, _stat("tf_function_call", "notTraced-nonXla")))
        for _ in range(500):
            at += rng.randrange(20_000_000, 90_000_000)
            source = self.names.first_source + rng.randrange(_SOURCES)
            out.append(_event(source, at, rng.randrange(1_000_000, 15_000_000)))
            if rng.random() < 0.3:
                out.append(self._memory(rng, at))
        return b"".join(out)

    def _memory(self, rng: random.Random, at: int) -> bytes:
        width = 64 * rng.randrange(1, 40)
        size = (4 * self.batch * width + 255) & ~255
        stats = (
            _stat("allocator_name", "GPU_0_bfc"), _stat("bytes_reserved", 0), _stat("bytes_allocated", rng.randrange(1 << 34)),
            _stat("bytes_available", rng.randrange(1 << 34)), _stat("fragmentation", 0), _stat("peak_bytes_in_use", 1 << 34),
            _stat("requested_bytes", size - 4), _stat("allocation_bytes", size), _stat("addr", 139 << 40 | rng.randrange(1 << 30)),
            _stat("tf_op", self.names.nodes[rng.randrange(_NODES)]), _stat("data_type", 1), _stat("region_type", "output"),
            _stat("shape", f"[{self.batch},{width}]"),
        )  # fmt: skip
        return _event(3 + rng.randrange(2), at, 0, b"".join(stats))

    def executor(self, thread: int) -> bytes:
        """Ops of one executor thread, each with its launch and what the executor does after it."""
        rng, at, out = self._random(f"executor{thread}"), self.begin + 2_000_000, []
        context = rng.getrandbits(63)
        out.append(
            _event(5, at, STEP_PS - 9_000_000, _stat("id", context) + _stat("iter_num", 0) + _stat("_ct", 1) + _stat("_c", context, 3))
        )
        for i in range(rng.randrange(500, 700)):
            at += rng.randrange(60_000_000, 110_000_000)
            node = rng.randrange(_NODES)
            length = rng.randrange(2_000_000, 40_000_000)
            stats = _stat("is_eager", 0)
            if node % 3:
                stats += _stat("shape", f"(float[{self.batch},{64 * (node % 40)}];float[{64 * (node % 40)},{node}])")
            out.append(_event(self.names.first_node + node, at, length, stats))
            if i % 2 == 0:
                correlation = self._correlation(thread, i)
                out.append(_event(7, at + length // 2, length // 4, _stat("correlation_id", correlation, 3) + _stat("context_id", "$$1")))
            stats = _stat("id", context) + _stat("kernel_name", self.names.nodes[node]) + _stat("num_output_edges", node % 4)
            out.append(_event(6, at + length + 1000, rng.randrange(50_000, 900_000), stats + _stat("num_output_control_edges", 0)))
        return b"".join(out)

    def _correlation(self, thread: int, i: int) -> int:
        return (self.number * THREADS + thread) * 700 + i + 1

    def stream(self, thread: int) -> bytes:
        """Kernels of one stream, with copies now and then."""
        rng, at, out = self._random(f"stream{thread}"), self.begin + 30_000_000, []
        for i in range(0, 500, 2):
            at += rng.randrange(130_000_000, 200_000_000)
            op, names = rng.randrange(_NODES), self.names
            stats = (
                _stat("correlation_id", self._correlation(thread, i), 3)
                + _stat("annotation", names.first_op + op, 7)
                + _stat("context_id", "$$1")
            )
            if rng.random() < 0.05:
                meta, stats = (
                    len(names.device),
                    stats + _stat("memcpy_details", f"kind_src:pinned size:{rng.randrange(1 << 24)} dest:0 async:1"),
                )
            else:
                meta = 1 + op * 7 % (len(names.device) - 1)  # an op launches the same kernel each time, as its shapes ask for
                stats += _stat("kernel_details", names.first_text + (op * 31 + self.batch) % len(names.texts), 7)
                stats += _stat("shape", f"(float[{self.batch},{64 * (op % 40)}])")
            stats += _stat("level 0", names.first_op + op, 7) + _stat("group_id", self.number) + _stat("is_eager", 0)
            out.append(_event(meta, at, rng.randrange(2_000_000, 90_000_000), stats))
        return b"".join(out)


def _line(file: IO[bytes], number: int, name: str, events: Iterator[bytes]) -> None:
    with _nested(file, 3):
        file.write(_field(1, number) + _field(2, name.encode()) + _field(3, STAMP_NS))
        for part in events:
            file.write(part)


def _end(file: IO[bytes], names: list[str], texts: list[str]) -> None:
    """Metadata of a plane, behind its lines."""
    for number, name in enumerate(names, 1):
        file.write(_entry(4, number, name))
    for number, name in enumerate([*_STATS, *texts], 1):
        file.write(_entry(5, number, name))


def write_xplane(file: IO[bytes], size: int, seed: int) -> None:
    """An XSpace of about `size` bytes: the host with its threads, then one GPU with its streams. file: one that can be sought in."""
    names = _Names(seed)

    def made(step: _Step) -> int:
        return len(step.python()) + sum(len(step.executor(i)) + len(step.stream(i)) for i in range(THREADS))

    count = max(3, round(size / (sum(made(_Step(seed, number, names)) for number in range(3)) / 3)))
    steps = [_Step(seed, number, names) for number in range(count)]
    with _nested(file, 1):
        file.write(_field(2, b"/host:CPU"))
        _line(file, 4011, "python3", (step.python() for step in steps))
        for i in range(THREADS):
            _line(file, 5000 + i, f"tf_Compute/{5000 + i}", (step.executor(i) for step in steps))
        _end(file, names.host, [])
    with _nested(file, 1):
        file.write(_field(2, b"/device:GPU:0"))
        for i in range(THREADS):
            _line(file, 13 + i, f"Stream #{13 + i}(Compute)", (step.stream(i) for step in steps))
        _end(file, names.device, [*names.texts, *(f"{node}:{_TYPES[i % len(_TYPES)]}" for i, node in enumerate(names.nodes))])
