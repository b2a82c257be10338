"""The `args` of Kineto events, typed per group of categories, and their canonical spelling."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag.readers._coding import NONE
from tracediag.readers._jsonrepair import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "COLLECTIVE_KEYS",
    "DEVICE_DETAIL",
    "DTYPES",
    "DeviceArgs",
    "MemoryArgs",
    "OpArgs",
    "RuntimeArgs",
    "collective_bytes",
    "decode_args",
    "dtype_list",
    "json_text",
    "pack_detail",
    "string",
]

EMPTY = msgspec.Raw(b"")

DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "bool": "bool",
    "int": "int32",
    "long int": "int64",
    "long": "int64",
    "long long": "int64",
    "__int64": "int64",
    "int64_t": "int64",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Int": "int32",
    "Long": "int64",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
}
"""torch's C++ and scalar-type names -> the common spelling. Other names are kept, without "c10::" and in lower case."""

_OF_SHAPES = b"0123456789[], "
_NO_TENSOR = ("", "Scalar", "ScalarList", "None", "GenericList[]")
_SIZES = {"float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}


def _arg(key: str, default: Any = EMPTY) -> Any:
    return msgspec.field(name=key, default=default)


class OpArgs(msgspec.Struct, gc=False):
    """Host ops and annotations. Fields stand in the order in which Kineto writes them, which msgspec matches fastest.

    step_num and label (and lane of device work) are written by our own export of traces that did not come from torch.
    """

    external: int | None = _arg("External id", NONE)
    sequence: int | None = _arg("Sequence number", NONE)
    fwd_thread: int | None = _arg("Fwd thread id", NONE)
    flops: int | None = _arg("flops", NONE)
    values: msgspec.Raw = _arg("Concrete Inputs")
    types: msgspec.Raw = _arg("Input type")
    strides: msgspec.Raw = _arg("Input Strides")
    shapes: msgspec.Raw = _arg("Input Dims")
    shapes_old: msgspec.Raw = _arg("Input dims")
    out_shapes: msgspec.Raw = _arg("Output dims")
    out_types: msgspec.Raw = _arg("Output type")
    step_num: int | None = _arg("step_num", NONE)
    label: msgspec.Raw = _arg("label")


class RuntimeArgs(msgspec.Struct, gc=False):
    """Calls of the device runtime and driver."""

    external: int | None = _arg("External id", NONE)
    external_old: int | None = _arg("external id", NONE)
    correlation: int | None = _arg("correlation", NONE)
    bytes: int | str | None = _arg("bytes", NONE)


class DeviceArgs(msgspec.Struct, gc=False):
    """Everything on the device's timeline."""

    external: int | None = _arg("External id", NONE)
    external_old: int | None = _arg("external id", NONE)
    device: int | None = _arg("device", NONE)
    stream: int | str | None = _arg("stream", NONE)
    correlation: int | None = _arg("correlation", NONE)
    bytes: int | None = _arg("bytes", NONE)
    registers: msgspec.Raw = _arg("registers per thread")
    shared: msgspec.Raw = _arg("shared memory")
    blocks_per_sm: msgspec.Raw = _arg("blocks per SM")
    warps_per_sm: msgspec.Raw = _arg("warps per SM")
    grid: msgspec.Raw = _arg("grid")
    block: msgspec.Raw = _arg("block")
    occupancy: msgspec.Raw = _arg("est. achieved occupancy %")
    kind: msgspec.Raw = _arg("kind")
    sync_kind: msgspec.Raw = _arg("cuda_sync_kind")
    wait_stream: msgspec.Raw = _arg("wait_on_stream")
    wait_correlation: msgspec.Raw = _arg("wait_on_cuda_event_record_corr_id")
    lane: str | None = _arg("lane", None)
    label: msgspec.Raw = _arg("label")


DEVICE_DETAIL = {
    "registers": "registers per thread",
    "shared": "shared memory",
    "blocks_per_sm": "blocks per SM",
    "warps_per_sm": "warps per SM",
    "grid": "grid",
    "block": "block",
    "occupancy": "est. achieved occupancy %",
    "kind": "kind",
    "sync_kind": "cuda_sync_kind",
    "wait_stream": "wait_on_stream",
    "wait_correlation": "wait_on_cuda_event_record_corr_id",
}
"""Fields of DeviceArgs that go into `detail`, under these keys."""


class MemoryArgs(msgspec.Struct, gc=False):
    """[memory] instants."""

    reserved: int | None = _arg("Total Reserved", NONE)
    allocated: int | None = _arg("Total Allocated", NONE)
    bytes: int | None = _arg("Bytes", NONE)
    device_id: int | None = _arg("Device Id", NONE)
    device_type: int | None = _arg("Device Type", NONE)


COLLECTIVE_KEYS = (
    "Collective name",
    "Group size",
    "In msg nelems",
    "Out msg nelems",
    "Process Group Description",
    "Process Group Name",
    "dtype",
    "kernel_backend",
)
"""Rarer facts kept in `detail`: of collectives and of generated (Triton) kernels."""


def decode_args(kind: type[Any], raws: Sequence[Any]) -> list[Any]:
    """The args of a group of events as Structs of `kind`; args that do not fit lose only the fields that do not."""
    try:
        result: list[Any] = msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=list[kind])  # type: ignore[valid-type]
        if len(result) == len(raws):
            return result
    except UNREADABLE:
        pass
    return [_lenient(kind, bytes(raw)) for raw in raws]


