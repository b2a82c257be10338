"""Is the difference of two step times a change? Median and MAD of several runs decide; a single run a side cannot tell."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.comparing.side import Side

__all__ = ["apart", "judge"]

SIGMA = 1.4826
"""MAD of normally distributed values -> their standard deviation."""
TIMES = 3.0
LEAST = 0.01
"""Part of the step below which nothing is called a change."""
FEW = 6
"""With fewer runs a side than this their ranges must not meet either: a MAD of so few says little."""


def judge(a: Side, b: Side) -> dict[str, Any]:
    """{known, change, a_mad_ms, b_mad_ms, limit_ms, runs}: change: slower | faster | none (a against b) | unknown."""
    runs = {"a": len(a.runs), "b": len(b.runs)}
    if min(runs.values()) < 2:
        return {"known": False, "change": "unknown", "a_mad_ms": None, "b_mad_ms": None, "limit_ms": None, "runs": runs}
    mads = [_mad(side.runs) for side in (a, b)]
    delta = median(a.runs) - median(b.runs)
    limit = max(TIMES * SIGMA * float(np.hypot(mads[0], mads[1])), LEAST * min(median(a.runs), median(b.runs)))
    meet = min(a.runs) <= max(b.runs) and min(b.runs) <= max(a.runs)
    none = abs(delta) <= limit or (meet and min(runs.values()) < FEW)
    change = "none" if none else "slower" if delta > 0 else "faster"
    return {
        "known": True, "change": change, "a_mad_ms": mads[0] / 1e6, "b_mad_ms": mads[1] / 1e6, "limit_ms": limit / 1e6, "runs": runs,
    }  # fmt: skip


def _mad(values: Sequence[int]) -> float:
    middle = median(values)
    return float(median([abs(value - middle) for value in values]))


def apart(a: Side, b: Side) -> bool:
    """Whether the usual steps of the two sides hardly meet: nine in ten of the one are longer than nine in ten of the other."""
    one, two = a.step.samples, b.step.samples
    if len(one) == 0 or len(two) == 0:
        return False
    return bool(np.percentile(one, 10) > np.percentile(two, 90) or np.percentile(two, 10) > np.percentile(one, 90))
