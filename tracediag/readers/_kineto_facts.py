"""Trace-level keys of Kineto -> facts of the file, and what is wrong with it -> health."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tracediag.columns import ROLES, Health
from tracediag.readers._chrome import stream_health
from tracediag.readers._kineto_roles import role_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["device_rows", "recording_health", "trace_facts", "trace_health"]

_VERSIONS = {
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver",
    "cupti_version": "cupti",
    "hip_runtime_version": "hip_runtime",
    "hip_driver_version": "hip_driver",
    "roctracer_version": "roctracer",
    "rocprofiler-sdk_version": "rocprofiler_sdk",
}
_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_VENDORS = {"xpu": "intel", "hpu": "intel", "npu": "huawei", "mtia": "meta"}
MANY = 0.25
"""Part of the events that may be of no known kind before it is said."""
_LONGEST_REPR = 1 << 16
_AMD = ("amd", "radeon", "instinct", "gfx")
_NVIDIA = ("nvidia", "tesla", "quadro", "geforce", "titan", "rtx", "gtx")


def trace_facts(keys: dict[str, Any], lane_names: dict[str, str], accelerator: str = "cuda") -> dict[str, Any]:
    """Facts: devices (rows of the table), versions, flags, distributed, base_time_ns, lane_names; only those that the file has."""
    facts: dict[str, Any] = {}
    if devices := device_rows(keys, accelerator):
        facts["devices"] = devices
    if versions := {name: keys[key] for key, name in _VERSIONS.items() if key in keys}:
        facts["versions"] = versions
    facts.update({flag: bool(keys[flag]) for flag in _FLAGS if flag in keys})
    if keys.get("framework") in ("tensorflow", "jax"):  # written by our own export
        facts["framework"] = keys["framework"]
    if isinstance(keys.get("distributedInfo"), dict):
        facts["distributed"] = keys["distributedInfo"]
    if isinstance(keys.get("baseTimeNanoseconds"), int):
        facts["base_time_ns"] = keys["baseTimeNanoseconds"]
    if lane_names:
        facts["lane_names"] = lane_names
    return facts


def device_rows(keys: dict[str, Any], accelerator: str = "cuda") -> list[dict[str, Any]]:
    """Rows of the table `devices` from deviceProperties; `accelerator`: what they are called (see `_kineto_vendors`)."""
    given = keys.get("deviceProperties")
    if isinstance(given, str) and len(given) < _LONGEST_REPR:  # a file that went through Python: the repr of the list
        try:
            given = ast.literal_eval(given)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return []
    return [_device(keys, item, accelerator) for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def _device(keys: dict[str, Any], item: dict[str, Any], accelerator: str) -> dict[str, Any]:
    vendor = _VENDORS.get(accelerator) or _vendor(keys, item)
    major, minor = item.get("computeMajor"), item.get("computeMinor")
    known = vendor == "nvidia" and all(type(part) is int and 0 <= part < 100 for part in (major, minor))
    return {
        "device": f"{accelerator}:{item.get('id', 0)}",
        "name": item.get("name"),
        "type": "gpu" if accelerator == "cuda" else accelerator,
        "sm_count": item.get("numSms"),
        "memory_bytes": item.get("totalGlobalMem"),
        "compute_capability": float(f"{major}.{minor}") if known else None,
        "vendor": vendor,
    }


def _vendor(keys: dict[str, Any], item: dict[str, Any]) -> str | None:
    name = str(item.get("name", "")).lower()
    if any(word in name for word in _NVIDIA):
        return "nvidia"
    if any(word in name for word in _AMD) or "hip_runtime_version" in keys or item.get("warpSize") == 64:
        return "amd"
    return "nvidia" if item.get("warpSize") == 32 else None


def trace_health(stream: Any, truncated: bool, bad: int) -> tuple[Health, ...]:
    """What was lost. stream: the EventStream after its end; bad: events whose times are unusable."""
    items = list(stream_health(stream, truncated))
    if bad:
        text = f"{bad} events have a negative, infinite or unreadable time or duration and were left out"
        items.append(Health("bad-durations", "warning", text, "their time is missing"))
    return tuple(items)


def recording_health(categories: dict[str, int], nameless: int, facts: dict[str, Any], whole: bool) -> Iterator[Health]:
    """What was recorded, where that is less than one would think. categories: complete events by category; nameless: see `settle`."""
    ranges = categories.get("cuda_profiler_range", 0)
    if ranges:
        text = f"{ranges} ranges of CUPTI counters instead of kernels: kernels ran one by one and were repeated for every counter"
        yield Health("counter-ranges", "warning", text, "times of the device mean nothing; record again without CUPTI_PROFILER_METRICS")
    told = [row["name"] for row in facts.get("devices", ()) if row.get("name")]
    if whole and told and categories and not any(_is_device(category) for category in categories):
        text = f"the file names an accelerator ({told[0]}) but holds no launch call and no device event"
        yield Health("host-only", "info", text, "if the model ran there, its time is unknown; record the activity of the device too")
    if nameless > MANY * sum(categories.values()):
        text = f"{nameless} of {sum(categories.values())} events have no category and no name that tells what they are"
        yield Health("no-categories", "info", text, "they count as host time, device work among them too; give the file as it was exported")


def _is_device(category: str) -> bool:
    role = role_of("X", category)
    return role >= 0 and ROLES[role] in ("runtime", "kernel", "copy", "memset", "device_sync", "device_annotation")
