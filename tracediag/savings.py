"""How much of the step goes with each claim: replayed on the dependency graph where the trace has the edges, else by unions of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.depgraph import Graph, build_graph
from tracediag.distinct import distinct
from tracediag.edits import combined, edits_of, untouched
from tracediag.intervals import intersect, merge, subtract, total
from tracediag.meetings import meetings
from tracediag.replay import replay_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.claims import Claim
    from tracediag.columns import IntArray
    from tracediag.intervals import Spans
    from tracediag.rule import Saving
    from tracediag.trace import Trace

__all__ = ["TOLERANCE", "Calibration", "Saved", "Savings", "savings"]

TOLERANCE = 0.05
"""The untouched replay may miss the recorded steps by this much; else nothing is predicted from the graph."""
LEAST = 0.01
"""Claims of less than this part of a step are not worth a prediction."""
LINKED = 0.5
"""Part of the device time whose launch must be known for a graph."""


@dataclass(frozen=True)
class Saved:
    """Part of a mean step that is bound to the claimed work: low, what no other work overlaps; high, what the critical path loses
    without it. Both 0..1, low <= high <= the claim's share (Amdahl)."""

    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """Medians of the recorded and the replayed steps, ns, and the largest relative error of what is compared (median and mean)."""

    recorded: float
    replayed: float
    error: float

    @property
    def good(self) -> bool:
        """The replay is near enough to predict from."""
        return abs(self.error) <= TOLERANCE


@dataclass(frozen=True)
class Savings:
    """each: one Saved a claim, in order; None for one that no trace time is claimed by, and for all when the replay missed.

    together: the same for all claims at once, what stays already left out. calibration: None where unions were used.
    """

    each: tuple[Saved | None, ...]
    together: Saved | None
    calibration: Calibration | None


def savings(trace: Trace, claims: Sequence[tuple[Claim, Saving]]) -> Savings:
    """What each claim, changed as its rule's saving says, and all of them together take out of a mean step."""
    wanted = [i for i, (claim, saving) in enumerate(claims) if saving.transform != "none" and len(claim.starts) and claim.share >= LEAST]
    graphs = _graphs(trace) if wanted else None
    chosen = [_Priced(claims[i][0], claims[i][1].transform, trace) for i in wanted]
    each: list[Saved | None] = [None] * len(claims)
    if graphs is None:
        bounds = [Saved(one.alone, one.claim.share) for one in chosen]
        together: Saved | None = _summed(chosen) if chosen else None
        calibration = None
    else:
        bounds, together, calibration = _replayed(trace, graphs, chosen)
        if not calibration.good:
            return Savings(tuple(each), None, calibration)
    for i, saved in zip(wanted, bounds, strict=True):
        each[i] = saved
    return Savings(tuple(each), together, calibration)


def _graphs(trace: Trace) -> list[Graph] | None:
    """A graph for each rank; None where the trace lacks the edges: ops in parallel without links, or device work of unknown launch."""
    if trace.has_device:
        time = trace.col("dur_ns") * trace.device_mask
        if time[trace.launch >= 0].sum() < LINKED * time.sum():
            return None
    elif "torch" not in trace.frameworks:
        return None
    ranks = distinct(trace.step_table.rank)
    met = meetings(trace) if len(ranks) > 1 else None
    graphs = [build_graph(trace, int(rank), met) for rank in ranks]
    found = [graph for graph in graphs if graph is not None]
    return found if len(found) == len(graphs) and found else None


class _Priced:
    """A claim to be priced: the rows that its ops hold, the fractions that stay, and the share that nothing overlaps."""

    def __init__(self, claim: Claim, transform: str, trace: Trace) -> None:
        self.claim, self.transform = claim, transform
        self.inside = trace.subtree(claim.op_ids) if len(claim.op_ids) else np.zeros(len(trace), np.bool_)
        self.keep = claim.keep_low or 0.0, claim.keep_high or 0.0
        self.alone = exclusive_share(trace, claim, self.inside)


def _replayed(trace: Trace, graphs: Sequence[Graph], claims: Sequence[_Priced]) -> tuple[list[Saved], Saved, Calibration]:
    """Bounds of each claim and of all together, and how well the untouched replay meets the recorded steps."""
    edited = []
    for graph in graphs:
        pairs = [edits_of(trace, graph, one.claim, one.inside, one.transform, one.keep) for one in claims]
        edited.append(
            [untouched(graph), *(combined([pair[i] for pair in pairs]) for i in (0, 1)), *(edit for pair in pairs for edit in pair)]
        )
    replays = replay_ranks(trace, graphs, edited)
    runs = [(trace.step_table.settled[graph.steps], run) for graph, run in zip(graphs, replays, strict=True)]
    before = np.concatenate([run.recorded[use] for use, run in runs])
    host = np.concatenate([run.host_recorded[use] for use, run in runs])
    after = np.concatenate([run.replayed[:, use] for use, run in runs], axis=1)
    host_after = np.concatenate([run.host_replayed[0, use] for use, run in runs])
    means = after.mean(axis=1)
    gone = (1 - means / means[0] if means[0] > 0 else np.zeros(len(means))).tolist()
    seen = _seen(trace, graphs, claims)
    bounds = [_bounds(one, gone[3 + 2 * i], gone[4 + 2 * i], seen[i]) for i, one in enumerate(claims)]
    most = _summed(claims)
    whole = sum(one.claim.share for one in claims)
    part = sum(seen) / whole if whole and sum(seen) else 1.0
    high = max(min(gone[1] / part, most.high), 0.0)
    return bounds, Saved(max(min(gone[2] / part, most.low, high), 0.0), high), _calibration(before, after[0], host, host_after)


