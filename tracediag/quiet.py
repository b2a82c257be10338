"""What a step takes without a cause, as the run shows it: steps that a claim does not touch, or the first ones of a run that grows,
or the part of recorded steps that is not the cause's.

A step after the fix is bounded by two times, in ns. Steps are those measured without the profiler, so that nothing is taken out of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.stats import first_warm_step

if TYPE_CHECKING:
    from tracediag.claims import Claim, Totals
    from tracediag.trace import Trace

__all__ = ["After", "after_fix", "share_of_usual"]

LEAST_QUIET = 5
"""Untouched steps that are enough to tell what a step takes."""
ECHO = 2.0
"""A step right after a touched one that takes this many times the usual still pays for it: caches and executors are built anew."""
NOISE = 1.1
"""The mean of the untouched steps is known to this factor."""
REPLACED = 0.02
"""Of what is removed, this much may stay in the touched steps without that the rule says so."""
LEAST_EARLY, FIT, WARMING = 3, 1.5, 2.25
"""Early steps that are enough for the line of a growing run, and the factors to which its beginning is known, upwards and downwards: early
steps still warm up, so that it is rather too long (recorded pairs came out at the upper end of their interval or above it)."""
KNOWN = 0.5
"""The beginning of that line is known where it is at least this part of the shortest early step."""
RECORDED = 1.9
"""A part of a recorded step takes at most this many times what it takes without the profiler (which takes some us an event)."""
STRAY, MOST_STRAY = 10.0, 0.02
"""A step that takes this many times the usual, and the part of the steps that such ones are at most."""
TOUCHED = 0.9
"""Part of the steps that a growing cause touches at least."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class After:
    """Bounds of a mean step after the fix, ns: 0 < shortest <= longest. now: mean step of today, ns."""

    shortest: float
    longest: float
    now: float


def after_fix(trace: Trace, claim: Claim, totals: Totals) -> After | None:
    """What the run shows of a step without the cause of a claim on the step series; None where each step has it.

    The claimed time of each step is what the claim owns, and keep_high of it may stay.
    """
    wall, gone = _aligned(claim, totals)
    if not gone.any():
        return None
    if claim.after_ns:
        return _bounds(claim.after_ns / RECORDED, claim.after_ns * NOISE, wall)
    return _untouched(totals, wall, gone, claim) or _early(trace, wall, gone)


def share_of_usual(claim: Claim, totals: Totals) -> float:
    """The claim's share of the series without a few far longer steps that it does not explain: they may stay with the fix, or not."""
    wall, gone = _aligned(claim, totals)
    stray = (wall > STRAY * np.median(wall)) & (gone < wall / 2)
    if not stray.any() or stray.mean() > MOST_STRAY:
        return claim.share
    return max(float(gone[~stray].sum() / wall[~stray].sum()), claim.share)


def _aligned(claim: Claim, totals: Totals) -> tuple[Floats, Floats]:
    """Wall time of each step of the series and what is claimed of it, ns."""
    wall = totals.series_wall.astype(np.float64)
    at = np.searchsorted(totals.series_steps, claim.series_steps)
    known = at < len(wall)
    known[known] = totals.series_steps[at[known]] == claim.series_steps[known]
    gone = np.zeros(len(wall))
    gone[at[known]] = claim.series_claims[known]
    return wall, gone


def _untouched(totals: Totals, wall: Floats, gone: Floats, claim: Claim) -> After | None:
    """From the untouched steps; at most what all steps take without what is claimed of them. Echoes of touched steps are left out."""
    touched = gone > 0
    if (~touched).sum() < LEAST_QUIET:
        return None
    follows = np.isin(totals.series_steps - 1, totals.series_steps[touched]) & ~touched
    echo = follows & (wall > ECHO * np.median(wall[~touched]))
    quiet = wall[~touched & ~echo]
    if len(quiet) < LEAST_QUIET:
        return None
    middle, mean = float(np.median(quiet)), float(quiet.mean())
    left = float((wall - gone)[~echo].mean())
    stays = float(gone.mean()) * max(claim.keep_high or 0.0, REPLACED)
    return _bounds(min(middle, mean, left) / NOISE, max(middle, mean, left) * NOISE + stays, wall)


def _early(trace: Trace, wall: Floats, gone: Floats) -> After | None:
    """From the line through the steps before the warm ones, where the claimed part of a step rises from step to step."""
    part = gone / wall
    if (gone > 0).mean() < TOUCHED or len(wall) < LEAST_EARLY or (np.diff(part) < -0.001).any() or part[-1] <= part[0]:
        return None
    first = first_warm_step(trace)
    rows = [row for row in trace.facts.get("step_series") or [] if not row["profiled"] and 1 <= row["step"] < first]
    if len(rows) < LEAST_EARLY:
        return None
    steps, early = (np.asarray([row[name] for row in rows], np.float64) for name in ("step", "wall_ns"))
    slope, base = (float(value) for value in np.polyfit(steps, early, 1))
    if slope <= 0 or early.max() >= np.median(wall):  # it is the warm-up that they show
        return None
    if base < KNOWN * early.min():  # the line falls so steeply that where it begins is not known
        return None
    return _bounds(base / WARMING, min(base * FIT, float(early.min()) * NOISE), wall)


def _bounds(shortest: float, longest: float, wall: Floats) -> After | None:
    """None where the step would not become shorter, or nothing would be left of it."""
    now = float(wall.mean())
    if not 0 < shortest < now:
        return None
    return After(shortest, min(max(longest, shortest), now), now)
