"""Event columns of the files -> Trace: nesting, launches, kinds, steps, phases, sources, gaps, memory, facts, in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.assemble import Events, assemble
from tracediag.columns import Coded, IntArray, Ints, Raw, code_strings
from tracediag.distinct import combinations, distinct
from tracediag.facts import fact_rows
from tracediag.gaps import OWNERS, Gaps, find_gaps
from tracediag.hostgaps import find_host_gaps
from tracediag.intervals import Spans, merge
from tracediag.kinds import DEVICE_ROLES, KINDS, kind_of, merge_device_kind
from tracediag.links import launches, owners, subtree_sums
from tracediag.nesting import lineage_order, parents, self_times
from tracediag.phases import PHASE_NAMES, phase_codes
from tracediag.sidecar import fill, graph_columns, python_sources, recorded_sources
from tracediag.steps import Steps, find_steps, find_windows, mark_cut, step_of, without_unended
from tracediag.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.database import Cells

__all__ = ["derive"]

KIND_NAMES = tuple(KINDS)
_KIND_CODE = {name: code for code, name in enumerate(KIND_NAMES)}
_POINTWISE = ("elementwise", "reduction", "memset", "activation", "cast", "layout", "random", "norm", "index")


def derive(raws: Sequence[Raw], run: dict[str, Any] | None, inputs: Sequence[dict[str, Any]]) -> Trace:
    """The Trace of one job. Pure arithmetic on columns: the same input gives the same Trace."""
    events = assemble(raws, run)
    on_host = (events.coded["device"].codes < 0) & ~events.role_is(*DEVICE_ROLES)
    nested = np.flatnonzero(on_host & ~events.role_is("overhead"))
    parent = np.full(len(events), -1, np.int64)
    lane = events.lane.codes[nested].astype(np.int64)
    order = lineage_order(lane, events.start[nested], events.end[nested])
    local = parents(lane, events.start[nested], events.end[nested], order)
    parent[nested] = np.where(local >= 0, nested[local], -1)
    launch = launches(events)
    owner = owners(events, parent, launch)
    kinds = _kinds(events, owner)
    steps = without_unended(find_steps(events), (run or {}).get("windows") or ())
    ranks = np.where(events.rank.valid, events.rank.values, -1)
    step_row = step_of(steps, ranks, events.start, launch)
    for counted in (events.role_is("op"), events.role_is(*DEVICE_ROLES)):
        steps = mark_cut(steps, step_row, counted)
    phases = phase_codes(events, kinds, KIND_NAMES, parent, launch, step_row)
    kinds = _optimizer_kinds(events, kinds, phases)
    keys, names = _device_keys(events, ranks)
    gaps = _gaps(events, keys, names, steps, (parent, nested[order]), launch, kinds)
    columns = _columns(events, run, parent, launch, kinds, phases, steps, step_row)
    places = names or tuple((int(rank), "host") for rank in distinct(steps.rank))
    gap_columns = _gap_columns(gaps, places, steps, phases)
    memory = _memory(events, steps)
    facts = fact_rows(raws, run)
    health = tuple(item for raw in raws for item in raw.health)
    return Trace(
        columns, parent, launch, owner, step_row, keys, names, steps, find_windows(events), gaps, gap_columns, memory, facts, run,
        tuple(inputs), health, tuple(raw.facts for raw in raws), _present(columns, facts, memory, names),
    )  # fmt: skip


def _kinds(events: Events, owner: IntArray) -> npt.NDArray[np.int32]:
    """Kind code of every event: by its name, for device ops settled with the operator that launched it."""
    name, role, framework = events.coded["name"], events.coded["role"], events.framework
    combos, index = combinations(name.codes, role.codes, framework.codes)
    table = [kind_of(name.values[n], role.values[r], framework.values[f]) for n, r, f in combos.tolist()]
    own = np.asarray([_KIND_CODE[kind] if kind else -1 for kind in table], np.int32)[index]
    device = np.flatnonzero(events.role_is(*DEVICE_ROLES))
    launcher = np.where(owner[device] >= 0, own[owner[device]], -1)
    pairs, index = combinations(own[device], launcher)
    merged = [merge_device_kind(_kind_name(a), _kind_name(b)) for a, b in pairs.tolist()]
    result = own.copy()
    if len(device):
        result[device] = np.asarray([_KIND_CODE[kind] if kind else -1 for kind in merged], np.int32)[index]
    return result


def _kind_name(code: int) -> str | None:
    return KIND_NAMES[code] if code >= 0 else None


def _optimizer_kinds(events: Events, kinds: npt.NDArray[np.int32], phases: IntArray) -> npt.NDArray[np.int32]:
    """Pointwise work in the optimizer phase is the update itself."""
    pointwise = np.isin(kinds, [_KIND_CODE[name] for name in _POINTWISE]) | (kinds < 0)
    update = (phases == PHASE_NAMES.index("optimizer")) & pointwise & events.role_is("op", "kernel")
    return np.where(update, np.int32(_KIND_CODE["optimizer_update"]), kinds)


def _device_keys(events: Events, ranks: IntArray) -> tuple[IntArray, tuple[tuple[int, str], ...]]:
    """Number the devices that worked, by rank and name; -1 for host rows."""
    work = np.flatnonzero(events.role_is(*DEVICE_ROLES))
    device = events.coded["device"]
    pairs, index = combinations(ranks[work], device.codes[work])
    keys = np.full(len(events), -1, np.int64)
    keys[work] = index
    return keys, tuple((rank, device.values[code] if code >= 0 else "device") for rank, code in pairs.tolist())


def _gaps(
    events: Events, keys: IntArray, names: tuple[tuple[int, str], ...], steps: Steps, lineage: tuple[IntArray, IntArray],
    launch: IntArray, kinds: npt.NDArray[np.int32],
) -> Gaps:  # fmt: skip
    """Gaps of the devices; of the host of each rank where no device took part. lineage: parents, and host rows in lineage order."""
    coded = Coded(kinds, KIND_NAMES)
    windows: dict[int, Spans] = {}
    places = [rank for rank, _ in names] or distinct(steps.rank).tolist()
    for key, rank in enumerate(places):
        mine = steps.rank == rank
        windows[key] = merge(steps.start[mine], steps.end[mine])
    if names:
        return find_gaps(events, keys, lineage, launch, coded, windows)
    return find_host_gaps(events, lineage, coded, windows, places)


def _columns(
    events: Events, run: dict[str, Any] | None, parent: IntArray, launch: IntArray, kinds: npt.NDArray[np.int32], phases: IntArray,
    steps: Steps, step_row: IntArray,
) -> dict[str, Cells]:  # fmt: skip
    """The columns of table `ops`."""
    n = len(events)
    duration = events.end - events.start
    work = events.role_is(*DEVICE_ROLES)
    linked = work & (launch >= 0)
    given = np.zeros(n, np.int64)
    np.add.at(given, launch[linked], duration[linked])
    host = ~work
    extra = graph_columns(events, run)
    columns: dict[str, Cells] = {
        **events.coded,
        **events.ints,
        **{name: column for name, column in extra.items() if name != "source"},
        "op_id": np.arange(n),
        "parent_id": Ints(parent, parent >= 0),
        "kind": Coded(kinds, KIND_NAMES),
        "framework": events.framework,
        "place": Coded(work.astype(np.int32), ("host", "device")),
        "lane": events.lane,
        "rank": events.rank,
        "step": Ints(np.where(step_row >= 0, steps.number[step_row], 0) if len(steps) else np.zeros(n, np.int64), step_row >= 0),
        "phase": Coded(phases.astype(np.int32), PHASE_NAMES),
        "start_ns": events.start,
        "dur_ns": duration,
        "self_ns": _self(events, parent, host),
        "device_ns": Ints(subtree_sums(parent, given), host & bool(work.any())),
        "launch_id": Ints(launch, launch >= 0),
        "source": _sources(events, run, parent, step_row, extra.get("source")),
    }
    return columns


def _self(events: Events, parent: IntArray, host: npt.NDArray[np.bool_]) -> IntArray:
    """Self time: device ops have no children on the device."""
    own = self_times(parent, events.start, events.end)
    return np.where(host, own, events.end - events.start)


def _sources(events: Events, run: dict[str, Any] | None, parent: IntArray, step_row: IntArray, graph: Coded | None) -> Coded:
    """Source line of every op: Python frames in the trace, else the run's record, else the graph's."""
    best = python_sources(events, parent)
    recorded = recorded_sources(events, run, parent, _ordinals(events, step_row)) if run and run.get("sources") else None
    for candidate in (recorded, graph):
        if candidate is not None:
            best = candidate if best is None else fill(best, candidate)
    return best if best is not None else code_strings([None] * len(events))


def _ordinals(events: Events, step_row: IntArray) -> IntArray:
    """Ordinal of each event among those of its name and shapes in its step, by start."""
    name, shape = events.coded["name"].codes, events.coded["in_shapes"].codes
    order = np.lexsort((np.arange(len(events)), events.start, shape, name, step_row))
    first = np.ones(len(order), np.bool_)
    if len(order):
        keys = np.stack([step_row, name, shape])[:, order]
        first[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    index = np.arange(len(order))
    base = np.maximum.accumulate(np.where(first, index, 0)) if len(order) else index
    result = np.empty(len(order), np.int64)
    result[order] = index - base
    return result


def _gap_columns(gaps: Gaps, names: tuple[tuple[int, str], ...], steps: Steps, phases: IntArray) -> dict[str, Cells]:
    """The columns of table `gaps`."""
    ranks = np.asarray([rank for rank, _ in names], np.int64)[gaps.device] if names else np.zeros(0, np.int64)
    row = step_of(steps, ranks, gaps.start, np.full(len(ranks), -1, np.int64)) if len(ranks) else np.zeros(0, np.int64)
    phase = np.where(gaps.host >= 0, phases[gaps.host], -1) if len(phases) else np.zeros(0, np.int64)
    owner_names = np.asarray(OWNERS, dtype=object)[gaps.owner] if len(gaps.owner) else np.zeros(0, object)
    phase = np.where((phase < 0) & (owner_names == "input"), PHASE_NAMES.index("input"), phase)
    return {
        "gap_id": np.arange(len(gaps.start)),
        "device": code_strings([name for _, name in names]).take(gaps.device),
        "rank": Ints(ranks, ranks >= 0),
        "step": Ints(np.where(row >= 0, steps.number[row], 0) if len(row) else row, row >= 0),
        "start_ns": gaps.start,
        "dur_ns": gaps.end - gaps.start,
        "owner": Coded(gaps.owner.astype(np.int32), OWNERS),
        "op_id": Ints(gaps.host, gaps.host >= 0),
        "next_op_id": Ints(gaps.next, gaps.next >= 0),
        "phase": Coded(phase.astype(np.int32), PHASE_NAMES),
    }


def _memory(events: Events, steps: Steps) -> dict[str, Cells] | None:
    """The columns of table `memory`, None when the trace has none."""
    m = events.memory
    if m is None or events.memory_rank is None:
        return None
    ranks = np.where(events.memory_rank.valid, events.memory_rank.values, -1)
    row = step_of(steps, ranks, m.t_ns, np.full(len(ranks), -1, np.int64))
    step = Ints(np.where(row >= 0, steps.number[row], 0) if len(steps) else row, row >= 0)
    return {
        "t_ns": m.t_ns, "rank": events.memory_rank, "step": step, "bytes": m.bytes, "device": m.device, "op": m.op, "shape": m.shape,
        "dtype": m.dtype, "region": m.region, "allocated": m.allocated, "reserved": m.reserved,
    }  # fmt: skip


def _present(
    columns: dict[str, Cells], facts: dict[str, list[dict[str, Any]]], memory: dict[str, Cells] | None, devices: tuple[tuple[int, str], ...]
) -> frozenset[str]:
    """Tables that are there and columns with at least one value, as 'table' and 'table.column'."""
    found = {"ops", "steps", *facts}
    for name, cells in columns.items():
        if _any_value(cells):
            found.add(f"ops.{name}")
    for name, rows in facts.items():
        found |= {f"{name}.{key}" for row in rows for key, value in row.items() if value is not None}
    found.add("gaps")
    if devices:
        found.add("device")
    if memory is not None:
        found |= {"memory", *(f"memory.{name}" for name, cells in memory.items() if _any_value(cells))}
    return frozenset(found)


def _any_value(cells: Cells) -> bool:
    if isinstance(cells, Coded):
        return bool((cells.codes >= 0).any())
    if isinstance(cells, Ints):
        return bool(cells.valid.any())
    return len(cells) > 0