def _lenient(kind: type[Any], raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        pass
    try:
        values = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return kind()
    result = kind()
    for field in msgspec.structs.fields(kind):
        if field.encode_name in values:
            try:
                setattr(result, field.name, msgspec.json.decode(values[field.encode_name], type=field.type, strict=False))
            except UNREADABLE:
                continue
    return result


def json_text(raw: bytes) -> str | None:
    """Canonical JSON text (no spaces) of raw JSON; None for nothing, an empty list or null."""
    if not raw:
        return None
    if not raw.translate(None, _OF_SHAPES) and raw.startswith(b"[["):  # lists of lists of sizes, by far the most: only spaces go
        return raw.translate(None, b" ").decode("ascii")
    try:
        value = msgspec.json.decode(raw)
        if isinstance(value, str) and value.startswith("["):  # some backends quote their lists
            value = msgspec.json.decode(value)
    except UNREADABLE:
        return None
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if value else None


def string(raw: bytes) -> str | None:
    """The text of a raw JSON string; None for anything else."""
    try:
        return msgspec.json.decode(raw, type=str) if raw else None
    except UNREADABLE:
        return None


def dtype_list(raw: bytes) -> str | None:
    """Canonical dtypes of a raw list of torch's type names: '["float32",null]'; arguments that are no tensor are null."""
    text = json_text(raw)
    names = json.loads(text) if text else None
    return json.dumps([_dtype(name) for name in names], separators=(",", ":")) if isinstance(names, list) else None


def _dtype(name: Any) -> str | None:
    if not isinstance(name, str) or name in _NO_TENSOR:
        return None
    return DTYPES.get(name) or (name.removeprefix("c10::").lower() if name.startswith("c10::") else name)


def pack_detail(raw_pairs: Iterable[tuple[str, bytes]], more: dict[str, Any] | None = None) -> str | None:
    """JSON object with sorted keys of (name, raw JSON) pairs and more values; None when there are none."""
    pairs = {name: text for name, raw in raw_pairs if raw and (text := canonical(raw))}
    for name, value in (more or {}).items():
        if value is not None and value != "":
            pairs[name] = _dumped(value)
    return "{" + ",".join([f"{_key(name)}:{pairs[name]}" for name in sorted(pairs)]) + "}" if pairs else None


@lru_cache(1 << 14)
def canonical(raw: bytes) -> str | None:
    """Canonical JSON text of one raw value, which the events of a trace share many times; None for null and empty text."""
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE:
        return None
    return None if value is None or value == "" else _dumped(value)


@lru_cache(1 << 10)
def _key(name: str) -> str:
    return _dumped(name)


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def collective_bytes(args: dict[str, Any]) -> int:
    """Bytes of the input message of a collective, NONE when its size or dtype is not told."""
    size = _SIZES.get(_dtype(args.get("dtype")) or "", 1 if args.get("dtype") in ("Byte", "Char", "Bool") else 0)
    count = args.get("In msg nelems")
    return size * count if size and isinstance(count, int) else NONE
