"""Problems of the trace itself, found before any rule speaks: what is missing or odd, what it does to the diagnosis, and the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.columns import Health
from tracediag.intervals import merge, total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.trace import Trace

__all__ = ["check_trace"]

UNLINKED_SHARE = 0.01
OVERHEAD = 1.2
FEW_STEPS = 3
LEAST_LAUNCHES = 20


def check_trace(trace: Trace) -> tuple[Health, ...]:
    """Every health item of a Trace: those of the readers and of the capture first, then these checks, each id once."""
    items = [*trace.file_health, *_notes(trace)]
    for check in (_no_steps, _outliers, _no_device, _unlinked, _stream_overlap, _overhead):
        items.extend(check(trace))
    return tuple({item.id: item for item in reversed(items)}.values())[::-1]


def _notes(trace: Trace) -> Iterator[Health]:
    """Notes that the capture wrote into run.json."""
    for note in (trace.run or {}).get("notes") or ():
        yield Health(str(note.get("id")), str(note.get("level", "info")), str(note.get("message", "")), str(note.get("effect", "")))


def _no_steps(trace: Trace) -> Iterator[Health]:
    if not trace.has_steps:
        yield Health(
            "no-steps",
            "warning",
            "no training step was found in this trace",
            "shares are of the whole recorded time, start-up included; record with `tracediag profile`, or mark steps with prof.step()",
        )
    elif len(trace.step_table) * trace.steps_per_row < FEW_STEPS:
        yield Health(
            "few-steps",
            "info",
            f"only {len(trace.step_table)} step(s) recorded",
            "nothing can be said about how much steps vary; record at least 5",
        )


def _outliers(trace: Trace) -> Iterator[Health]:
    """Steps that shares leave out."""
    steps = trace.step_table
    if not steps.settled.all():
        length = (steps.end - steps.start) / 1e6
        left_out = f"{int((~steps.settled).sum())} of {len(steps)} recorded steps"
        yield Health(
            "outlier-steps",
            "info",
            f"{left_out} take up to {length.max():.3g} ms, the usual one {np.median(length):.3g} ms",
            "shares and the breakdown leave them out; rules that look at single steps still see them",
        )


def _no_device(trace: Trace) -> Iterator[Health]:
    """Launch calls but no device work: the profiler was not allowed to see the device."""
    calls = int((trace.strings("role").isin(["runtime"]) & trace.strings("kind").isin(["launch"])).sum())
    if calls >= LEAST_LAUNCHES and not trace.has_device:
        yield Health(
            "no-device-events",
            "warning",
            f"{calls} launch calls but no device event: the profiler could not see the device",
            "device time is unknown; allow the counters (NVIDIA: NVreg_RestrictProfilingToAdminUsers=0 or CAP_SYS_ADMIN) and record again",
        )


def _unlinked(trace: Trace) -> Iterator[Health]:
    work = np.flatnonzero(trace.device_mask)
    if len(work) == 0:
        return
    lost = int((trace.launch[work] < 0).sum())
    if lost > UNLINKED_SHARE * len(work):
        yield Health(
            "device-without-launch",
            "info",
            f"{lost} of {len(work)} device events ({lost / len(work):.1%}) have no launch call in the trace",
            "they were launched before the recording began, or their correlation was not kept: their phase and source line are unknown",
        )


def _stream_overlap(trace: Trace) -> Iterator[Health]:
    """Work on one stream runs one after the other: overlaps mean corrupt times. What has no length overlaps nothing."""
    work = np.flatnonzero(trace.device_mask & (trace.end > trace.start))
    if len(work) == 0:
        return
    lane = trace.strings("lane").codes[work]
    order = np.lexsort((trace.start[work], lane))
    lanes, start, end = lane[order], trace.start[work][order], trace.end[work][order]
    clash = (lanes[1:] == lanes[:-1]) & (start[1:] < end[:-1] - 1000)
    if int(clash.sum()) > 0.01 * len(work):
        both = total(merge(start, end))
        yield Health(
            "stream-overlap",
            "warning",
            f"{int(clash.sum())} device events overlap the one before them on the same stream",
            f"times of single kernels cannot be trusted; busy time ({both / 1e6:.1f} ms) counts each instant once",
        )


def _overhead(trace: Trace) -> Iterator[Health]:
    stats = trace.step_stats()
    profiled, free = stats["median_ms"], stats["unprofiled_median_ms"]
    if profiled and free and profiled > OVERHEAD * free:
        yield Health(
            "profiler-overhead",
            "info",
            f"a recorded step takes {profiled:.3g} ms, one without the profiler {free:.3g} ms",
            "the profiler slows small host operations more than others: host shares are upper bounds",
        )
