"""What differs from CUDA in Kineto files of other accelerators: how devices are called, and roles that the category alone does not tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag.columns import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracediag.readers._chrome import Event

__all__ = ["accelerator", "is_special", "settle"]

_ROLE = {role: code for code, role in enumerate(ROLES)}
_LABEL = re.compile(r"(XPU|NPU|MTIA|HPU)(?:\s+\d+)?$")
_CATEGORIES = ("mtia", "xpu", "npu", "hpu")
_MTIA = "mtia_ccp_events"
_MTIA_ROLES = {"event_wait": "device_sync", "event_record": "device_sync", "dma_request": "copy"}
_HOST_CALL = re.compile(r"(?:ze|zes|ur|cuda|cu|hip|Hip|acl|aclrt)[A-Z]\w+$")
_LEVEL_ZERO_KERNEL = re.compile(r".*\[SIMD\d+ ", re.DOTALL)
_OP_NAMES = ("aten::", "autograd::", "torch::", "prims::", "c10::", "quantized::")


def accelerator(labels: Iterable[str], categories: Iterable[str], keys: dict[str, Any]) -> str:
    """What the devices of the file are called in torch: xpu, npu, mtia, hpu, else cuda (which ROCm calls itself too)."""
    for label in labels:
        if match := _LABEL.match(label):
            return match.group(1).lower()
    for category in categories:
        if found := next((name for name in _CATEGORIES if category.lower().startswith(f"{name}_")), None):
            return found
    properties = keys.get("deviceProperties")
    names = [str(item.get("name", "")) for item in properties if isinstance(item, dict)] if isinstance(properties, list) else []
    return "xpu" if any("Intel" in name for name in names) else "cuda"


def is_special(ph: str, cat: str) -> bool:
    """Whether events of this kind need `settle`."""
    return ph == "X" and cat in ("", _MTIA)


def settle(event: Event) -> int:
    """Role (index in ROLES) of an event by its name. Copies of MTIA get their direction and size where the other accelerators have them."""
    if event.cat == _MTIA:
        role = _MTIA_ROLES.get(event.name, "kernel")
        if role == "copy":
            _spell_copy(event)
        return _ROLE[role]
    if event.name.startswith(_OP_NAMES):
        return _ROLE["op"]
    if _LEVEL_ZERO_KERNEL.match(event.name):
        event.pid = "xpu"  # it is the host's: which of several devices this was is not told
        return _ROLE["kernel"]
    return _ROLE["runtime" if _HOST_CALL.match(event.name) else "framework"]


def _spell_copy(event: Event) -> None:
    text = bytes(event.args)
    direction = re.search(rb'"direction"\s*:\s*"(\w+)"', text)
    if direction:
        event.name = f"{event.name} {direction.group(1).decode('ascii', 'replace')}"
    event.args = msgspec.Raw(text.replace(b'"size"', b'"bytes"', 1))
