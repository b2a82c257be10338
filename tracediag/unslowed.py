"""What share a claim has of a step that runs without the profiler, from the share that it has of recorded steps.

Two things set recorded steps apart: the work of recording, and what else the machine did meanwhile. Recording takes about the same for
every host event. What remains may have held up all of a step alike, or only what is claimed (memory that is touched anew takes ten times
as long in one step as in the next); the recorded steps tell which, where they differ enough from each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.intervals import overlap
from tracediag.stats import unprofiled_steps

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.intervals import Spans
    from tracediag.trace import Trace

__all__ = ["rest_follows", "without_profiler"]

MOST_ADDED = 50_000.0
"""Time that recording a host event costs at most, ns, with shapes, memory and stacks on a slow machine."""
LEAST_STEPS, LEAST_SPREAD = 5, 0.15
"""Recorded steps, and the standard deviation of the logarithm of their lengths, from which on they tell what a long step consists of."""


def without_profiler(trace: Trace, op_ids: IntArray, share: float, spans: Spans) -> float:
    """A claim's share of a step that runs without the profiler, 0..1.

    op_ids: operations claimed, sorted; share: the claim's share of the recorded steps; spans: the claimed time, merged, ns. Where no
    step was timed without the profiler, the recorded share stands.
    """
    free = unprofiled_steps(trace)
    recorded = trace.step_table.end - trace.step_table.start
    if len(free) == 0 or len(recorded) == 0 or not trace.has_steps:
        return share
    usual, traced = float(np.median(free)), float(np.median(recorded))
    inside = trace.step_row >= 0
    events = int((inside & ~trace.device_mask).sum())
    added = max(min(traced - usual, events / len(recorded) * MOST_ADDED), 0.0)
    mine = int((trace.subtree(op_ids) & inside & ~trace.device_mask).sum()) if len(op_ids) else 0
    claimed = share * traced - added * mine / max(events, 1)
    left = traced - added
    part = max(claimed, 0.0) / left if claimed < left else share
    settled = max(float(recorded[trace.step_table.settled].mean()) - added, 1.0)
    apart: float = (settled / max(float(free.mean()), 1.0)) ** (1 - rest_follows(trace, spans))
    return 1 - min((1 - part) * apart, 1.0)


def rest_follows(trace: Trace, spans: Spans) -> float:
    """How what is not claimed follows the length of the recorded step: 1 in proportion, 0 not at all (power of the length, 0..1).

    1 too where the steps are too few or too much alike to tell.
    """
    steps = trace.step_table
    start, end = steps.start[steps.settled], steps.end[steps.settled]
    length = (end - start).astype(np.float64)
    rest = length - overlap(spans, start, end)
    known = rest > 0
    if known.sum() < LEAST_STEPS or not known.all():
        return 1.0
    across, along = np.log(rest), np.log(length)
    if along.std() < LEAST_SPREAD:
        return 1.0
    return float(np.clip(np.polyfit(along, across, 1)[0], 0.0, 1.0))
