"""What is drawn over the events of an excerpt: steps, phases, idle time with its owner, and what each finding claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.breakdown import ORDER
from tracediag.columns import Ints
from tracediag.excerpt.thinning import largest
from tracediag.excerpt.timeline import places_of
from tracediag.gaps import OWNERS
from tracediag.intervals import Spans, clip
from tracediag.stats import phase_layers

if TYPE_CHECKING:
    from tracediag.claims import Claim
    from tracediag.columns import IntArray
    from tracediag.excerpt.window import Window
    from tracediag.trace import Trace

__all__ = ["LEAST_SPANS", "MAX_SPANS", "gaps_of", "idle_in", "marks_of", "phases_of", "steps_of"]

FINEST = 20_000
"""Pieces of phases shorter than the window over this are no more than a hair on any screen, and are left out."""
MAX_GAPS = 2_000
MAX_SPANS = 4_000
"""Of all findings together, but LEAST_SPANS of each."""
LEAST_SPANS = 50


def steps_of(trace: Trace, window: Window) -> list[dict[str, int]]:
    """The steps that the window shows."""
    table, rows = trace.step_table, window.steps
    columns = table.number[rows].tolist(), (table.start[rows] - window.start).tolist(), (table.end[rows] - table.start[rows]).tolist()
    return [{"number": number, "start": start, "dur": dur} for number, start, dur in zip(*columns, strict=True)]


def phases_of(trace: Trace, window: Window) -> dict[str, Any]:
    """Who has each instant: columns phase (index into `names`), part (0 host, 1 device, 2 idle), start, dur, in order of time."""
    bounds = np.asarray([window.start]), np.asarray([window.end])
    layers = phase_layers(trace, window.rank, bounds)
    least = (window.end - window.start) // FINEST
    pieces = []
    for part, spans_of in enumerate((layers.host, layers.device, layers.idle)):
        for phase, name in enumerate(ORDER):
            start, end = spans_of[name]
            keep = end - start >= least
            begin, length = (start[keep] - window.start).tolist(), (end - start)[keep].tolist()
            pieces += [(at, dur, phase, part) for at, dur in zip(begin, length, strict=True)]
    pieces.sort()
    return {"names": list(ORDER)} | {key: [piece[i] for piece in pieces] for i, key in enumerate(("start", "dur", "phase", "part"))}


def idle_in(trace: Trace, window: Window) -> tuple[IntArray, int]:
    """Rows of the gaps in the window, in order of device and time: the longest MAX_GAPS; and the number left out."""
    table, rank = trace.gap_table, trace.gap_columns["rank"]
    assert isinstance(rank, Ints)
    mine = np.where(rank.valid, rank.values, -1) == window.rank
    at = np.flatnonzero(mine & (table.start < window.end) & (table.end > window.start))
    longest = at[largest(table.end[at] - table.start[at], MAX_GAPS)]
    return longest[np.lexsort((table.start[longest], table.device[longest]))], len(at) - len(longest)


def gaps_of(trace: Trace, window: Window, shown: IntArray, rows: IntArray) -> dict[str, Any]:
    """Columns of the shown gaps. track: index into `tracks` (devices, or `host` where none took part); owner: index into `owners`; op:
    shown event that owns it, -1: none."""
    table = trace.gap_table
    tracks, track = np.unique(trace.gap_strings("device").take(shown).to_objects().astype(str), return_inverse=True)
    return {
        "tracks": tracks.tolist(),
        "owners": list(OWNERS),
        "track": track.tolist(),
        "start": (table.start[shown] - window.start).tolist(),
        "dur": (table.end[shown] - table.start[shown]).tolist(),
        "owner": table.owner[shown].tolist(),
        "op": places_of(table.host[shown], rows, len(trace)),
    }


def marks_of(trace: Trace, window: Window, claim: Claim, rows: IntArray, shown: IntArray, most: int) -> dict[str, list[int]]:
    """What a finding has of the window: `start` and `dur` of the time that it owns (the longest `most` pieces), the shown `events`
    that it claims with all below them, the device work that they launched and the owners of its gaps, and the shown `gaps` of it;
    both as runs: first, number, first, number, and so on."""
    held = trace.gap_table.host
    inside = trace.subtree(claim.op_ids)
    idle = (held >= 0) & inside[held] & trace.has_device
    idle[claim.gap_ids] = True
    owners = held[claim.gap_ids]
    inside[owners[owners >= 0]] = True
    start, end = _owned(trace, window, claim, most)
    return {
        "start": (start - window.start).tolist(),
        "dur": (end - start).tolist(),
        "events": runs(np.flatnonzero(inside[rows])),
        "gaps": runs(np.flatnonzero(idle[shown])),
    }


def runs(places: IntArray) -> list[int]:
    """Ascending numbers as runs: first and length of each, one behind the other; what a finding claims lies side by side."""
    first = np.flatnonzero(np.append(True, np.diff(places) != 1)) if len(places) else places
    length = np.diff(np.append(first, len(places)))
    return np.stack([places[first], length], axis=1).ravel().tolist()


def _owned(trace: Trace, window: Window, claim: Claim, most: int) -> Spans:
    """The time that a finding owns in the window, on the time line of its rank; the longest pieces in order of time."""
    shift = int(trace.lane_shift(np.asarray([window.rank]))[0])
    start, end = clip(claim.spans, window.start + shift, window.end + shift)
    kept = largest(end - start, most)
    return start[kept] - shift, end[kept] - shift
