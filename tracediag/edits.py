"""What a fix takes out of a recording: host time of lanes, idle time, device work; one edit for each claim and fraction that stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import distinct
from tracediag.intervals import clip, cover, intersect, merge, overlap, subtract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracediag.claims import Claim
    from tracediag.columns import IntArray
    from tracediag.depgraph import Graph
    from tracediag.intervals import Spans
    from tracediag.trace import Trace

__all__ = ["Edit", "Removed", "combined", "edits_of", "host_times", "untouched"]

Floats = npt.NDArray[np.float64]
Cut = tuple["Spans", float]
"""A merged set and the part of its time that goes."""

OWNED = 0.5
"""Device work goes with a claim that owns at least this part of it."""


@dataclass(frozen=True, eq=False)
class Edit:
    """host: lane (index in the graph) -> disjoint cuts of its time. idle: cuts of the time before device work that are idle. shrink, gaps:
    part of the duration of each op of the device that goes, and of the pause before it, shape (n,)."""

    host: Mapping[int, tuple[Cut, ...]]
    idle: tuple[Cut, ...]
    shrink: Floats
    gaps: Floats


def untouched(graph: Graph) -> Edit:
    """The edit that changes nothing."""
    none = np.zeros(len(graph.work))
    return Edit({}, (), none, none)


def edits_of(trace: Trace, graph: Graph, claim: Claim, inside: npt.NDArray[np.bool_], transform: str, keeps: Sequence[float]) -> list[Edit]:
    """What `transform` takes out of one rank, for each fraction of `keeps` that stays of the claimed work.

    inside: rows of the trace that the claimed ops hold (`Trace.subtree`).

    drop, keep, at_least: host calls and device work alike. scale: the work, not the calls that launch it. merge_launches: the calls
    and the pauses of the device, not its work. Without device work all of them take host time.
    """
    shift = int(trace.lane_shift(np.asarray([graph.rank]))[0])
    length = int(trace.end.max(initial=0)) + 1
    owned = clip(claim.spans, shift, shift + length)
    owned = owned[0] - shift, owned[1] - shift
    host = {} if trace.has_device and transform == "scale" else _host(trace, graph, claim, owned)
    idle = _idle(trace, graph, claim, owned) if len(claim.gap_ids) else None
    lanes: dict[int, list[Spans]] = {}
    for lane in range(len(graph.lanes)):
        own = host.get(lane)
        parts = [own] if own is not None else []
        if idle is not None:
            parts.append(subtract(idle, own) if own is not None else idle)
        if parts:
            lanes[lane] = parts
    work = _work(graph, inside, owned)
    shrunk = np.zeros(len(work)) if transform == "merge_launches" else work
    return [_cut(lanes, idle, shrunk, work, 1.0 - keep) for keep in keeps]


def _cut(lanes: Mapping[int, Sequence[Spans]], idle: Spans | None, shrunk: Floats, work: Floats, gone: float) -> Edit:
    host = {lane: tuple((spans, gone) for spans in parts) for lane, parts in lanes.items()}
    return Edit(host, ((idle, gone),) if idle is not None else (), shrunk * gone, work * gone)


def _host(trace: Trace, graph: Graph, claim: Claim, owned: Spans) -> dict[int, Spans]:
    """Merged time of the claimed rows on each lane; of device rows that of their launch. Without a device only what is owned."""
    rows = claim.op_ids[trace.ranks[claim.op_ids] == graph.rank]
    work = trace.device_mask[rows]
    calls = trace.launch[rows[work]]
    rows = np.concatenate([rows[~work], calls[calls >= 0]])
    codes = trace.strings("lane").codes[rows]
    result = {}
    for lane, code in enumerate(graph.lanes):
        at = rows[codes == code]
        if len(at):
            spans = merge(trace.start[at], trace.end[at])
            result[lane] = spans if trace.has_device else intersect(spans, owned)
    return result


def _idle(trace: Trace, graph: Graph, claim: Claim, owned: Spans) -> Spans:
    gaps = trace.gap_table
    ranks = np.asarray([rank for rank, _ in trace.device_names] or [graph.rank], np.int64)
    at = claim.gap_ids
    mine = at[ranks[np.minimum(gaps.device[at], len(ranks) - 1)] == graph.rank]
    return intersect(merge(gaps.start[mine], gaps.end[mine]), owned)


def _work(graph: Graph, inside: npt.NDArray[np.bool_], owned: Spans) -> Floats:
    """1 for each device op that the claim owns, else 0; shape (n,)."""
    work = graph.work
    held = overlap(owned, work.start, work.end) >= OWNED * (work.end - work.start)
    return (inside[work.row] & held).astype(np.float64)


def combined(edits: Sequence[Edit]) -> Edit:
    """All edits at once: what two of them take out goes once, as the first of them says."""
    lanes = {lane for edit in edits for lane in edit.host}
    host = {lane: _disjoint([cut for edit in edits for cut in edit.host.get(lane, ())]) for lane in sorted(lanes)}
    idle = _disjoint([cut for edit in edits for cut in edit.idle])
    return Edit(host, idle, _most([edit.shrink for edit in edits]), _most([edit.gaps for edit in edits]))


def _most(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.max(np.stack(parts), axis=0))


def _disjoint(cuts: Sequence[Cut]) -> tuple[Cut, ...]:
    taken: Spans = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    result = []
    for spans, gone in cuts:
        result.append((subtract(spans, taken), gone))
        taken = merge(np.concatenate([taken[0], spans[0]]), np.concatenate([taken[1], spans[1]]))
    return tuple(result)


def host_times(edits: Sequence[Edit], lane: IntArray, time: IntArray) -> Floats:
    """When each lane would come to each time if nothing but the edits changed, one row an edit; shape (k, m)."""
    result = np.repeat(time.astype(np.float64)[None, :], len(edits), axis=0)
    for number in distinct(lane[lane >= 0]).tolist():
        at = np.flatnonzero(lane == number)
        removed = Removed(time[at])
        for k, edit in enumerate(edits):
            for spans, gone in edit.host.get(number, ()):
                result[k, at] -= gone * removed(spans)
    return result


class Removed:
    """Time of merged sets before each of some times; edits that share a set (one claim, several fractions) share the work."""

    def __init__(self, times: IntArray) -> None:
        self.times = times
        self.known: dict[int, IntArray] = {}

    def __call__(self, spans: Spans) -> IntArray:
        """Cumulated length of a merged set before each time, shape (m,). The caller keeps `spans` alive."""
        if id(spans[0]) not in self.known:
            self.known[id(spans[0])] = cover(spans, self.times)
        return self.known[id(spans[0])]
