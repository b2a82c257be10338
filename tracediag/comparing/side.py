"""One side of a comparison: its runs, its step time, and its step split into parts that add up to it exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracediag.comparing.opgroups import OpGroup, op_groups
from tracediag.comparing.parts import OUTSIDE, Part, Parts, recorded_parts
from tracediag.comparing.steptime import StepTime, apportion, recorded_time, told_time, unprofiled_time
from tracediag.comparing.work import Work, work_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.findings import Report
    from tracediag.trace import Trace

__all__ = ["Run", "Side", "both_sides", "by_phase"]

LONG_PARTS = {
    "compile_ns": Part("other", "compile", None),
    "loader_ns": Part("input", "input_wait", None),
    "evaluation_ns": Part("other", None, "evaluation"),
    "long_steps": Part("other", None, "long_steps"),
}
NO_WORK = Work(None, (), {}, None, None, None, None, None, None)
LEAST_LEFT = 0.5
"""Part of the recorded time of a class that is left when the profiler's own part is taken off."""
Run = tuple["Trace | None", "Report"]
"""One run: the Trace (None where only its report is there) and the report of it."""


@dataclass(frozen=True, eq=False)
class Side:
    """name: a or b. trace, report: of the run in the middle. step: its time. runs: ns of a step of every run.

    parts: ns of a step by class; they add up to step.ns. scale: what recorded time was multiplied with to meet the usual step.
    """

    name: str
    trace: Trace | None
    report: Report
    step: StepTime
    runs: tuple[int, ...]
    parts: dict[Part, int]
    scale: float | None
    groups: tuple[OpGroup, ...]
    work: Work
    recorded_ns: int | None

    @property
    def frameworks(self) -> tuple[str, ...]:
        """Frameworks that it names."""
        return tuple(sorted(str(self.report.subject.get("framework") or "").split("+"))) if self.report.subject.get("framework") else ()


def both_sides(a: Sequence[Run], b: Sequence[Run]) -> tuple[Side, Side]:
    """The two sides, their steps measured in the same way: without the profiler where every run tells that, else as recorded."""
    recorded = not all(_tells_unprofiled(run) for run in (*a, *b))
    first, second = _side("a", a, recorded), _side("b", b, recorded)
    if first.trace is None or second.trace is None:
        return by_phase(first), by_phase(second)
    return first, second


def _tells_unprofiled(run: Run) -> bool:
    return run[1].steps.get("unprofiled_mean_ms") is not None


def _side(name: str, runs: Sequence[Run], recorded: bool) -> Side:
    splits = [None if trace is None else recorded_parts(trace) for trace, _ in runs]
    times = [_time(run, split, recorded) for run, split in zip(runs, splits, strict=True)]
    order = sorted(range(len(runs)), key=lambda i: (times[i].ns, i))
    middle = order[(len(order) - 1) // 2]
    (trace, report), split, time = runs[middle], splits[middle], times[middle]
    all_runs = tuple(time.ns for time in times)
    if trace is None or split is None:
        return Side(name, None, report, time, all_runs, _told_parts(report, time.ns), None, (), NO_WORK, time.ns)
    per_step, scale = _per_step(split, time)
    parts = {part: ns for part, ns in zip(split.classes, per_step, strict=True) if ns}
    for cause, ns in time.long.items():
        parts[LONG_PARTS[cause]] = parts.get(LONG_PARTS[cause], 0) + ns
    groups = op_groups(trace, split, per_step)
    return Side(name, trace, report, time, all_runs, parts, scale, groups, work_of(trace, split), round(_mean(split)))


def _mean(split: Parts) -> float:
    return int(split.total.sum()) / split.steps


def _time(run: Run, split: Parts | None, recorded: bool) -> StepTime:
    trace, report = run
    if trace is None or split is None:
        return told_time(report.steps, recorded) or StepTime(0, 0, {}, np.zeros(0, np.int64), 0, "told")
    free = None if recorded else unprofiled_time(trace)
    if free is not None:
        return free
    table = trace.step_table
    samples = (table.end - table.start)[table.settled] // trace.steps_per_row
    return recorded_time(int(split.total.sum()), split.steps, samples)


def _per_step(split: Parts, time: StepTime) -> tuple[list[int], float]:
    """Each class in a usual step, adding up to it exactly, and the factor.

    What the profiler added is taken to be the same for every host event that it recorded, as far as it can be taken off; the rest is
    scaled to the step without it.
    """
    mean = split.total / split.steps
    added = max(float(mean.sum()) - time.usual, 0.0)
    events = float(split.events.sum())
    if time.basis == "unprofiled" and added and events:
        mean = np.maximum(mean - added * split.events / events, mean * LEAST_LEFT)
    whole = float(mean.sum())
    return apportion(mean, time.usual), time.usual / whole if whole else 1.0


def _told_parts(report: Report, ns: int) -> dict[Part, int]:
    """The breakdown of a report: phases only."""
    weights = [part["host_ms"] + part["device_ms"] + part["idle_ms"] for part in report.breakdown]
    if not sum(weights):
        return {Part("other", None, OUTSIDE): ns}
    shares = apportion(weights, ns)
    return {Part(part["phase"], None, None): value for part, value in zip(report.breakdown, shares, strict=True) if value}


def by_phase(side: Side) -> Side:
    """The same side with parts by phase only, to be held against a report, which has no more."""
    parts: dict[Part, int] = {}
    for part, ns in side.parts.items():
        key = Part(part.phase, None, None)
        parts[key] = parts.get(key, 0) + ns
    groups = tuple(replace(group, part=Part(group.part.phase, None, None)) for group in side.groups)
    return replace(side, parts=parts, groups=groups)
