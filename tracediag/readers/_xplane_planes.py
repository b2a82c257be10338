"""Which planes and lines of an xplane are timelines, what their lanes are called, and which device they stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tracediag.readers._xplane_names import Named, host_event

if TYPE_CHECKING:
    from tracediag.readers._xplane_space import Line, Meta, Plane

__all__ = ["Place", "Used", "device_row", "named_event", "place_of", "used_lines"]

_DEVICE = re.compile(r"/(?:device:)?(gpu|tpu):(\d+)", re.IGNORECASE)
_STREAM = re.compile(r"Stream #(\d+)")
_SUFFIX = re.compile(r"(?:\.\d+)+$")
_CONTROL = ("while", "conditional", "call")
_HLO_TEXT = re.compile(r"%?([\w.\-]+) = ")


class Place(NamedTuple):
    """kind: host | gpu | tpu; number: of the device."""

    kind: str
    number: int

    @property
    def device(self) -> str | None:
        """Device column: "GPU:0", None on the host."""
        return None if self.kind == "host" else f"{self.kind.upper()}:{self.number}"


class Used(NamedTuple):
    """A line that gives rows. role: of all its events, None where it depends on the event."""

    line: Line
    lane: str
    role: str | None


def place_of(plane: Plane) -> Place | None:
    """Host, GPU or TPU, None for a plane that is no timeline (metadata, environment, statistics)."""
    if plane.name.startswith("/host:") and plane.name != "/host:metadata":
        return Place("host", 0)
    match = _DEVICE.match(plane.name)
    return Place(match.group(1).lower(), int(match.group(2))) if match else None


def used_lines(plane: Plane, place: Place, taken: set[str]) -> list[Used]:
    """Lines whose events become rows. taken: lanes of the file so far, extended here so that each lane is one line.

    On GPUs only streams hold device work: 'TensorFlow Ops', 'XLA Ops' and the like repeat it per scope. On TPUs 'XLA Ops' is the work,
    and 'Steps' numbers the steps.
    """
    if place.kind == "host":
        return [Used(line, _unique(line.name or f"thread {line.id}", line.id, taken), None) for line in plane.lines]
    streams = [(line, match) for line in plane.lines if (match := _STREAM.match(line.name))]
    if streams:
        return [Used(line, _unique(f"gpu {place.number} stream {m.group(1)}", line.id, taken), None) for line, m in streams]
    roles = {"XLA Ops": None, "XLA Modules": "device_annotation", "Steps": "device_annotation"}
    return [
        Used(line, _unique(f"{place.kind} {place.number} {line.name}", line.id, taken), roles[line.name])
        for line in plane.lines
        if line.name in roles
    ]


def _unique(lane: str, number: int, taken: set[str]) -> str:
    while lane in taken:
        lane = f"{lane}/{number}"
    taken.add(lane)
    return lane


def named_event(meta: Meta, place: Place) -> Named:
    """Role, name and label of an event as far as its metadata tells."""
    if place.kind == "host":
        return host_event(meta.name)
    if meta.name.startswith(("Memcpy", "memcpy")):
        return Named("copy", meta.name, None)
    if meta.name.startswith(("Memset", "memset")):
        return Named("memset", meta.name, None)
    text = _HLO_TEXT.match(meta.name)
    op = text.group(1) if text else None
    if op is None and (place.kind == "tpu" or "hlo_category" in meta.stats):
        op = meta.display or meta.name
    name = _SUFFIX.sub("", op) if op else meta.name.removesuffix(".kd")
    if place.kind == "tpu" and name in _CONTROL:
        return Named("device_annotation", name, op)  # what it runs stands on the same line
    if name == "fusion" and (category := meta.stats.get("hlo_category")):
        name = str(category)  # 'convolution fusion', 'loop fusion'
    return Named("kernel", name, op)


def device_row(plane: Plane, place: Place) -> dict[str, Any]:
    """Row of the table `devices`."""
    stats = plane.stats
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor")
    vendor = str(stats.get("device_vendor") or "").lower() or ("google" if place.kind == "tpu" else "nvidia" if major is not None else None)
    return {
        "device": place.device,
        "name": stats.get("device_type_string") or stats.get("gpu_model"),
        "type": place.kind,
        "sm_count": stats.get("core_count"),
        "memory_bytes": stats.get("memory_size"),
        "compute_capability": float(f"{major}.{minor}") if vendor == "nvidia" and major is not None and minor is not None else None,
        "vendor": vendor,
    }
