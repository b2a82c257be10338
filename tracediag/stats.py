"""The numbers at the head of a report: step times, device use, and where the step goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.breakdown import ORDER, Layers, Split, host_layers, split_window, window_layers
from tracediag.columns import Coded, Ints
from tracediag.distinct import distinct
from tracediag.intervals import Spans, intersect, merge, overlap, total
from tracediag.kinds import PHASES

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.database import Cells
    from tracediag.trace import Trace

__all__ = ["breakdown", "device_stats", "first_warm_step", "phase_layers", "step_columns", "step_stats", "unprofiled_steps"]

MS = 1e6
SHARE_DIGITS = 4
LEAST_WARM = 3


def first_warm_step(trace: Trace) -> int:
    """First step of the series that counts: that of the window, else the second, else the first, as long as three steps are left."""
    free = [row["step"] for row in trace.facts.get("step_series") or [] if not row["profiled"]]
    windows = (trace.run or {}).get("windows") or []
    first = min((int(w.get("first_step") or 0) for w in windows), default=0)
    return next((start for start in (first, 1) if sum(step >= start for step in free) >= LEAST_WARM), 0)


def unprofiled_steps(trace: Trace) -> IntArray:
    """Wall times in ns of the steps that ran without the profiler, past the warm-up where enough of them are left; shape (k,)."""
    start = first_warm_step(trace)
    rows = trace.facts.get("step_series") or []
    return np.asarray([row["wall_ns"] for row in rows if not row["profiled"] and row["step"] >= start], np.int64)


def step_stats(trace: Trace) -> dict[str, Any]:
    """count, median_ms and mad_ms of the recorded steps, the same measured without the profiler, and how steps were found."""
    per_row = trace.steps_per_row
    recorded = (trace.step_table.end - trace.step_table.start) / per_row if trace.has_steps else np.zeros(0)
    free = unprofiled_steps(trace) / per_row
    return {
        "count": int(len(recorded) * per_row),
        "median_ms": _median(recorded),
        "mad_ms": _median(np.abs(recorded - np.median(recorded))) if len(recorded) else None,
        "unprofiled_median_ms": _median(free),
        "unprofiled_mean_ms": round(float(np.mean(free)) / MS, 4) if len(free) else None,
        "found_by": trace.step_table.found_by if trace.has_steps else None,
    }


def _median(values: Any) -> float | None:
    return round(float(np.median(values)) / MS, 4) if len(values) else None


def device_stats(trace: Trace) -> dict[str, Any] | None:
    """Kernels, busy time and busy share of a device, clipped to the window; None without device work.

    Window of each recording: first to last step marker, else first operator to last operator or device event. With several devices all
    numbers are means over those that ran kernels, and `devices` says how many.
    """
    if not trace.has_device:
        return None
    kernel = trace.strings("role").isin(["kernel"])
    kernels = np.bincount(trace.device_key[kernel], minlength=len(trace.device_names))
    busy, window = [], []
    used = np.flatnonzero(kernels) if kernels.any() else np.arange(len(trace.device_names))
    for key in used.tolist():
        recorded = _window(trace, trace.device_names[key][0])
        busy.append(total(intersect(trace.busy(key), recorded)))
        window.append(total(recorded))
    return {
        "devices": len(used),
        "kernels": round(float(np.mean(kernels[used]))),
        "busy_ms": round(float(np.mean(busy)) / MS, 4),
        "busy_share": round(sum(busy) / sum(window), 4) if sum(window) else 0.0,
        "window_ms": round(float(np.mean(window)) / MS, 4),
    }


def _window(trace: Trace, rank: int) -> Spans:
    """Of each recording of a rank the time from its first to its last step marker, else all of it; merged."""
    steps, windows = trace.step_table, trace.window_table
    mine = windows.rank == rank
    bounds = []
    for start, end in zip(windows.start[mine].tolist(), windows.end[mine].tolist(), strict=True):
        inside = (steps.rank == rank) & (steps.start < end) & (steps.end > start)
        if steps.found_by == "marker" and inside.any():
            start, end = int(steps.start[inside].min()), int(steps.end[inside].max())
        bounds.append((start, end))
    return merge(np.asarray([start for start, _ in bounds], np.int64), np.asarray([end for _, end in bounds], np.int64))


def step_columns(trace: Trace) -> dict[str, Cells]:
    """The columns of table `steps`."""
    s = trace.step_table
    return {
        "step": s.number,
        "rank": Ints(s.rank, s.rank >= 0),
        "start_ns": s.start,
        "end_ns": s.end,
        "dur_ns": s.end - s.start,
        "steps": np.full(len(s), trace.steps_per_row, np.int32),
        "busy_ns": _busy_by_step(trace),
        "settled": s.settled,
        "found_by": Coded(np.zeros(len(s), np.int32), (s.found_by,)),
    }


def _busy_by_step(trace: Trace) -> Ints:
    """Time of each step in which any device of its rank works, NULL where no device took part."""
    s = trace.step_table
    busy = np.zeros(len(s), np.int64)
    for rank in distinct(s.rank):
        work = np.flatnonzero(trace.device_mask & (trace.ranks == rank))
        mine = s.rank == rank
        busy[mine] = overlap(merge(trace.start[work], trace.end[work]), s.start[mine], s.end[mine])
    return Ints(busy, np.full(len(s), trace.has_device))


def breakdown(trace: Trace) -> list[dict[str, Any]]:
    """Milliseconds per step by phase, exclusive: shares add up to 1. Without steps: of the whole window."""
    splits = [_rank_split(trace, int(rank)) for rank in distinct(trace.step_table.rank)]
    steps = max(int(trace.step_table.settled.sum()) * trace.steps_per_row, 1)
    host, device, idle = ({name: sum(getattr(s, part)[name] for s in splits) for name in ORDER} for part in ("host", "device", "idle"))
    owned = [host[name] + device[name] + idle[name] for name in PHASES]
    shares = _shares(owned)
    return [
        {
            "phase": name,
            "host_ms": round(host[name] / steps / MS, 4),
            "device_ms": round(device[name] / steps / MS, 4),
            "idle_ms": round(idle[name] / steps / MS, 4),
            "share": share,
        }
        for name, share in zip(PHASES, shares, strict=True)
    ]


def _shares(owned: list[int]) -> list[float]:
    """Shares rounded so that they still add up to 1: what rounding leaves goes to the largest remainders."""
    whole, unit = sum(owned), 10**SHARE_DIGITS
    if whole == 0:
        return [0.0] * len(owned)
    floors = [value * unit // whole for value in owned]
    order = sorted(range(len(owned)), key=lambda i: (-(owned[i] * unit % whole), i))
    for i in order[: unit - sum(floors)]:
        floors[i] += 1
    return [floor / unit for floor in floors]


def _rank_split(trace: Trace, rank: int) -> Split:
    """The split of one rank's settled steps."""
    mine = (trace.step_table.rank == rank) & trace.step_table.settled
    window = merge(trace.step_table.start[mine], trace.step_table.end[mine])
    return split_window(window, *_activity(trace, rank, window))


