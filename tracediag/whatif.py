"""Predict what a fix saves: an interval for mean step time now / after, from the time that the claim owns and what stays.

T: mean step time; c: claimed time of a mean step; r = T - c: the rest. After the fix the step takes r + keep * c. How much of the
step is bound to the claim is an interval of its own (see `savings`): replayed on the graph of dependencies, or bounded by unions.
Both ends are uncertain besides: what else runs in the claimed time, what the caches do without it, how much of it the profiler
added. The interval takes the rest for wrong by up to REST of itself, but never by more than CLAIM of what is removed.

Where the run itself shows steps without the cause (see `quiet`), they tell what a step takes after the fix. An interval is at most
WIDEST times its lower end wide: a wider one loses its upper part, since the optimistic end is the one that is hardly ever reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag import intervals
from tracediag.findings import Speedup
from tracediag.quiet import after_fix, share_of_usual
from tracediag.savings import LEAST, Saved, savings
from tracediag.unslowed import without_profiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.claims import Claim, Totals
    from tracediag.rule import Rule
    from tracediag.savings import Calibration
    from tracediag.trace import Trace

__all__ = ["Forecast", "forecast", "predict"]

REST = 0.5
CLAIM = 0.3
SERIES = 0.1
"""A claim measured without the profiler, step by step, leaves a rest that is known this well."""
SMALL_REST = 0.15
"""A claim on the step series that leaves less than this of the step: only the lower end is told. What is left was not looked at, operation
by operation, and caches, allocators and the profiler's own work weigh more in it than what was measured."""
SHOWN_REST = 0.1
"""The same, where the run shows that much left, beside what a rule says stays of the claim."""
WIDEST = 2.5
"""Upper end over lower end of an interval, at most."""
WORTH = 1.01
"""A lower end alone below this promises nothing."""
GUESS = 5.0
"""An interval from steps that the run shows without the cause is no interval beyond this width: then only the lower end is told."""
MS = 1e6


@dataclass(frozen=True)
class Forecast:
    """each: the speed-up of each claim alone, in order. facts: how they were found, and all fixes together (`prediction` of the report)."""

    each: tuple[Speedup | None, ...]
    facts: dict[str, Any] | None


def forecast(trace: Trace, claims: Sequence[tuple[Claim, Rule]], totals: Totals) -> Forecast:
    """What each fix saves alone, and all of them on one graph."""
    found = savings(trace, [(claim, rule.saving) for claim, rule in claims])
    withheld = found.calibration is not None and not found.calibration.good
    each = tuple(
        None if withheld and not claim.by_series else predict(trace, claim, rule, saved, totals)
        for (claim, rule), saved in zip(claims, found.each, strict=True)
    )
    known = [(claim, rule, one) for (claim, rule), one in zip(claims, each, strict=True) if one is not None]
    if not known and not withheld:
        return Forecast(each, None)
    together = _together(trace, known, found.together, totals) if len(known) > 1 else None
    return Forecast(each, _facts(found.calibration, withheld, together))


def predict(trace: Trace, claim: Claim, rule: Rule, saved: Saved | None = None, totals: Totals | None = None) -> Speedup | None:
    """The interval; None where the rule predicts nothing or too little is claimed. high None: at least low.

    saved: part of the step that is bound to the claim; without it the whole of its share is. totals: the step series, for a claim on it.
    """
    if rule.saving.transform == "none" or claim.share < LEAST:
        return None
    if claim.by_series:
        saved = Saved(claim.share, share_of_usual(claim, totals)) if totals is not None else None
    bound = saved or Saved(claim.share, claim.share)
    low, high = (
        share if claim.by_series else without_profiler(trace, claim.op_ids, share, claim.spans) for share in (bound.low, bound.high)
    )
    if high < LEAST:
        return None
    keep = claim.keep_low or 0.0, claim.keep_high or 0.0
    only_low = rule.saving.transform == "at_least"
    shown = _shown(trace, claim, totals) if claim.by_series and totals is not None and not only_low else None
    found = shown or _interval(min(low, high, 1.0), min(high, 1.0), keep, claim.by_series, only_low)
    return found if found.high is not None or found.low >= WORTH else None


