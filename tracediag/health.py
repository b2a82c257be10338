"""Problems of the trace itself, found before any rule speaks: what is missing or odd, what it does to the diagnosis, and the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.columns import Health
from tracediag.intervals import merge, total
from tracediag.recordingchecks import capture_cut_off, clock_skew, no_device, unlinked, unrecorded_work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.trace import Trace

__all__ = ["check_trace"]

OVERHEAD = 1.2
OVERLAP = 0.01
FEW_STEPS = 3
COMPILING = 0.1
"""Part of the recorded steps in compilation from which on their length says nothing about the profiler."""
CHECKS = (no_device, unlinked, capture_cut_off, unrecorded_work, clock_skew)


def check_trace(trace: Trace) -> tuple[Health, ...]:
    """Every health item of a Trace: those of the readers and of the capture first, then these checks, each id once."""
    items = [*trace.file_health, *_notes(trace)]
    for check in (_no_steps, _outliers, _cut_steps, *CHECKS, _stream_overlap, _overhead):
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
    """Steps that shares leave out for their length."""
    steps = trace.step_table
    if not steps.usual.all():
        length = (steps.end - steps.start) / 1e6
        left_out = f"{int((~steps.usual).sum())} of {len(steps)} recorded steps"
        yield Health(
            "outlier-steps",
            "info",
            f"{left_out} take up to {length.max():.3g} ms, the usual one {np.median(length):.3g} ms",
            "shares and the breakdown leave them out; rules that look at single steps still see them",
        )


def _cut_steps(trace: Trace) -> Iterator[Health]:
    """First and last steps that hold only a part of their events."""
    cut = trace.step_table.cut
    if cut is not None and cut.any():
        numbers = ", ".join(map(str, trace.step_table.number[cut].tolist()))
        yield Health(
            "cut-off-step",
            "info",
            f"the recording holds less than half of step {numbers}",
            "shares and the breakdown leave it out; start and stop the profiler at the boundary of a step",
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
    shared = int((np.minimum(end[:-1], end[1:]) - start[1:])[clash].sum())
    if int(clash.sum()) > OVERLAP * len(work) and shared > OVERLAP * int((end - start).sum()):
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
    if profiled and free and profiled > OVERHEAD * free and not _compiling(trace):
        yield Health(
            "profiler-overhead",
            "info",
            f"a recorded step takes {profiled:.3g} ms, one without the profiler {free:.3g} ms",
            "the profiler slows small host operations more than others: host shares are upper bounds",
        )


def _compiling(trace: Trace) -> bool:
    """Whether the recorded steps are long because something was compiled in them, not because they were recorded."""
    rows = trace.strings("kind").isin(["compile"]) & (trace.step_row >= 0)
    table = trace.step_table
    return total(merge(trace.start[rows], trace.end[rows])) > COMPILING * int((table.end - table.start).sum())
