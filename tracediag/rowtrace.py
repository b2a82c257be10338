"""A Trace from a few rows written by hand: for rule tests and unit tests. Runs the same derivation as a trace from a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import Coded, Ints, MemoryColumns, Raw, code_strings
from tracediag.derive import derive
from tracediag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracediag.database import Cells
    from tracediag.trace import Trace

__all__ = ["trace_from_rows"]

_OP_KEYS = frozenset(
    (
        "name", "role", "label", "kind", "phase", "place", "device", "lane", "rank", "step", "start_ns", "dur_ns", "in_shapes",
        "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes", "bytes", "flops", "source", "sequence", "detail", "launch",
        "repeat", "every_ns", "framework", "step_num",
    )
)  # fmt: skip
_TEXT = ("label", "in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes", "detail")
_NO_FACTS = frozenset(("ops", "steps", "memory", "framework", "run", "flags", "step_series"))
_OVERRIDES = ("kind", "phase", "source")


def trace_from_rows(given: Mapping[str, Any]) -> Trace:
    """Build a Trace from {"ops": [row, ...], "steps": [row, ...], "<fact table>": [row, ...], "framework": "torch"}.

    Op rows: the columns of `ops` that matter, the rest NULL. `name` is needed; dur_ns defaults to 1000, start_ns to the end of the
    previous row on its lane; role to op (kernel when place is device); `launch` is the index of the launching row in the list;
    `repeat` and `every_ns` copy a row; rows of several ranks are put rank behind rank. kind, phase and source are derived as for a
    file unless given. Steps: {step, start_ns, end_ns}, rank where there are several.
    Raises InputError for a key that is no column.
    """
    framework = str(given.get("framework", "torch"))
    rows = _expand(given.get("ops") or [])
    markers = [_marker(step) for step in given.get("steps") or []]
    rows, raws = _by_rank(rows, markers, framework, given.get("memory"))
    run = {"framework": framework, **(given.get("run") or {})}
    run.update({name: list(value) for name, value in given.items() if name not in _NO_FACTS})
    if given.get("flags"):
        run["flags"] = {row["flag"]: row.get("value") for row in given["flags"]}
    if given.get("step_series"):
        run["step_series"], run["batches"] = _series(given["step_series"])
    trace = derive(raws, run, ())
    return replace(trace, columns={**trace.columns, **_overrides(trace, rows)})


def _by_rank(
    rows: list[dict[str, Any]], markers: list[dict[str, Any]], framework: str, memory: Sequence[Mapping[str, Any]] | None
) -> tuple[list[dict[str, Any]], list[Raw]]:
    """All rows in the order of the Trace, rank behind rank with its markers last, and one file a rank; memory goes to the first."""
    ranks = list(dict.fromkeys(row.get("rank") for row in rows)) or [None]
    if len(ranks) == 1:
        markers = [{**row, "rank": ranks[0] if row["rank"] is None else row["rank"]} for row in markers]
    ranks = list(dict.fromkeys([*ranks, *(row["rank"] for row in markers)]))
    launched = {row["launch"] for row in rows if row.get("launch") is not None}
    numbered = [{**row, "id": i if i in launched else row.get("launch")} for i, row in enumerate(rows)]
    order: list[dict[str, Any]] = []
    raws: list[Raw] = []
    for rank in ranks:
        mine = [row for row in [*numbered, *markers] if row.get("rank") == rank]
        order.extend(mine)
        raws.append(_raw(mine, framework, memory if not raws else None))
    return order, raws


def _series(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Any]], list[str]]:
    """Step rows as the columns that run.json keeps."""
    names = {name for row in rows for name in row} - {"step"}
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in sorted(names)}
    batches = sorted({b for b in columns.get("batch", []) if b is not None})
    if "batch" in columns:
        columns["batch"] = [batches.index(b) if b is not None else None for b in columns["batch"]]
    columns.setdefault("profiled", [0] * len(rows))
    return columns, batches


def _expand(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copies of repeated rows, start times filled in; `launch` indexes are moved along for the first copy."""
    clock: dict[Any, int] = {}
    result: list[dict[str, Any]] = []
    index: list[int] = []
    for row in rows:
        unknown = set(row) - _OP_KEYS
        if unknown:
            raise InputError(f"ops row {row.get('name')!r}: no column {sorted(unknown)[0]!r}")
        index.append(len(result))
        lane = row.get("lane", "stream 7" if row.get("place") == "device" else "thread 1")
        place = row.get("rank"), lane
        begin = int(row.get("start_ns", clock.get(place, 0)))
        length = int(row.get("dur_ns", 1000))
        every = int(row.get("every_ns", length))
        for copy in range(int(row.get("repeat", 1))):
            result.append({**row, "lane": lane, "start_ns": begin + copy * every, "dur_ns": length, "copy": copy})
            clock[place] = begin + copy * every + length
    for row in result:
        if row.get("launch") is not None:
            row["launch"] = index[int(row["launch"])] + row["copy"]
    return result


