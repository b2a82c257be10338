"""Trace-level keys of Kineto -> facts of the file, and what is wrong with it -> health."""

from __future__ import annotations

from typing import Any

from tracediag.columns import Health
from tracediag.readers._chrome import stream_health

__all__ = ["device_rows", "trace_facts", "trace_health"]

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
_AMD = ("amd", "radeon", "instinct", "gfx")
_NVIDIA = ("nvidia", "tesla", "quadro", "geforce", "titan", "rtx", "gtx")


def trace_facts(keys: dict[str, Any], lane_names: dict[str, str]) -> dict[str, Any]:
    """Facts: devices (rows of the table), versions, flags, distributed, base_time_ns, lane_names; only those that the file has."""
    facts: dict[str, Any] = {}
    if devices := device_rows(keys):
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


def device_rows(keys: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table `devices` from deviceProperties."""
    given = keys.get("deviceProperties")
    return [_device(keys, item) for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def _device(keys: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    vendor = _vendor(keys, item)
    major, minor = item.get("computeMajor"), item.get("computeMinor")
    known = vendor == "nvidia" and isinstance(major, int) and isinstance(minor, int)
    return {
        "device": f"cuda:{item.get('id', 0)}",
        "name": item.get("name"),
        "type": "gpu",
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
