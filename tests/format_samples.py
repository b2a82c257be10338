"""Small files of TensorFlow's lesser formats for reader tests: timelines, RunMetadata, local.trace, trace.json; and of torch_npu."""

from __future__ import annotations

import copy
import json
from typing import Any

from reader_samples import chunk, number, reversed_keys, shuffled

CPU, GPU = "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = "/device:GPU:0/stream:{}"

# (device, node, op type, start us, duration us, thread): two runs on a GPU
NODES: list[tuple[str, str, str, int, int, int]] = [
    (CPU, "_SOURCE", "NoOp", 1000, 3, 0),
    (GPU, "_SOURCE", "NoOp", 1001, 3, 0),
    (CPU, "_arg_x_0", "_Arg", 1005, 8, 0),
    (GPU, "layer/MatMul", "MatMul", 1010, 50, 0),
    (GPU, "train/update", "_MklNativeFusedApplyAdam", 1070, 5, 1),
    (STREAM.format(12), "layer/MatMul", "MatMul", 1030, 20, 0),
    (STREAM.format("all"), "layer/MatMul", "MatMul", 1030, 20, 0),
    (STREAM.format(13), "edge_8__arg_x_0", "MEMCPYHtoD", 1014, 4, 0),
    ("/device:GPU:0/memcpy", "edge_8__arg_x_0", "MEMCPYHtoD", 1014, 4, 0),
    (GPU, "_SOURCE", "NoOp", 5000, 3, 0),
    (CPU, "_SOURCE", "NoOp", 5001, 3, 0),
    (GPU, "layer/MatMul", "MatMul", 5010, 10, 0),
    (STREAM.format(12), "layer/MatMul", "MatMul", 5012, 19, 0),
    (STREAM.format("all"), "layer/MatMul", "MatMul", 5012, 19, 0),
]


def dumped(document: Any, **options: Any) -> bytes:
    """JSON text."""
    return json.dumps(document, **options).encode()


def timeline(shift_us: int = 0, seed: int | None = None) -> dict[str, Any]:
    """A TF 1 timeline with memory counters."""
    devices = list(dict.fromkeys(node[0] for node in NODES))
    events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "Allocators"}}]
    for i, device in enumerate(devices):
        for j, part in enumerate(("Compute", "Tensors")):
            events.append({"name": "process_name", "ph": "M", "pid": 2 * i + j + 1, "args": {"name": f"{device} {part}"}})
    for device, node, op, start, dur, thread in NODES:
        place = {"pid": 2 * devices.index(device) + 1, "tid": thread, "ts": start + shift_us}
        events.append(place | {"ph": "X", "cat": "Op", "name": op, "dur": dur, "args": {"name": node, "op": op, "input0": "x"}})
    events.append({"ph": "s", "cat": "DataFlow", "name": "layer/MatMul", "id": 1, "pid": 1, "tid": 0, "ts": 1013 + shift_us})
    text = "dtype: DT_FLOAT\nshape {\n  dim {\n    size: 3\n  }\n  dim {\n    size: 4\n  }\n}\n"
    snapshot = {"snapshot": {"tensor_description": text}}
    events.append(
        {"ph": "O", "cat": "Tensor", "name": "layer/MatMul", "id": 0, "pid": 4, "tid": 0, "ts": 1060 + shift_us, "args": snapshot}
    )
    for at, total in ((1010, 48), (1090, 0)):
        events.append(
            {"ph": "C", "cat": "Memory", "name": "GPU_0_bfc", "pid": 0, "tid": 0, "ts": at + shift_us, "args": {"GPU_0_bfc": total}}
        )
    return {"traceEvents": events if seed is None else shuffled(events, seed)}


def run_metadata(shift_us: int = 0, seed: int | None = None) -> bytes:
    """The same two runs as RunMetadata."""
    devices = list(dict.fromkeys(node[0] for node in NODES))
    nodes = NODES if seed is None else shuffled(NODES, seed)
    stats = [chunk(1, chunk(1, device) + b"".join(_stats(node, shift_us) for node in nodes if node[0] == device)) for device in devices]
    return chunk(1, b"".join(stats)) + chunk(3, b"\x0a\x00")


def _stats(node: tuple[str, str, str, int, int, int], shift_us: int) -> bytes:
    device, name, op, start, dur, thread = node
    gpu = "stream" in device or "memcpy" in device
    label = f"{name}:{op} regs:17 shm:0 grid:1,1,1 block:64,1,1" if gpu and op == "MatMul" else f"{name} = {op}(x, y)"
    body = chunk(1, f"{name}:{op}" if gpu else name) + number(2, start + shift_us) + number(5, dur) + chunk(8, label) + number(10, thread)
    if not gpu and op == "MatMul":
        shape = chunk(2, chunk(2, number(1, 3)) + chunk(2, number(1, 4)))
        body += chunk(6, chunk(1, "GPU_0_bfc") + number(2, 48)) + chunk(7, number(1, 0) + chunk(3, number(1, 1) + shape))
    return chunk(2, body)


