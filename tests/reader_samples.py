"""Small traces for reader tests, made from plain data: Kineto documents and an encoder for xplanes."""

from __future__ import annotations

import copy
import json
import random
import re
import struct
from typing import Any

KINETO: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [
        {"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 85, "computeMajor": 8, "computeMinor": 0, "numSms": 108, "warpSize": 32},
    ],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
    "record_shapes": 1,
    "with_stack": 0,
    "cuda_runtime_version": 12040,
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "ts": "0", "pid": 7, "tid": 8, "args": {"name": "thread 8 (python)"}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 7, "tid": 8, "ts": "1700000000000000.001", "dur": "90.5",
         "args": {"External id": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": "1700000000000001.125", "dur": "20.25",
         "args": {"External id": 2, "Sequence number": 0, "Fwd thread id": 0, "Concrete Inputs": ["", ""],
                  "Input type": ["float", "c10::Half"], "Input Strides": [[4, 1], [8, 1]], "Input Dims": [[256, 4], [4, 8]], "Ev Idx": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "MmBackward0", "pid": 7, "tid": "9", "ts": "1700000000000030", "dur": "0",
         "args": {"External id": 3, "Sequence number": 0, "Fwd thread id": 1, "Input type": ["Scalar", "long int"],
                  "Input Dims": [[], [7]]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": "1700000000000002", "dur": "3",
         "args": {"External id": 2, "cbid": 211, "correlation": 41}},
        {"ph": "s", "id": 41, "pid": 7, "tid": 8, "ts": "1700000000000002", "cat": "ac2g", "name": "ac2g"},
        {"ph": "X", "cat": "kernel", "name": "ampere_sgemm", "pid": 0, "tid": 7, "ts": "1700000000000010.5", "dur": "6.001",
         "args": {"External id": 2, "device": 0, "stream": 7, "correlation": 41, "grid": [4, 1, 1], "block": [128, 1, 1],
                  "est. achieved occupancy %": 50, "blocks per SM": 0.5}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": "1700000000000020",
         "dur": "2", "args": {"External id": 2, "device": 0, "stream": 7, "correlation": 42, "bytes": 4096}},
        {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": "1700000000000023", "dur": "1",
         "args": {"External id": 2, "device": 0, "stream": 7, "correlation": 43, "bytes": 8}},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16", "pid": 0, "tid": 20, "ts": "1700000000000030", "dur": "5",
         "args": {"device": 0, "stream": 20, "correlation": 44, "Collective name": "allreduce", "In msg nelems": 100, "Out msg nelems": 100,
                  "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#5", "pid": 0, "tid": 7, "ts": "1700000000000010", "dur": "30",
         "args": {"External id": 1}},
        {"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": 7, "ts": "1700000000000040", "dur": "4",
         "args": {"cuda_sync_kind": "Context Sync", "stream": 7, "correlation": 45, "device": 0}},
        {"ph": "X", "cat": "python_function", "name": "train.py(12): <module>", "pid": 7, "tid": 8, "ts": "1700000000000000", "dur": "95",
         "args": {"Python parent id": None, "Python id": 1}},
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": "1700000000000050", "dur": "1.5"},
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 8, "ts": "1700000000000003.5",
         "args": {"Total Reserved": 2048, "Total Allocated": 1024, "Bytes": 512, "Device Id": 1, "Device Type": 1, "Addr": 1}},
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 8, "ts": "1700000000000004",
         "args": {"Total Reserved": 0, "Total Allocated": 0, "Bytes": -64, "Device Id": -1, "Device Type": 0, "Addr": 1}},
        {"ph": "X", "cat": "Trace", "ts": "1700000000000000", "dur": "100", "pid": "Spans", "tid": "PyTorch Profiler",
         "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
    ],
    "traceName": "x.json",
}  # fmt: skip


_QUOTED = re.compile(r'"(ts|dur)"(\s*:\s*)"(-?[\d.]+)"')


def kineto(**changes: Any) -> dict[str, Any]:
    """A fresh copy of the document. Times stand in it as decimal text; `kineto_bytes` takes their quotes away."""
    return copy.deepcopy(KINETO) | changes


def kineto_bytes(document: Any, **options: Any) -> bytes:
    """JSON text of a document."""
    return _QUOTED.sub(r'"\1"\2\3', json.dumps(document, **options)).encode()


def shuffled(items: list[Any], seed: int = 1) -> list[Any]:
    """A shuffled copy."""
    items = list(items)
    random.Random(seed).shuffle(items)
    return items


