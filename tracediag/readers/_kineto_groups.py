"""Turn the args of one group of Kineto events (host ops, runtime calls, device work) into pieces of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracediag.readers._coding import NONE, int64, positive, texts, texts_if_any
from tracediag.readers._jsonrepair import UNREADABLE
from tracediag.readers._kineto_args import (
    COLLECTIVE_KEYS,
    DEVICE_DETAIL,
    DeviceArgs,
    OpArgs,
    RuntimeArgs,
    collective_bytes,
    pack_detail,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tracediag.columns import IntArray

__all__ = ["Group", "detail_text", "device_group", "device_lanes", "lane_text", "op_group", "runtime_group"]

_RARE = (b'"Collective name"', b'"kernel_backend"')


@dataclass
class Group:
    """Pieces of columns for m events: numbers by column, raw JSON by string column (None: nothing), keys of `detail`."""

    numbers: dict[str, IntArray] = field(default_factory=dict)
    strings: dict[str, list[bytes] | None] = field(default_factory=dict)
    details: list[Hashable] = field(default_factory=list)


def op_group(args: Sequence[OpArgs], raws: Sequence[Any]) -> Group:
    """Host ops and annotations. raws: the JSON that `args` was decoded from."""
    group = Group(
        {
            "external": positive(int64([a.external for a in args])),
            "sequence": positive(int64([a.sequence for a in args]), 0),
            "flops": int64([a.flops for a in args]),
            "step_num": int64([a.step_num for a in args]),
        },
        {
            "in_shapes": _newer(texts_if_any([a.shapes for a in args]), texts_if_any([a.shapes_old for a in args])),
            "in_dtypes": texts_if_any([a.types for a in args]),
            "in_strides": texts_if_any([a.strides for a in args]),
            "in_values": texts_if_any([a.values for a in args]),
            "out_shapes": texts_if_any([a.out_shapes for a in args]),
            "out_dtypes": texts_if_any([a.out_types for a in args]),
            "label": texts_if_any([a.label for a in args]),
        },
        [a.fwd_thread if a.fwd_thread != NONE else None for a in args],
    )
    _add_rare(group, raws)
    return group


def _newer(new: list[bytes] | None, old: list[bytes] | None) -> list[bytes] | None:
    """Texts under the key of today, or under the one of old versions where that is missing."""
    if new is None or old is None:
        return new or old
    return [a or b for a, b in zip(new, old, strict=True)]


def runtime_group(args: Sequence[RuntimeArgs], raws: Sequence[Any]) -> Group:
    """Calls of the runtime and driver."""
    return Group(
        {
            "external": _either([a.external for a in args], [a.external_old for a in args]),
            "correlation": positive(int64([a.correlation for a in args])),
            "bytes": int64([int(b) if isinstance(b := a.bytes, str) and b.isdecimal() else b for a in args]),
        }
    )


def device_group(args: Sequence[DeviceArgs], raws: Sequence[Any]) -> Group:
    """Work and ranges on the device's timeline."""
    columns = [texts([getattr(a, name) for a in args]) for name in DEVICE_DETAIL]
    group = Group(
        {
            "external": _either([a.external for a in args], [a.external_old for a in args]),
            "correlation": positive(int64([a.correlation for a in args])),
            "bytes": int64([a.bytes for a in args]),
        },
        {"label": texts_if_any([a.label for a in args])},
        list(zip(*columns, strict=True)),
    )
    _add_rare(group, raws)
    return group


def device_lanes(args: Sequence[DeviceArgs], places: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """Lane keys ("gpu" or the lane's whole name, device, stream). places: process and thread of each event, which stand in for both."""
    return [
        (a.lane or "gpu", pid if a.device == NONE else a.device, tid if a.stream == NONE else a.stream)
        for a, (pid, tid) in zip(args, places, strict=True)
    ]


def _either(new: list[Any], old: list[Any]) -> IntArray:
    first = int64(new)
    return positive(np.where(first == NONE, int64(old), first))


def _add_rare(group: Group, raws: Sequence[Any]) -> None:
    """Collectives and generated kernels: their facts, looked for only where their keys stand in the text at all."""
    joined = b",".join(raws)
    keys = [key for key in _RARE if key in joined]
    if not keys:
        return
    size = group.numbers.setdefault("bytes", np.full(len(raws), NONE, np.int64))
    each = texts(raws)
    for row in sorted({row for key in keys for row, raw in enumerate(each) if key in raw}):
        try:
            values = msgspec.json.decode(each[row])
        except UNREADABLE:
            continue
        base = group.details[row] if isinstance(group.details[row], tuple) else ()
        group.details[row] = detail_text(base, {key: values[key] for key in COLLECTIVE_KEYS if key in values})
        size[row] = collective_bytes(values) if size[row] == NONE else size[row]


def detail_text(key: Hashable, more: dict[str, Any] | None = None) -> str | None:
    """The `detail` of a key: text stays, a number is a forward thread, a tuple holds the raw values of DEVICE_DETAIL."""
    if isinstance(key, str):
        return key
    if isinstance(key, int):
        return pack_detail([("Fwd thread id", b"%d" % key)]) if key > 0 else None
    return pack_detail(zip(DEVICE_DETAIL.values(), key, strict=False) if isinstance(key, tuple) else (), more)


def lane_text(key: tuple[Any, Any]) -> str:
    """Lane of a host event: "pid/tid", "pid" where it has no thread."""
    return f"{key[0]}/{key[1]}" if key[1] != "" else str(key[0])
