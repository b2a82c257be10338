"""Predict what a fix saves: an interval for mean step time now / after, from the time that the claim owns and what stays.

T: mean step time; c: claimed time of a mean step; r = T - c: the rest. After the fix the step takes r + keep * c. Both ends are
uncertain: what else runs in the claimed time, what the caches do without it, how much of it the profiler added. The interval
takes the rest for wrong by up to REST of itself, but never by more than CLAIM of what is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.findings import Speedup
from tracediag.stats import unprofiled_steps

if TYPE_CHECKING:
    from tracediag.claims import Claim
    from tracediag.rule import Rule
    from tracediag.trace import Trace

__all__ = ["predict"]

REST = 0.5
CLAIM = 0.3
SERIES = 0.1
"""A claim measured without the profiler, step by step, leaves a rest that is known this well."""
SMALL_REST = 0.15
"""A step of which less than this is left is too short to be known from the slow one: caches, allocators and the profiler's own work
weigh more in it than what was measured. Then only the lower end is told."""
LEAST = 0.01
"""Claims of less than this part of a step are not worth a prediction, and of a rest of less than this nothing is known."""


def predict(trace: Trace, claim: Claim, rule: Rule) -> Speedup | None:
    """The interval; None where the rule predicts nothing or too little is claimed. high None: at least low."""
    if rule.saving.transform == "none" or claim.share < LEAST:
        return None
    share = claim.share if claim.by_series else _without_profiler(trace, claim)
    if share is None or share < LEAST:
        return None
    keep_low, keep_high = claim.keep_low or 0.0, claim.keep_high or 0.0
    rest = 1 - min(share, 1.0)
    slack = min(rest * (SERIES if claim.by_series else REST), CLAIM * share)
    longest = rest + slack + keep_high * share
    shortest = max(rest / (1 + REST), rest - CLAIM * share) if not claim.by_series else rest - slack
    shortest += keep_low * share
    low = max(1 / max(longest, LEAST), 1.0)
    if rule.saving.transform == "at_least" or rest + keep_high * share < SMALL_REST:
        return Speedup(round(low, 2), None)
    return Speedup(round(low, 2), round(1 / shortest, 2) if shortest >= LEAST else None)


def _without_profiler(trace: Trace, claim: Claim) -> float | None:
    """The claim's share of a step that runs without the profiler.

    What the profiler adds is taken to be the same for every recorded host event; the claim loses its part of it. Where no step
    was timed without the profiler, or recording cost nothing, the recorded share stands.
    """
    free = unprofiled_steps(trace)
    recorded = trace.step_table.end - trace.step_table.start
    if len(free) == 0 or len(recorded) == 0 or not trace.has_steps:
        return claim.share
    mean, traced = float(np.median(free)), float(np.median(recorded))
    added = traced - mean
    if added <= 0:
        return claim.share
    inside = trace.step_row >= 0
    events = int((inside & ~trace.device_mask).sum())
    mine = int((trace.subtree(claim.op_ids) & inside & ~trace.device_mask).sum()) if len(claim.op_ids) else 0
    claimed = claim.share * traced - added * (mine / events if events else 0.0)
    return max(claimed, 0.0) / mean if claimed < mean else claim.share