def reversed_keys(value: Any) -> Any:
    """Every object with its keys the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


# xplane: planes are plain data, encoded field by field

XPLANE: list[dict[str, Any]] = [
    {
        "name": "/host:CPU",
        "lines": [
            {"id": 1, "name": "python", "timestamp_ns": 1000, "events": [
                ("train", 5_000, 900_000_499, {"step_num": 4, "_r": 1}),
                ("step", 10_000, 500_000, {"tf_function_call": ("ref", "traced-nonXla"), "tracing_count": 2}),
                ("EagerLocalExecute: MatMul", 600_000, 40_000, {}),
                ("EagerExecute", 590_000, 60_000, {"eager_op": ("ref", "MatMul"), "is_func": 0}),
                ("cuLaunchKernel", 20_000, 5_000, {"correlation_id": 77}),
                ("MemcpyH2D", 30_000, 5_000, {"correlation_id": 78, "memcpy_details": "kind_src:pageable size:112 dest:4 async:0"}),
                ("$train.py:12 main", 1_000, 990_000_000, {}),
                ("fusion.3", 700_000, 2_000, {"hlo_op": ("ref", "fusion.3"), "hlo_module": ("ref", "jit_f")}),
                ("end: fusion.3", 702_000, 1, {}),
            ]},
            {"id": 2, "name": "tf_Compute", "timestamp_ns": 2000, "events": [
                ("model/dense/MatMul:MatMul", 1_999, 3_002, {"shape": "(float[2,3];half[3,4];)", "is_eager": 0}),
                ("model/dense/BiasAdd:_MklNativeFusedMatMul", 6_000, 1_000, {}),
                ("ExecutorState::Process", 1_000, 9_000, {"id": -5, "iter_num": 0}),
                ("ThreadpoolListener::Record", 1_500, 0, {"_pt": 15, "_p": 1}),
                ("Iterator::Root::Prefetch", 8_000, 100, {"id": 1 << 63}),
                ("MemoryAllocation", 2_000, 0, {"allocator_name": "GPU_4_bfc", "allocation_bytes": 256, "bytes_allocated": 1024,
                                               "tf_op": "model/dense/MatMul:MatMul", "shape": "[2,4]", "data_type": 1,
                                               "region_type": "output", "fragmentation": 0.5}),
                ("MemoryDeallocation", 9_000, 0, {"allocator_name": "cpu", "allocation_bytes": 256, "bytes_allocated": 768}),
            ]},
        ],
    },
    {
        "name": "/device:GPU:1",
        "stats": {"core_count": 80, "memory_size": 16, "compute_cap_major": 7, "compute_cap_minor": 0},
        "lines": [
            {"id": 13, "name": "Stream #13(Kernel,Memcpy)", "timestamp_ns": 3000, "events": [
                ("volta_sgemm", 1_000, 2_000, {"correlation_id": 77, "tf_op": ("ref", "model/dense/MatMul:MatMul"),
                                              "kernel_details": ("ref", "regs:38 shm:0 grid:160,1,1 block:1024,1,1")}),
                ("MemcpyH2D", 4_000, 2_000, {"correlation_id": 78, "memcpy_details": "size:112 dest:1 async:1"}),
                ("Memset", 7_000, 1_000, {"correlation_id": 79}),
            ]},
            {"id": 99, "name": "TensorFlow Ops", "timestamp_ns": 3000, "events": [("model/dense/MatMul:MatMul", 1_000, 2_000, {})]},
        ],
    },
    {"name": "Task Environment", "stats": {"profile_start_time": 1_600_000_000_000_000_000}, "lines": []},
]  # fmt: skip


def varint(value: int) -> bytes:
    """An unsigned varint; negative numbers in two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def chunk(field: int, value: bytes | str) -> bytes:
    """A length-delimited field."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


class _Names(dict):
    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]


def xspace(planes: list[dict[str, Any]], *, backwards: bool = False, seed: int | None = None) -> bytes:
    """Bytes of an XSpace. backwards: fields of events and stats in reverse order; seed: shuffle events and lines."""
    return b"".join(chunk(1, _plane(plane, backwards, seed)) for plane in planes) + chunk(4, "host")


def _plane(plane: dict[str, Any], backwards: bool, seed: int | None) -> bytes:
    names, stats = _Names(), _Names()
    lines = plane["lines"] if seed is None else shuffled(plane["lines"], seed)
    encoded = [_line(line, names, stats, backwards, seed) for line in lines]
    own = [chunk(6, _stat(stats, name, value, backwards)) for name, value in plane.get("stats", {}).items()]
    metas = [chunk(4, number(1, key) + chunk(2, number(1, key) + chunk(2, name))) for name, key in names.items()]
    stat_metas = [chunk(5, number(1, key) + chunk(2, number(1, key) + chunk(2, name))) for name, key in stats.items()]
    return number(1, 1) + chunk(2, plane["name"]) + b"".join(encoded + metas + stat_metas + own)


def _line(line: dict[str, Any], names: _Names, stats: _Names, backwards: bool, seed: int | None) -> bytes:
    events = line["events"] if seed is None else shuffled(line["events"], seed)
    body = b"".join(chunk(4, _event(event, names, stats, backwards)) for event in events)
    return chunk(3, number(1, line["id"]) + chunk(2, line["name"]) + number(3, line["timestamp_ns"]) + body)


def _event(event: tuple[str, int, int, dict[str, Any]], names: _Names, stats: _Names, backwards: bool) -> bytes:
    name, offset, dur, values = event
    fields = [number(1, names[name]), number(2, offset), *([number(3, dur)] if dur else [])]
    fields += [chunk(4, _stat(stats, key, value, backwards)) for key, value in values.items()]
    return b"".join(reversed(fields) if backwards else fields)


def _stat(stats: _Names, name: str, value: Any, backwards: bool) -> bytes:
    key = number(1, stats[name])
    if isinstance(value, tuple):
        body = number(7, stats[value[1]])
    elif isinstance(value, float):
        body = varint(2 << 3 | 1) + struct.pack("<d", value)
    elif isinstance(value, str):
        body = chunk(5, value)
    else:
        body = number(4 if value < 0 else 3, value)
    return body + key if backwards else key + body
