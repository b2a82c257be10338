"""Which phase of the step each event belongs to: what its name or scope proves, what encloses it, else its place in the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import combinations
from tracediag.kinds import PHASES, scope_phase
from tracediag.nesting import inherit

if TYPE_CHECKING:
    from tracediag.assemble import Events
    from tracediag.columns import IntArray

__all__ = ["INPUT_THREADS", "PHASE_NAMES", "phase_codes"]

INPUT_THREADS = "tf_data_"  # threads of tf.data: whatever runs there prepares input
PHASE_NAMES = tuple(PHASES)
"""Phases in the order of their codes."""
_CODE = {name: code for code, name in enumerate(PHASE_NAMES)}


def _proven(events: Events, kinds: npt.NDArray[np.int32], kind_names: tuple[str, ...]) -> IntArray:
    """Phase code that an event's own name, label and kind prove, -1: none; computed once for each distinct combination."""
    name, label, role = events.coded["name"], events.coded["label"], events.coded["role"]
    combos, index = combinations(name.codes, label.codes, role.codes, kinds)
    table = np.full(len(combos), -1, np.int64)
    for i, (n, lab, r, k) in enumerate(combos.tolist()):
        phase = scope_phase(
            name.values[n],
            label.values[lab] if lab >= 0 else None,
            kind_names[k] if k >= 0 else None,
            role.values[r],
        )
        table[i] = _CODE[phase] if phase else -1
    return table[index]


def phase_codes(
    events: Events, kinds: npt.NDArray[np.int32], kind_names: tuple[str, ...], parent: IntArray, launch: IntArray, step: IntArray
) -> IntArray:
    """Phase code of every event (index into PHASE_NAMES), -1: unknown; shape (n,).

    Host events: proven, else inherited, else by position: before the last backward work of their step (or in a step without
    backward) they are forward, after it other. Device events follow their launch, else their own proof, else stay unknown.
    """
    proven = _proven(events, kinds, kind_names)
    pipeline = events.lane.where([INPUT_THREADS in lane for lane in events.lane.values])
    proven = np.where(pipeline & (proven < 0), _CODE["input"], proven)
    host = events.coded["device"].codes < 0
    phase = inherit(parent, np.where(host, proven, -1))
    rest = np.flatnonzero(host & (phase < 0) & ~events.role_is("overhead"))
    phase[rest] = _by_position(events, phase, step, rest)
    device = ~host
    phase[device] = np.where(launch[device] >= 0, phase[launch[device]], -1)
    alone = device & ((phase < 0) | (proven == _CODE["comm"]))
    phase[alone] = proven[alone]
    return phase


def _by_position(events: Events, phase: IntArray, step: IntArray, rest: IntArray) -> IntArray:
    """Forward before the end of the step's last backward event, other after it. Steps are numbered from -1 (outside every step)."""
    slots = int(step.max(initial=-1)) + 2
    last = np.full(slots, np.iinfo(np.int64).max)
    backward = np.flatnonzero(phase == _CODE["backward"])
    last[step[backward] + 1] = 0
    np.maximum.at(last, step[backward] + 1, events.end[backward])
    before = events.start[rest] < last[step[rest] + 1]
    return np.where(before, _CODE["forward"], _CODE["other"])