def _shown(trace: Trace, claim: Claim, totals: Totals) -> Speedup | None:
    """From the steps that the run shows without the cause; None where it shows none, or where they differ too much."""
    after = after_fix(trace, claim, totals)
    if after is None or after.longest > GUESS * after.shortest:
        return None
    return _narrowed(after.now / after.longest, after.now / after.shortest)


def _narrowed(low: float, high: float) -> Speedup:
    """Rounded, and not wider than WIDEST."""
    low = round(max(low, 1.0), 2)
    widest = math.floor(100 * WIDEST * low) / 100
    if widest > WIDEST * low:  # decimal fractions: 2.85 is more than 2.5 * 1.14
        widest = round(widest - 0.01, 2)
    return Speedup(low, min(round(high, 2), widest))


def _interval(low: float, high: float, keep: tuple[float, float], by_series: bool, only_low: bool) -> Speedup:
    """low, high: share of the step bound to the claim; keep: fractions of it that stay."""
    most, least = 1 - low, 1 - high
    slack = min(most * (SERIES if by_series else REST), CLAIM * low)
    longest = most + slack + keep[1] * low
    shortest = least - min(least * SERIES, CLAIM * high) if by_series else max(least / (1 + REST), least - CLAIM * high)
    shortest += keep[0] * high
    bottom = max(1 / max(longest, LEAST), 1.0)
    if only_low or (by_series and least + keep[1] * high < SMALL_REST and least < SHOWN_REST):
        return Speedup(round(bottom, 2), None)
    return _narrowed(bottom, 1 / shortest) if shortest >= LEAST else Speedup(round(bottom, 2), None)


def _together(trace: Trace, known: Sequence[tuple[Claim, Rule, Speedup]], saved: Saved | None, totals: Totals) -> dict[str, Any]:
    """All fixes at once: what the trace shows on one graph, times what the step series shows (owned time is disjoint)."""
    recorded = [(claim, rule) for claim, rule, _ in known if not claim.by_series]
    series = [(claim, rule) for claim, rule, _ in known if claim.by_series]
    parts = []
    if recorded and saved is not None:
        ids = np.unique(np.concatenate([claim.op_ids for claim, _ in recorded]))
        spans = intervals.merge(*(np.concatenate(edges) for edges in zip(*(claim.spans for claim, _ in recorded), strict=True)))
        bounds = (without_profiler(trace, ids, share, spans) for share in (saved.low, saved.high))
        parts.append(_joint(*bounds, by_series=False, rules=[rule for _, rule in recorded]))
    if series:
        stays = [(claim.keep_low or 0.0, claim.keep_high or 0.0) for claim, _ in series]
        gone = [claim.series_ns / totals.series_ns for claim, _ in series]
        bounds = (sum(part * (1 - keep[i]) for part, keep in zip(gone, stays, strict=True)) for i in (1, 0))
        parts.append(_joint(*bounds, by_series=True, rules=[rule for _, rule in series]))
    alone = [one for _, _, one in known]
    low = max(math.prod(part.low for part in parts), *(one.low for one in alone))
    ends = [part.high for part in parts if part.high is not None]
    singles = [one.high for one in alone if one.high is not None]
    closed = len(ends) == len(parts) and len(singles) == len(alone)
    whole = _narrowed(low, max(math.prod(ends), *singles)) if closed else Speedup(round(low, 2), None)
    return {"rules": sorted({rule.id for _, rule, _ in known}), "low": whole.low, "high": whole.high}


def _joint(low: float, high: float, *, by_series: bool, rules: Sequence[Rule]) -> Speedup:
    """The interval of claims whose common share is given without what stays."""
    only_low = any(rule.saving.transform == "at_least" for rule in rules)
    return _interval(min(low, high, 1.0), min(high, 1.0), (0.0, 0.0), by_series, only_low)


def _facts(calibration: Calibration | None, withheld: bool, together: dict[str, Any] | None) -> dict[str, Any]:
    """How the predictions were made: `graph` with how well its replay met the recorded steps, or `unions`."""
    if calibration is None:
        return {"method": "unions", "recorded_ms": None, "replayed_ms": None, "withheld": None, "together": together}
    reason = f"the replayed step misses the recorded one by {abs(calibration.error) * 100:.0f} %" if withheld else None
    return {
        "method": "graph",
        "recorded_ms": round(calibration.recorded / MS, 4),
        "replayed_ms": round(calibration.replayed / MS, 4),
        "withheld": reason,
        "together": together,
    }