def phase_layers(trace: Trace, rank: int, window: Spans) -> Layers:
    """Who has each instant of a window of one rank, by the same order of precedence as `breakdown`."""
    return window_layers(window, *_activity(trace, rank, window))


def _activity(trace: Trace, rank: int, window: Spans) -> tuple[list[Spans], dict[str, Spans] | None, dict[str, Spans] | None]:
    """Time of one rank by phase: of the host within the window, of its devices at work, and idle; None where no device took part."""
    of_rank = trace.ranks == rank
    phase = _order(trace.strings("phase"))
    shown = np.flatnonzero(of_rank & ~trace.device_mask & _shows_phase(trace))
    host = host_layers(trace.start[shown], trace.end[shown], phase[shown], window)
    if not trace.has_device:
        return host, None, None
    work = np.flatnonzero(of_rank & trace.device_mask)
    device = _by_phase(trace.start[work], trace.end[work], phase[work])
    gap_phase = _order(trace.gap_strings("phase"))
    keys = np.asarray([key for key, (r, _) in enumerate(trace.device_names) if r == rank])
    gaps = np.flatnonzero(np.isin(trace.gap_table.device, keys))
    idle = _by_phase(trace.gap_table.start[gaps], trace.gap_table.end[gaps], gap_phase[gaps])
    return host, device, idle


def _order(phase: Coded) -> IntArray:
    """Phases as indexes into ORDER; unknown ones count as `other`."""
    table = [ORDER.index(name) for name in (*phase.values, "other")]
    return np.asarray(table, np.int64)[phase.codes]


def _by_phase(start: IntArray, end: IntArray, phase: IntArray) -> dict[str, Spans]:
    """Merged time of each phase."""
    return {name: merge(start[phase == i], end[phase == i]) for i, name in enumerate(ORDER)}


def _shows_phase(trace: Trace) -> Any:
    """Host rows that say what the host is at: operators, and ranges of the optimizer, of backward, of waiting for input or for ranks."""
    role = trace.strings("role")
    phase = trace.strings("phase")
    ranges = role.isin(["annotation", "framework"]) & phase.isin(["optimizer", "backward", "input", "comm"])
    return role.isin(["op"]) | (ranges & ~trace.strings("kind").isin(["input_work"]))