def _marker(step: Mapping[str, Any]) -> dict[str, Any]:
    number = int(step.get("step", 0))
    return {
        "name": f"ProfilerStep#{number}", "role": "annotation", "lane": "steps", "start_ns": int(step["start_ns"]),
        "dur_ns": int(step["end_ns"]) - int(step["start_ns"]), "step_num": number, "rank": step.get("rank"),
    }  # fmt: skip


def _text(rows: list[dict[str, Any]], column: str) -> Coded:
    values = [row.get(column) for row in rows]
    return code_strings([v if v is None or isinstance(v, str) else json.dumps(v, separators=(",", ":")) for v in values])


def _numbers(rows: list[dict[str, Any]], column: str) -> Ints:
    values = [row.get(column) for row in rows]
    return Ints(np.asarray([v or 0 for v in values], np.int64), np.asarray([v is not None for v in values], np.bool_))


def _role(row: dict[str, Any]) -> str:
    return str(row.get("role") or ("kernel" if row.get("place") == "device" else "op"))


def _raw(rows: list[dict[str, Any]], framework: str, memory: Sequence[Mapping[str, Any]] | None) -> Raw:
    texts: dict[str, Any] = {column: _text(rows, column) for column in _TEXT}
    return Raw(
        format="rows", framework=framework, events=len(rows), rank=rows[0].get("rank") if rows else None,
        name=code_strings([row["name"] for row in rows]), role=code_strings([_role(row) for row in rows]),
        device=code_strings([row.get("device") or ("cuda:0" if row.get("place") == "device" else None) for row in rows]),
        lane=code_strings([str(row["lane"]) for row in rows]),
        start_ns=np.asarray([row["start_ns"] for row in rows], np.int64), dur_ns=np.asarray([row["dur_ns"] for row in rows], np.int64),
        correlation=_numbers(rows, "id"), external=Ints.empty(len(rows)), bytes=_numbers(rows, "bytes"), flops=_numbers(rows, "flops"),
        sequence=_numbers(rows, "sequence"), step_num=_numbers(rows, "step_num"), memory=_memory(memory), **texts,
    )  # fmt: skip


def _memory(rows: Sequence[Mapping[str, Any]] | None) -> MemoryColumns | None:
    if not rows:
        return None
    table = [dict(row) for row in rows]
    texts = {column: _text(table, column) for column in ("device", "op", "shape", "dtype", "region")}
    t_ns = np.asarray([row.get("t_ns", 0) for row in table], np.int64)
    sizes = np.asarray([row.get("bytes", 0) for row in table], np.int64)
    return MemoryColumns(t_ns, sizes, **texts, allocated=_numbers(table, "allocated"), reserved=_numbers(table, "reserved"))


def _overrides(trace: Trace, rows: list[dict[str, Any]]) -> dict[str, Cells]:
    """Columns with the values that the rows state instead of the derived ones."""
    result: dict[str, Cells] = {}
    for column in _OVERRIDES:
        if any(column in row for row in rows):
            values = list(trace.strings(column).to_objects())
            for i, row in enumerate(rows):
                values[i] = row.get(column, values[i])
            result[column] = code_strings(values)
    return result