def run_metadata_text() -> bytes:
    """The same in text format."""
    parts = ["# comment\nstep_stats {"]
    for device in dict.fromkeys(node[0] for node in NODES):
        parts.append(f'  dev_stats <\n    device: "{device}"')
        parts += [_stats_text(*node) for node in NODES if node[0] == device]
        parts.append("  >")
    return "\n".join([*parts, "}", 'partition_graphs { node { name: "a\\"b" value: [1, 2.5e3, -inf] } }']).encode()


def _stats_text(device: str, name: str, op: str, start: int, dur: int, thread: int) -> str:
    gpu = "stream" in device or "memcpy" in device
    label = f"{name}:{op} regs:17 shm:0 grid:1,1,1 block:64,1,1" if gpu and op == "MatMul" else f"{name} = {op}(x, y)"
    extra = ""
    if not gpu and op == "MatMul":
        extra = (
            'memory { allocator_name: "GPU_0_bfc" total_bytes: 48 } output { tensor_description { dtype: DT_FLOAT '
            "shape { dim { size: 3 } dim { size: 4 } } } }"
        )
    node = f"{name}:{op}" if gpu else name
    times = f"all_start_micros: {start} all_end_rel_micros: {dur}"
    return f"    node_stats {{ node_name: '{node}' {times} timeline_label: \"{label}\" thread_id: {thread} {extra} }}"


# (device, thread, name, label, start ps, duration ps)
LOCAL: list[tuple[int, int, str, str, int, int]] = [
    (0, 1, "_SOURCE", "_SOURCE = NoOp()", 2_000_000, 22_000),
    (0, 1, "dense/MatMul", "dense/MatMul = MatMul(x, w)", 2_100_000, 150_000),
    (0, 1, "dense/Const", "dense/Const = Const()", 2_300_000, 1_000),
    (1, 7, "dense/MatMul:MatMul", "id=-5", 2_110_500, 120_000),
    (1, 7, "_MklFusedConv2D", "id=0,device=/job:localhost/replica:0/task:0/device:CPU:0,async=false", 2_400_000, 99_999),
    (1, 8, "Shuffle", "", 2_000_000, 5_000),
    (1, 8, "Iterator::Model", "", 2_000_000, 9_000),
    (1, 9, "__inference_train_12", "", 1_900_000, 800_000),
    (1, 9, "EagerKernelExecute", "", 1_890_000, 820_000),
    (2, 0, "dense/MatMul", "", 2_200_000, 60_000),
    (3, 0, "dense/MatMul", "", 2_200_000, 60_000),
]
THREADS = {0: {1: "0"}, 1: {7: "tf_Compute", 8: "tf_data_iterator_get_next", 9: "python3"}, 2: {0: "0"}, 3: {0: "0"}}
PLACES = {0: CPU, 1: "/host:CPU", 2: STREAM.format(12), 3: STREAM.format("all")}


def local_trace(shift_ps: int = 0, seed: int | None = None) -> bytes:
    """A local.trace file."""
    data = b""
    for key, place in PLACES.items():
        threads = b"".join(chunk(3, number(1, tid) + chunk(2, chunk(1, name) + number(2, tid))) for tid, name in THREADS[key].items())
        data += chunk(1, number(1, key) + chunk(2, chunk(1, place) + number(2, key) + threads))
    for device, thread, name, label, start, dur in LOCAL if seed is None else shuffled(LOCAL, seed):
        body = (number(1, device) if device else b"") + number(2, thread) + chunk(3, name) + number(9, start + shift_ps) + number(10, dur)
        data += chunk(4, body + chunk(11, chunk(1, "label") + chunk(2, label)))
    return data


TRACE_JSON: dict[str, Any] = {
    "displayTimeUnit": "ns",
    "metadata": {"highres-ticks": True},
    "traceEvents": [
        {"ph": "M", "pid": 49, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 49, "tid": 1, "name": "thread_name", "args": {"name": "python3"}},
        {"ph": "M", "pid": 49, "tid": 2, "name": "thread_name", "args": {"name": "tf_Compute"}},
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 1, "tid": 13, "name": "thread_name", "args": {"name": "Stream #13(Kernel)"}},
        {"ph": "M", "pid": 1, "tid": 99, "name": "thread_name", "args": {"name": "TensorFlow Ops"}},
        {"ph": "X", "pid": 49, "tid": 1, "ts": 100.457, "dur": 900.222, "name": "train", "args": {"step_num": "4", "_r": "1"}},
        {"ph": "X", "pid": 49, "tid": 1, "ts": 110.5, "dur": 600.001, "name": "step",
         "args": {"tf_function_call": "traced-nonXla", "tracing_count": "2"}},
        {"ph": "X", "pid": 49, "tid": 2, "ts": 120, "dur": 28, "name": "ExecutorState::Process", "args": {"id": "-1"}},
        {"ph": "X", "pid": 49, "tid": 2, "ts": 121, "dur": 7, "name": "dense/MatMul:MatMul", "args": {"shape": "(float[2,3];half[3,4];)"}},
        {"ph": "X", "pid": 49, "tid": 2, "ts": 130, "dur": 3, "name": "cuLaunchKernel", "args": {"correlation_id": "77"}},
        {"ph": "X", "pid": 49, "tid": 2, "ts": 131, "dur": 0, "name": "end: fusion"},
        {"ph": "X", "pid": 1, "tid": 13, "ts": 140.001, "dur": 2.5, "name": "volta_sgemm",
         "args": {"correlation_id": "77", "tf_op": "dense/MatMul:MatMul", "kernel_details": "regs:38 shm:0 grid:160,1,1 block:64,1,1"}},
        {"ph": "X", "pid": 1, "tid": 13, "ts": 150, "dur": 2, "name": "MemcpyH2D",
         "args": {"correlation_id": "78", "memcpy_details": "kind_src:pageable size:112 dest:0 async:0"}},
        {"ph": "X", "pid": 1, "tid": 99, "ts": 140.001, "dur": 2.5, "name": "dense/MatMul"},
        {},
    ],
}  # fmt: skip


