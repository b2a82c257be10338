"""Device work -> the call that launched it -> the operator that asked for it, by correlation ids and nesting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.kinds import DEVICE_ROLES
from tracediag.nesting import inherit

if TYPE_CHECKING:
    from tracediag.assemble import Events
    from tracediag.columns import IntArray, Ints

__all__ = ["launches", "owners", "subtree_sums"]

DEEPEST = 1000
"""Levels that operators of a real program do not reach."""


def _keys(events: Events, ids: Ints, rows: IntArray) -> IntArray:
    """(file, id) packed to one int64; ids of real traces fit in 48 bits, longer ones keep their low bits."""
    return (events.file[rows] << 48) | (ids.values[rows] & ((1 << 48) - 1))


def _join(events: Events, ids: Ints, rows: IntArray, targets: IntArray) -> IntArray:
    """For each of `rows` the last of `targets` with the same id in the same file, -1 where there is none."""
    result = np.full(len(rows), -1, np.int64)
    targets = targets[ids.valid[targets]]
    usable = np.flatnonzero(ids.valid[rows])
    if len(targets) == 0 or len(usable) == 0:
        return result
    keys = _keys(events, ids, targets)
    order = np.argsort(keys, kind="stable")
    wanted = _keys(events, ids, rows[usable])
    at = np.searchsorted(keys[order], wanted, "right") - 1
    hit = (at >= 0) & (keys[order][at] == wanted)
    result[usable[hit]] = targets[order[at[hit]]]
    return result


def launches(events: Events) -> IntArray:
    """Row of the host call that launched each device op, -1 where the trace does not tell; shape (n,).

    The runtime call with the same correlation id; else, where a format has none, the host op with the same external id.
    """
    result = np.full(len(events), -1, np.int64)
    device = np.flatnonzero(events.role_is(*DEVICE_ROLES))
    runtime = np.flatnonzero(events.role_is("runtime"))
    found = _join(events, events.ints["correlation"], device, runtime)
    missing = np.flatnonzero(found < 0)
    host = np.flatnonzero(events.role_is("op", "framework", "function"))
    if len(missing):
        found[missing] = _join(events, events.ints["correlation"], device[missing], host)
    missing = np.flatnonzero(found < 0)
    if len(missing):
        found[missing] = _join(events, events.ints["external"], device[missing], host)
    result[device] = found
    return result


def owners(events: Events, parent: IntArray, launch: IntArray) -> IntArray:
    """Innermost operator that each row belongs to: itself, an enclosing one, or for a device op that of its launch; -1: none."""
    is_op = events.role_is("op")
    own = inherit(parent, np.where(is_op, np.arange(len(events)), -1))
    runtime = np.flatnonzero(events.role_is("runtime") & (own < 0))
    if len(runtime):
        own[runtime] = _join(events, events.ints["external"], runtime, np.flatnonzero(is_op))
    linked = launch >= 0
    own[linked] = own[launch[linked]]
    return own


def subtree_sums(parent: IntArray, value: npt.NDArray[np.int64]) -> IntArray:
    """Sum of `value` over each row and all rows below it; shape (n,). Works level by level from the leaves."""
    level = _depths(parent)
    order = np.argsort(level, kind="stable")
    if int(level.max(initial=0)) > DEEPEST:
        return _sums_row_by_row(parent, value, order)
    total = value.astype(np.int64).copy()
    cuts = np.searchsorted(level[order], np.arange(1, int(level.max(initial=0)) + 2))
    for depth in range(len(cuts) - 1, 0, -1):
        rows = order[cuts[depth - 1] : cuts[depth]]
        if len(rows):
            np.add.at(total, parent[rows], total[rows])
    return total


def _sums_row_by_row(parent: IntArray, value: npt.NDArray[np.int64], order: IntArray) -> IntArray:
    """The same for rows nested so deep that a level holds a row or two. order: outer rows before inner ones."""
    total, above = value.tolist(), parent.tolist()
    for row in order[::-1].tolist():
        if above[row] >= 0:
            total[above[row]] += total[row]
    return np.asarray(total, np.int64)


def _depths(parent: IntArray) -> IntArray:
    """Number of enclosing rows of each row, by pointer doubling."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    while True:
        need = np.flatnonzero(jump >= 0)
        if len(need) == 0:
            return depth
        up = jump[need]
        gained, further = depth[up], jump[up]
        depth[need] += gained
        jump[need] = further
