"""A second, slow and obvious reader for each format, written without a look at the first: one dictionary per event.

Rows are tuples in the order of COLUMNS, sorted, so that two readings can be compared whatever the order of the file.
"""

from __future__ import annotations

import json
import re
import struct
from fractions import Fraction
from typing import Any

COLUMNS = (
    "role", "name", "label", "device", "lane", "start_ns", "dur_ns", "correlation", "external", "sequence", "bytes", "step_num",
    "in_shapes", "in_dtypes", "in_strides", "in_values",
)  # fmt: skip
CODED = ("role", "name", "label", "device", "lane", "in_shapes", "in_dtypes", "in_strides", "in_values")


def rows_of(raw, columns=COLUMNS) -> list[tuple]:
    """The rows of a Raw, sorted."""
    lists = []
    for column in columns:
        values = getattr(raw, column)
        if column in CODED:
            lists.append(values.to_objects().tolist())
        elif column in ("start_ns", "dur_ns"):
            lists.append(values.tolist())
        else:
            lists.append([v if ok else None for v, ok in zip(values.values.tolist(), values.valid.tolist(), strict=True)])
    return sorted(zip(*lists, strict=True), key=repr)


def _tuples(rows: list[dict[str, Any]], columns=COLUMNS) -> list[tuple]:
    return sorted((tuple(row.get(column) for column in columns) for row in rows), key=repr)


# Kineto

_ROLES = {
    "cpu_op": "op", "Operator": "op", "user_annotation": "annotation", "python_function": "python", "cuda_runtime": "runtime",
    "cuda_driver": "runtime", "Runtime": "runtime", "kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "copy", "Memcpy": "copy",
    "gpu_memset": "memset", "Memset": "memset", "gpu_user_annotation": "device_annotation", "cuda_sync": "device_sync",
    "overhead": "overhead",
}  # fmt: skip
_DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "long int": "int64", "long": "int64",
    "__int64": "int64",
    "int": "int32", "bool": "bool", "unsigned char": "uint8", "signed char": "int8", "BFloat16": "bfloat16", "Float": "float32",
}  # fmt: skip
_DEVICE_ROLES = ("kernel", "copy", "memset", "device_annotation", "device_sync")
_SIZES = {"BFloat16": 2, "Float": 4, "Long": 8, "Int": 4}


def _ns(value: Any) -> int:
    return round(Fraction(str(value)) * 1000)


def kineto_rows(text: bytes, columns=COLUMNS) -> tuple[int, list[tuple]]:
    """(raw records, sorted rows) of a whole, well-formed Kineto file."""
    document = json.loads(text.decode("utf-8-sig"), parse_float=str)
    events = document if isinstance(document, list) else document["traceEvents"]
    base = 0 if isinstance(document, list) else document.get("baseTimeNanoseconds", 0)
    rows = [row for event in events if (row := _kineto_row(event, base))]
    return len(events), _tuples(rows, columns)


def _kineto_row(event: dict[str, Any], base: int) -> dict[str, Any] | None:
    cat, args = event.get("cat", ""), event.get("args") or {}
    if event.get("ph") != "X" or cat in ("Trace", "trace"):
        return None
    start, dur = _ns(event["ts"]), _ns(event.get("dur", 0))
    if dur < 0:
        return None
    name = event["name"]
    role = _kineto_role(cat, name)
    row = {"role": role, "name": name, "start_ns": start + (base if start < 10**18 else 0), "dur_ns": dur}
    step = re.fullmatch(r"ProfilerStep#(\d+)", name)
    row["step_num"] = int(step.group(1)) if step and role == "annotation" else None
    row["lane"] = f"{event.get('pid', '')}/{event.get('tid', '')}"
    row["external"] = None if role in ("python", "overhead") else _positive(args.get("External id", args.get("external id")))
    if role == "runtime":
        row["correlation"] = _positive(args.get("correlation"))
        row["bytes"] = int(args["bytes"]) if "bytes" in args else None  # roctracer quotes it
    elif role in _DEVICE_ROLES:
        row |= _on_device(event, args)
    elif role in ("op", "annotation", "framework", "function"):
        row |= _host_args(args)
    return row


def _kineto_role(cat: str, name: str) -> str:
    role = _ROLES.get(cat, "framework")
    if role == "op" and name.startswith(("ProfilerStep#", "nccl:", "Optimizer.", "enumerate(DataLoader)")):
        return "annotation"
    if role == "op" and name.startswith("Torch-Compiled Region"):
        return "function"
    if role == "op" and name.startswith("TorchDynamo "):
        return "framework"
    return "op" if role == "framework" and name.startswith("aten::") else role


def _on_device(event: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    device, stream = args.get("device", event["pid"]), args.get("stream", event["tid"])
    size = args.get("bytes")
    if size is None and "Collective name" in args:
        size = args["In msg nelems"] * _SIZES[args["dtype"]]
    return {
        "device": f"cuda:{device}",
        "lane": f"gpu {device} stream {str(stream).removeprefix('stream ').strip()}",
        "correlation": _positive(args.get("correlation")),
        "bytes": size,
    }


def _host_args(args: dict[str, Any]) -> dict[str, Any]:
    sequence = args.get("Sequence number")
    row = {
        "sequence": sequence if sequence is not None and sequence >= 0 else None,
        "in_shapes": _compact(args.get("Input Dims", args.get("Input dims"))),
        "in_strides": _compact(args.get("Input Strides")),
        "in_values": _compact(args.get("Concrete Inputs")),
        "in_dtypes": _compact([_dtype(t) for t in args.get("Input type") or []]),
    }
    if "Collective name" in args:
        row["bytes"] = args["In msg nelems"] * _SIZES[args["dtype"]]
    return row


def _dtype(name: str) -> str | None:
    if name in ("", "Scalar", "ScalarList"):
        return None
    return _DTYPES.get(name) or (name[5:].lower() if name.startswith("c10::") else name)


def _compact(value: Any) -> str | None:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if value else None


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 < value < 1 << 63 else None


# xplane


def message(data: bytes) -> dict[int, list[Any]]:
    """Any protobuf message: field number -> values (numbers, or bytes)."""
    found: dict[int, list[Any]] = {}
    pos = 0
    while pos < len(data):
        tag, pos = _varint(data, pos)
        wire = tag & 7
        if wire == 0:
            value, pos = _varint(data, pos)
        elif wire == 1:
            value, pos = data[pos : pos + 8], pos + 8
        else:
            assert wire == 2
            size, pos = _varint(data, pos)
            value, pos = data[pos : pos + size], pos + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[pos] & 127) << shift
        shift += 7
        pos += 1
        if data[pos - 1] < 128:
            return value, pos