def _seen(trace: Trace, graphs: Sequence[Graph], claims: Sequence[_Priced]) -> list[float]:
    """Share of each claim in the steps that are replayed; its own where those are all steps."""
    used = np.concatenate([graph.steps for graph in graphs])
    if len(used) == len(trace.step_table):
        return [one.claim.share for one in claims]
    used = used[trace.step_table.settled[used]]
    shift = trace.lane_shift(trace.step_table.rank[used])
    steps = merge(trace.step_table.start[used] + shift, trace.step_table.end[used] + shift)
    return [total(intersect(one.claim.spans, steps)) / max(total(steps), 1) for one in claims]


def _bounds(one: _Priced, best: float, worst: float, seen: float) -> Saved:
    """best, worst: part of the replayed steps that goes, of which the claim held the share `seen`.

    Never more than Amdahl's share; the low end only what nothing overlaps. A claim on none of the replayed steps keeps those bounds.
    """
    share = one.claim.share
    if seen <= 0:
        return Saved(min(one.alone, share), share)
    best, worst = best * share / seen, worst * share / seen
    high = min(best / (1 - one.keep[0]), share) if one.keep[0] < 1 else share
    low = min(worst / (1 - one.keep[1]), one.alone, high) if one.keep[1] < 1 else high
    return Saved(max(low, 0.0), max(high, 0.0))


def _calibration(
    before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], host: npt.NDArray[np.float64], host_after: npt.NDArray[np.float64]
) -> Calibration:
    pairs = [
        (float(np.median(before)), float(np.median(after))),
        (float(np.median(host)), float(np.median(host_after))),
        (float(np.mean(before)), float(np.mean(after))),
    ]
    errors = [b / a - 1 if a > 0 else float(b > 0) for a, b in pairs]
    return Calibration(*pairs[0], max(errors, key=abs))


def _summed(claims: Sequence[_Priced]) -> Saved:
    """All claims at once without a graph: owned time is disjoint, so that the sum is the union."""
    high = sum(one.claim.share * (1 - one.keep[0]) for one in claims)
    low = sum(one.alone * (1 - one.keep[1]) for one in claims)
    return Saved(min(low, high, 1.0), min(high, 1.0))


def exclusive_share(trace: Trace, claim: Claim, inside: npt.NDArray[np.bool_]) -> float:
    """The claim's share without the time in which other work runs as well, 0..share: |U(all)| - |U(all but the claimed)|.

    inside: rows that the claimed ops hold.
    """
    whole = total(claim.spans)
    if whole == 0:
        return claim.share
    if trace.has_device:
        others = trace.device_mask & ~inside
    else:
        others = trace.strings("role").isin(["op"]) & trace.strings("phase").isin(PHASES_OF_STEP) & ~inside
        others[_ancestors(trace, claim.op_ids)] = False
    rows = np.flatnonzero(others)
    start, end = trace.start[rows] + trace.shift[rows], trace.end[rows] + trace.shift[rows]
    idle = intersect(claim.spans, _idle(trace, claim, inside))
    alone = subtract(subtract(claim.spans, idle), merge(start, end))
    return claim.share * (total(idle) + total(alone)) / whole


def _idle(trace: Trace, claim: Claim, inside: npt.NDArray[np.bool_]) -> Spans:
    """Idle time among what is claimed: it counts whole, though another device may work meanwhile."""
    held = trace.gap_table.host
    of_ops = np.flatnonzero((held >= 0) & inside[held]) if trace.has_device else np.zeros(0, np.int64)
    return trace.gap_claim(np.concatenate([claim.gap_ids, of_ops]))


PHASES_OF_STEP = ("forward", "backward", "optimizer", "comm")
"""Work of these phases keeps a step busy; what the input pipeline does in the background does not."""


def _ancestors(trace: Trace, rows: IntArray) -> IntArray:
    """All rows that enclose any of these."""
    seen = np.zeros(len(trace), np.bool_)
    up = np.asarray(distinct(trace.parent[rows])) if len(rows) else rows
    while len(up := up[(up >= 0) & ~seen[np.maximum(up, 0)]]):
        seen[up] = True
        up = np.asarray(distinct(trace.parent[up]))
    return np.flatnonzero(seen)
