"""What an xplane event is, told from its name: role, name, label; and how detail texts, shapes and dtypes are spelt."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = [
    "Named",
    "copy_bytes",
    "copy_details",
    "host_event",
    "input_dtypes",
    "input_shapes",
    "kernel_details",
    "plain_op",
    "tf_dtype",
    "tf_op_parts",
]

_TF_OP = re.compile(r"([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*|_[A-Za-z0-9_.\\/>-]+):([A-Z_][A-Za-z0-9_]*)$")
_FUNCTION_NODE = re.compile(r"__(?:inference|forward|backward)_")
_PYTHON = re.compile(r"\$(.+?):(\d+) (.+)$", re.DOTALL)
_MKL = re.compile(r"_Mkl(?:Native)?(?=[A-Z])")
_EAGER = "EagerLocalExecute: "  # an op that Python called by itself; behind it the op type, or __inference_f_12 for a function
_RUNTIME = re.compile(r"(?:cu(?:da)?|hip|Hip)(?=[A-Z])\w+$")
_DTYPES = {"half": "float16", "float": "float32", "double": "float64"}
_TYPE_NUMBERS = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64", 10: "bool",
    11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 20: "resource",
    21: "variant", 22: "uint32", 23: "uint64", 24: "float8_e5m2", 25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip


class Named(NamedTuple):
    """role: one of ROLES, None to leave the event out of the columns."""

    role: str | None
    name: str
    label: str | None


def host_event(name: str) -> Named:
    """A host event as far as its name tells; its stats can still make it a function, a step or an XLA op."""
    if name.startswith(("end: ", "ThreadpoolListener::")) or name in ("MemoryAllocation", "MemoryDeallocation"):
        return Named(None, name, None)
    if name.startswith("$"):
        match = _PYTHON.match(name)
        return Named("python", f"{match.group(1)}({match.group(2)}): {match.group(3)}" if match else name[1:], None)
    label, kind = tf_op_parts(name)
    if kind is not None and not _FUNCTION_NODE.match(kind):
        return Named("op", kind, label)
    eager = name.removeprefix(_EAGER)
    if eager != name and not eager.startswith("__"):
        return Named("op", eager, None)
    if name.startswith("PjitFunction(") and name.endswith(")"):
        return Named("function", name, None)
    return Named("runtime" if _RUNTIME.match(name) else "framework", name, None)


def tf_op_parts(text: str) -> tuple[str | None, str | None]:
    """(node, op type) of 'scope/node:OpType', oneDNN's own types under the name that the user wrote; (None, None) for other text."""
    match = _TF_OP.match(text)
    return (match.group(1), plain_op(match.group(2))) if match else (None, None)


def plain_op(kind: str) -> str:
    """An op type under the name that the user wrote: oneDNN's '_MklConv2D' and '_MklNativeConv2D' are Conv2D."""
    return _MKL.sub("", kind, count=1)


def kernel_details(text: str) -> dict[str, Any]:
    """'regs:38 shm:0 grid:160,1,1 block:1024,1,1 occ_pct:50' under the keys that Kineto uses."""
    found: dict[str, Any] = {}
    keys = {"regs": "registers per thread", "shm": "shared memory", "group_mem": "shared memory", "grid": "grid", "block": "block"}
    for part in text.split():
        key, _, value = part.partition(":")
        if key in ("grid", "block"):
            found[key] = [int(v) for v in value.split(",") if v.isdecimal() and len(v) < 19]
        elif key == "occ_pct" and value != "0":
            found["est. achieved occupancy %"] = float(value) if re.fullmatch(r"[\d.]+", value) else value
        elif key in keys and value.isdecimal() and len(value) < 19:
            found[keys[key]] = int(value)
    return found


def copy_details(text: str) -> dict[str, Any]:
    """'kind_src:pageable size:112 dest:4 async:0' without the size, which is a column."""
    pairs = (part.partition(":") for part in text.split())
    return {
        key: int(value) if value.isdecimal() and len(value) < 19 else value
        for key, _, value in pairs
        if value and key not in ("size", "num_bytes")
    }


def copy_bytes(text: str) -> int | None:
    """The size in memcpy_details."""
    match = re.search(r"(?:^| )(?:size|num_bytes):(\d{1,18})(?: |$)", text)
    return int(match.group(1)) if match else None


@lru_cache(1 << 14)
def _input(part: str) -> tuple[str, str | None]:
    """(dtype as JSON, shape as JSON) of one input, 'half[2,?]' -> ('"float16"', '[2,null]'); nulls for one without a value."""
    match = re.fullmatch(r"([a-z]\w*)(\[.*\])", part)
    if match is None:
        return "null", "null"
    try:
        shape = json.dumps(json.loads(match.group(2).replace("?", "null")), separators=(",", ":"))
    except ValueError:
        shape = None
    return json.dumps(_DTYPES.get(match.group(1), match.group(1))), shape


def _inputs(text: str) -> list[tuple[str, str | None]]:
    return [_input(part) for part in text.strip("()").split(";")]


def input_shapes(text: str | None) -> str | None:
    """Stat `shape`, '(int32[4,384];half[])' -> '[[4,384],[]]'; null for an input without a value. Unknown sizes are null."""
    if not text:
        return None
    shapes = [shape for _, shape in _inputs(text) if shape is not None]
    return f"[{','.join(shapes)}]" if len(shapes) == text.strip("()").count(";") + 1 else None


def input_dtypes(text: str | None) -> str | None:
    """Stat `shape`, '(int32[4,384];half[])' -> '["int32","float16"]'."""
    return f"[{','.join([dtype for dtype, _ in _inputs(text)])}]" if text else None


def tf_dtype(number: str) -> str | None:
    """Name of a tensorflow.DataType number."""
    return _TYPE_NUMBERS.get(int(number)) if number.isdecimal() and len(number) < 19 else None