def _first(fields: dict[int, list[Any]], number: int, default: Any = 0) -> Any:
    return fields.get(number, [default])[0]


def _entries(plane: dict[int, list[Any]], number: int) -> dict[int, dict[int, list[Any]]]:
    pairs = [message(entry) for entry in plane.get(number, [])]
    return {_first(pair, 1): message(_first(pair, 2, b"")) for pair in pairs}


def _stats(owner: dict[int, list[Any]], number: int, names: dict[int, str]) -> dict[str, Any]:
    found = {}
    for stat in map(message, owner.get(number, [])):
        name, value = names.get(_first(stat, 1), ""), None
        if 2 in stat:
            value = struct.unpack("<d", stat[2][0])[0]
        elif 3 in stat or 4 in stat:
            value = _first(stat, 3) or _first(stat, 4)
            value = value - (1 << 64) if value >= 1 << 63 else value
        elif 5 in stat:
            value = stat[5][0].decode()
        elif 7 in stat:
            value = names[stat[7][0]]
        found[name] = value
    return found


XPLANE_COLUMNS = ("role", "name", "label", "device", "start_ns", "dur_ns", "correlation", "step_num")


def xplane_rows(data: bytes) -> tuple[int, list[tuple]]:
    """(events, sorted rows in XPLANE_COLUMNS) of a whole xplane.pb with host and GPU planes."""
    count, rows, base = 0, [], 0
    planes = [message(plane) for plane in message(data).get(1, [])]
    for plane in planes:
        names = {key: _first(value, 2, b"").decode() for key, value in _entries(plane, 5).items()}
        base = _stats(plane, 6, names).get("profile_start_time", base)
        metas = _entries(plane, 4)
        for line in map(message, plane.get(3, [])):
            for event in map(message, line.get(4, [])):
                count += 1
                name = _first(metas.get(_first(event, 1), {}), 2, b"").decode("utf-8", "replace")
                row = _xplane_row(_first(plane, 2, b"").decode(), _first(line, 2, b"").decode(), name, _stats(event, 4, names))
                if row:
                    offset, dur = _first(event, 2), _first(event, 3)
                    row["start_ns"] = _first(line, 3) + offset // 1000
                    row["dur_ns"] = _first(line, 3) + (offset + dur) // 1000 - row["start_ns"]
                    rows.append(row)
    if max((row["start_ns"] for row in rows), default=0) < 10**18:
        for row in rows:
            row["start_ns"] += base
    return count, _tuples(rows, XPLANE_COLUMNS)


def _xplane_row(plane: str, line: str, name: str, stats: dict[str, Any]) -> dict[str, Any] | None:
    correlation = stats.get("correlation_id")
    gpu = re.match(r"/device:GPU:(\d+)", plane)
    if gpu:
        if not line.startswith("Stream #"):
            return None
        role = "copy" if name.startswith("Memcpy") else "memset" if name.startswith("Memset") else "kernel"
        device = f"GPU:{gpu.group(1)}"
        return {"role": role, "name": name.removesuffix(".kd"), "device": device, "correlation": correlation, "label": ...}
    if not plane.startswith("/host:") or plane == "/host:metadata" or name.startswith(("end: ", "ThreadpoolListener::")):
        return None
    if name in ("MemoryAllocation", "MemoryDeallocation"):
        return None
    return _host_row(name, stats) | {"correlation": correlation}


def _host_row(name: str, stats: dict[str, Any]) -> dict[str, Any]:
    if "hlo_op" in stats:
        return {"role": "op", "name": re.sub(r"(\.\d+)+$", "", stats["hlo_op"]), "label": stats["hlo_op"]}
    if name.startswith("$"):
        return {"role": "python", "name": re.sub(r"^\$(.+?):(\d+) (.+)$", r"\1(\2): \3", name).removeprefix("$")}
    node, colon, kind = name.rpartition(":")
    if colon and not node.endswith(":") and " " not in name and re.fullmatch(r"[A-Z_]\w*", kind) and not kind.startswith("__inference"):
        return {"role": "op", "name": re.sub("^_Mkl(Native)?", "", kind), "label": node}
    if name.startswith("EagerLocalExecute: ") and not name.startswith("EagerLocalExecute: __"):
        return {"role": "op", "name": name.split(": ", 1)[1]}
    if name.startswith("PjitFunction("):
        return {"role": "function", "name": name}
    if re.fullmatch(r"(cu|cuda|hip)[A-Z]\w+", name) or "correlation_id" in stats:
        return {"role": "runtime", "name": name}
    if "tf_function_call" in stats:
        return {"role": "function", "name": name}
    if "step_num" in stats and "_r" in stats:
        return {"role": "annotation", "name": name, "step_num": stats["step_num"]}
    return {"role": "framework", "name": name}
