"""The step time of one side, and what of it lies in a few far longer steps: compilation, input, evaluation, or a cause not recorded.

The step time is the mean of the steps that ran without the profiler, past the warm-up. Steps of more than three times the median are
told apart: what the run recorded of their cause (compile_ns, loader_ns, evaluation_ns) belongs to the mean. A long step without a
recorded cause belongs to it only where they come again and again: a few may be another program's doing, and are left out and told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.comparing.parts import LONG
from tracediag.stats import first_warm_step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["StepTime", "apportion", "recorded_time", "told_time", "unprofiled_time"]

MOST_LONG = 0.25
"""Part of the steps; more long ones than this are usual."""
SEVERAL, RECUR = 3, 0.1
"""So many long steps without a recorded cause, and so large a part of all, belong to what the run does."""
CAUSES = ("compile_ns", "loader_ns", "evaluation_ns")
UNKNOWN = "long_steps"


@dataclass(frozen=True)
class StepTime:
    """Nanoseconds of a training step. usual: of the usual steps; long: what the long ones add to the mean, by its cause.

    ns = usual + the sum of `long`. samples: wall ns of the usual steps, shape (k,). left_out: [wall ns] of long steps not counted.
    median: of all steps. basis: unprofiled | recorded | told (by a report).
    """

    ns: int
    usual: int
    long: Mapping[str, int]
    samples: IntArray
    median: int
    basis: str
    left_out: tuple[int, ...] = ()
    count: int = 0
    batch: tuple[str, ...] = field(default=())


def unprofiled_time(trace: Trace) -> StepTime | None:
    """From the steps measured without the profiler; None where there is none."""
    first = first_warm_step(trace)
    rows = [row for row in trace.facts.get("step_series") or [] if not row["profiled"] and row["step"] >= first]
    if not rows:
        return None
    per = trace.steps_per_row
    wall = np.asarray([row["wall_ns"] for row in rows], np.int64)
    long = wall > LONG * np.median(wall)
    if long.mean() > MOST_LONG:
        long[:] = False
    usual = wall[~long]
    extra, strange = _extra([row for row, is_long in zip(rows, long.tolist(), strict=True) if is_long], round(float(usual.mean())))
    left_out: tuple[int, ...] = ()
    if len(strange) < max(SEVERAL, RECUR * len(rows)):
        extra[UNKNOWN], left_out = 0, strange
    parts = {name: round(value / len(rows) / per) for name, value in extra.items() if round(value / len(rows) / per)}
    base = round(int(usual.sum()) / len(usual) / per)
    return StepTime(
        base + sum(parts.values()), base, parts, usual // per, int(np.median(wall)) // per, "unprofiled", left_out, len(rows)
    )  # fmt: skip


def _extra(rows: Sequence[Mapping[str, Any]], usual: int) -> tuple[dict[str, int], tuple[int, ...]]:
    """What the long steps took beyond a usual one, by its recorded cause, ns; and the wall ns of those that nothing recorded makes long."""
    sums = dict.fromkeys((*CAUSES, UNKNOWN), 0)
    strange = []
    for row in rows:
        left = max(row["wall_ns"] - usual, 0)
        for cause in CAUSES:
            part = min(max(int(row.get(cause) or 0), 0), left)
            sums[cause] += part
            left -= part
        sums[UNKNOWN] += left
        if left > max((LONG - 1) * usual, (row["wall_ns"] - usual) // 2):  # what is recorded of it does not make it long
            strange.append(int(row["wall_ns"]))
    return sums, tuple(sorted(strange, reverse=True))


def recorded_time(total: int, steps: int, samples: IntArray) -> StepTime:
    """From the recorded steps. total: ns of all of them together; steps: how many; samples: each."""
    mean = round(total / steps)
    return StepTime(mean, mean, {}, samples, int(np.median(samples)) if len(samples) else mean, "recorded", (), steps)


def told_time(steps: Mapping[str, Any], recorded: bool = False) -> StepTime | None:
    """From the head of a report (milliseconds); None where it names no step. recorded: not the steps without the profiler."""
    free = None if recorded else steps.get("unprofiled_mean_ms")
    told = free if free is not None else steps.get("median_ms")
    if told is None:
        return None
    ns = round(told * 1e6)
    return StepTime(ns, ns, {}, np.asarray([ns], np.int64), ns, "told", (), int(steps.get("count") or 0))


def apportion(weights: Sequence[float] | npt.NDArray[Any], whole: int) -> list[int]:
    """Whole numbers in proportion to the weights (>= 0) that add up to `whole` exactly: remainders go to the largest fractions."""
    total = float(sum(weights))
    if total <= 0:
        return [0] * len(weights)
    exact = [whole * (float(weight) / total) for weight in weights]
    floors = [int(np.floor(value)) for value in exact]
    order = sorted(range(len(exact)), key=lambda i: (-(exact[i] - floors[i]), i))
    missing = whole - sum(floors)
    for i in range(abs(missing)):
        floors[order[i % len(order)]] += 1 if missing > 0 else -1
    return floors
