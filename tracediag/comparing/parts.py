"""Where the recorded steps of one side go: phase x kind of the work that is exposed, and idle time by its owner, in exact nanoseconds.

Each instant is given to one class. With a device: device work, computation before communication before copies; then idle time by its
owner; then the host. Without one: the innermost operator, and time between operators. What is hidden behind other work counts zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tracediag.breakdown import ORDER
from tracediag.columns import Ints
from tracediag.comparing.sweep import Pieces, Segments, innermost, sweep
from tracediag.gaps import OWNERS
from tracediag.intervals import Spans, merge, subtract, total
from tracediag.kinds import KINDS
from tracediag.nesting import inherit
from tracediag.phases import INPUT_THREADS

if TYPE_CHECKING:
    from tracediag.columns import Coded, IntArray
    from tracediag.trace import Trace

__all__ = ["OUTSIDE", "Part", "Parts", "recorded_parts"]

OUTSIDE = "outside"
"""Owner of time in which the trace shows nothing at all."""
HIDDEN = ("collective", "copy_h2d", "copy_d2h", "copy_d2d", "memset", "alloc", "launch", "sync", "input_work", "input_wait")
"""Kinds that count only where no other work of their phase covers them, in this order."""
LONG = 3.0
"""A step of more than this times the median is none of the usual ones."""
LEAST = 3
CUT = 0.5
"""Part of the usual number of operators below which a recorded step is not whole."""


class Part(NamedTuple):
    """One class of time. owner: who has it when no work of a kind does (None: work); kind None: such time, or work of an unknown kind."""

    phase: str | None
    kind: str | None
    owner: str | None


@dataclass(frozen=True, eq=False)
class Parts:
    """The recorded steps of one side.

    classes: what each code means. total: ns of each class in all steps counted, shape (c,); events: host events that began in its
    exposed time, shape (c,). steps: training steps counted, over all ranks. segments, exclusive: stretches of work and what of each is
    exposed, ns, shape (s,); gaps: segments of idle time come last, from this index on, and their row is a gap.
    """

    classes: tuple[Part, ...]
    total: IntArray
    events: IntArray
    steps: int
    segments: Segments
    exclusive: npt.NDArray[np.float64]
    gaps: int
    window: Spans


def recorded_parts(trace: Trace) -> Parts:
    """Split the usual recorded steps of a trace; without steps the whole recorded time counts as one."""
    window, steps = _window(trace)
    work = _device_segments(trace) if trace.has_device else _host_segments(trace)
    idle = _gap_segments(trace)
    segments = Segments(*(np.concatenate([one, two]) for one, two in zip(_columns(work), _columns(idle), strict=True)))
    table, segments = _classes(trace, segments, len(work.start))
    pieces = sweep(segments, window)
    sums, events = pieces.totals(len(table)), _events(trace, pieces, len(table))
    rest = total(window) - int(sums.sum())
    classes = (*table, Part("other", None, OUTSIDE))
    return Parts(
        classes, np.append(sums, rest), np.append(events, 0), steps, segments, pieces.shares(segments), len(work.start), window
    )  # fmt: skip


def _columns(segments: Segments) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    return segments.start, segments.end, segments.code, segments.row


def _window(trace: Trace) -> tuple[Spans, int]:
    """Merged time of the usual steps on the claim time line, and how many training steps they are."""
    table = trace.step_table
    use = table.settled.copy()
    length = table.end - table.start
    if trace.has_steps and len(length) >= LEAST:
        use &= (length <= LONG * np.median(length)) & _whole(trace)
    shift = trace.lane_shift(table.rank)
    spans = subtract(merge((table.start + shift)[use], (table.end + shift)[use]), trace.unrecorded)
    return spans, max(int(use.sum()) * trace.steps_per_row, 1)


def _whole(trace: Trace) -> npt.NDArray[np.bool_]:
    """Steps of which the recording holds the usual number of operators; a profiler that starts again may miss those of some threads."""
    inside = trace.step_row[(trace.step_row >= 0) & trace.strings("role").isin(["op"])]
    counts = np.bincount(inside, minlength=len(trace.step_table))
    return np.asarray(counts >= CUT * np.median(counts))


def _device_segments(trace: Trace) -> Segments:
    rows = np.flatnonzero(trace.device_mask)
    shift = trace.shift[rows]
    return Segments(trace.start[rows] + shift, trace.end[rows] + shift, np.zeros(len(rows), np.int64), rows)


def _host_segments(trace: Trace) -> Segments:
    """Innermost operators (and waits for input, and compilations) of each lane."""
    lanes = trace.strings("lane")
    pipeline = lanes.where([INPUT_THREADS in lane for lane in lanes.values])  # works beside the step, not for it
    shown = (trace.strings("role").isin(["op"]) & ~pipeline) | trace.strings("kind").isin(["input_wait", "compile"])
    rows = np.flatnonzero(shown & ~trace.device_mask)
    number = np.full(len(trace), -1, np.int64)
    number[rows] = np.arange(len(rows))
    above = trace.parent[rows]
    parent = np.where(above >= 0, inherit(trace.parent, number)[above], -1) if len(rows) else above
    shift = trace.shift[rows]
    begin, stop, row = innermost(trace.start[rows] + shift, trace.end[rows] + shift, parent)
    return Segments(begin, stop, np.zeros(len(row), np.int64), rows[row])


def _gap_segments(trace: Trace) -> Segments:
    gaps, ranks = trace.gap_table, trace.gap_columns["rank"]
    assert isinstance(ranks, Ints)
    shift = trace.lane_shift(np.where(ranks.valid, ranks.values, -1))
    return Segments(gaps.start + shift, gaps.end + shift, np.zeros(len(shift), np.int64), np.arange(len(shift)))


def _classes(trace: Trace, segments: Segments, gaps: int) -> tuple[tuple[Part, ...], Segments]:
    """Number the classes that occur in order of precedence. gaps: segments from this index on are idle time."""
    phase = _phase_index(trace.strings("phase"))[segments.row[:gaps]]
    kind = trace.strings("kind")
    kinds = np.asarray([_kind_place(value) for value in (*kind.values, None)], np.int64)[kind.codes][segments.row[:gaps]]
    held = segments.row[gaps:]
    idle_phase = _phase_index(trace.gap_strings("phase"))[held]
    owner = trace.gap_table.owner[held]
    span = len(KINDS) + 1
    key = np.concatenate([phase * span + kinds, (len(ORDER) + idle_phase) * span + owner])
    found, code = np.unique(key, return_inverse=True)
    table = tuple(_part(int(value), span) for value in found)
    return table, Segments(segments.start, segments.end, code.reshape(-1).astype(np.int64), segments.row)


def _phase_index(phase: Coded) -> IntArray:
    """Phases of all rows as indexes into ORDER; unknown ones count as `other`."""
    return np.asarray([ORDER.index(name) for name in (*phase.values, "other")], np.int64)[phase.codes]


_PLACES = tuple(kind for kind in KINDS if kind not in HIDDEN) + HIDDEN
_PLACE = {kind: place for place, kind in enumerate(_PLACES)}


def _kind_place(kind: str | None) -> int:
    return len(_PLACES) if kind is None else _PLACE[kind]


def _part(key: int, span: int) -> Part:
    phase, rest = divmod(key, span)
    if phase >= len(ORDER):
        return Part(ORDER[phase - len(ORDER)], None, OWNERS[rest])
    return Part(ORDER[phase], _PLACES[rest] if rest < len(_PLACES) else None, None)


def _events(trace: Trace, pieces: Pieces, classes: int) -> IntArray:
    """Recorded host events that began in the exposed time of each class."""
    host = np.flatnonzero(~trace.device_mask)
    code = pieces.at((trace.start + trace.shift)[host])
    return np.bincount(code[code >= 0], minlength=classes).astype(np.int64)