def trace_json(shift_us: int = 0, seed: int | None = None) -> dict[str, Any]:
    """A trace.json of the trace viewer."""
    document = copy.deepcopy(TRACE_JSON)
    for event in document["traceEvents"]:
        if "ts" in event:
            event["ts"] = round(event["ts"] + shift_us, 3)
    if seed is not None:
        document["traceEvents"] = shuffled(document["traceEvents"], seed)
    return document


_ASCEND_HOST = {"pid": 50, "cat": "cpu_op", "ph": "X"}
ASCEND: list[dict[str, Any]] = [
    {"ph": "M", "name": "process_name", "pid": 800, "tid": 0, "args": {"name": "Ascend Hardware"}},
    {"ph": "M", "name": "process_name", "pid": 5002, "tid": 0, "args": {"name": "CANN"}},
    {"ph": "M", "name": "process_name", "pid": 501100, "tid": 0, "args": {"name": "Overlap Analysis"}},
    _ASCEND_HOST | {"name": "ProfilerStep#3", "tid": 50, "ts": "1704161511420000.001", "dur": 900.5, "args": {"Sequence number": -1}},
    _ASCEND_HOST | {"name": "aten::mm", "tid": 50, "ts": "1704161511420010.125", "dur": 20.25, "args": {"Sequence number": 7}},
    {"ph": "X", "cat": "enqueue", "name": "Enqueue", "pid": 50, "tid": 50, "ts": "1704161511420012", "dur": 1},
    {"ph": "X", "name": "AscendCL@aclrtMemcpy", "pid": 5002, "tid": 51, "ts": "1704161511420013", "dur": 5.4005,
     "args": {"Thread Id": 51, "level": "acl", "connection_id": 4}},
    {"ph": "X", "name": "aclnnMm_MatMulCommon_MatMulV2", "pid": 800, "tid": 3, "ts": "1704161511420020", "dur": 2.5,
     "args": {"Task Type": "AI_CORE", "Stream Id": 3, "connection_id": 8, "Model Id": 4294967295}},
    {"ph": "X", "name": "aclnnMm_CastAiCore_Cast", "pid": 800, "tid": 3, "ts": "1704161511420023", "dur": 1,
     "args": {"Task Type": "AI_CORE", "Stream Id": 3, "connection_id": 9}},
    {"ph": "X", "name": "MEMCPY_ASYNC", "pid": 800, "tid": 4, "ts": "1704161511420025", "dur": 1,
     "args": {"Stream Id": 4, "connection_id": 4}},
    {"ph": "X", "name": "EVENT_WAIT", "pid": 800, "tid": 4, "ts": "1704161511420027", "dur": 1, "args": {"Stream Id": 4}},
    {"ph": "X", "name": "Computing", "pid": 501100, "tid": 0, "ts": "1704161511420020", "dur": 2.5},
    {"ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": 17, "pid": 50, "tid": 50, "ts": "1704161511420010.125"},
    {"ph": "f", "cat": "async_npu", "name": "torch_to_npu", "id": 17, "pid": 800, "tid": 3, "ts": "1704161511420020"},
    {"ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": "18", "pid": 50, "tid": 50, "ts": "1704161511420010.125"},
    {"ph": "f", "cat": "async_npu", "name": "torch_to_npu", "id": "18", "pid": 800, "tid": 3, "ts": "1704161511420023"},
]  # fmt: skip


def ascend(shift_us: int = 0, seed: int | None = None) -> list[dict[str, Any]]:
    """A trace_view.json of torch_npu."""
    events = copy.deepcopy(ASCEND)
    for event in events:
        if "ts" in event:
            whole, dot, part = event["ts"].partition(".")
            event["ts"] = f"{int(whole) + shift_us}{dot}{part}"
    return events if seed is None else shuffled(events, seed)


def json_variants(document: Any, mixed: Any) -> dict[str, bytes]:
    """The same file in other dress. mixed: the document with its events in another order."""
    return {
        "event order": dumped(mixed),
        "key order": dumped(reversed_keys(document)),
        "compact": dumped(document, separators=(",", ":")),
        "indented": dumped(document, indent=1),
        "byte order mark": b"\xef\xbb\xbf" + dumped(document),
    }
