"""A Trace as Chrome-trace JSON with torch.profiler's keys: Perfetto opens it, and so does our own reader of that format.

Times are exact: microseconds with three decimals as text. Findings stand on a track of their own, which our reader passes over.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import ROLES, Coded, Ints
from tracediag.intervals import clip
from tracediag.kinds import DEVICE_ROLES
from tracediag.readers._kineto_args import DTYPES
from tracediag.readers._kineto_memory import DEVICE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracediag.columns import IntArray
    from tracediag.findings import Finding
    from tracediag.intervals import Spans
    from tracediag.trace import Trace

__all__ = ["FINDINGS", "document", "ranks"]

FINDINGS = "tracediag findings"
"""Process of the track of findings."""
_CATEGORIES = {
    "op": "cpu_op",
    "function": "function",
    "annotation": "user_annotation",
    "python": "python_function",
    "runtime": "cuda_runtime",
    "framework": "framework",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "memset": "gpu_memset",
    "device_annotation": "gpu_user_annotation",
    "device_sync": "cuda_sync",
    "overhead": "overhead",
}
_ON_DEVICE = (*DEVICE_ROLES, "device_annotation", "device_sync")
_TYPE_NAMES = {name: spelling for spelling, name in reversed(DTYPES.items())}
_LISTS = {
    "in_values": "Concrete Inputs",
    "in_strides": "Input Strides",
    "in_shapes": "Input Dims",
    "out_shapes": "Output dims",
    "in_dtypes": "Input type",
    "out_dtypes": "Output type",
}
_NUMBERS = {"sequence": "Sequence number", "flops": "flops", "bytes": "bytes", "step_num": "step_num"}
_STREAM = re.compile(r"gpu (\d+) stream (\S+)$")
_DEVICE = re.compile(r"cuda:(\d+)$")


def ranks(trace: Trace) -> list[int]:
    """Ranks of the trace, one file each; [-1] where it names none."""
    return sorted(set(trace.ranks.tolist())) or [-1]


def document(trace: Trace, rank: int, findings: Sequence[tuple[Finding, Spans]] = ()) -> Iterator[str]:
    """Pieces of the JSON text of one rank.

    findings: each with the intervals that it claims, on the claim time line of the trace (see `Trace.lane_shift`).
    """
    rows = np.flatnonzero(trace.ranks == rank)
    head = {"schemaVersion": 1, "framework": "+".join(trace.frameworks) or "torch", **_facts(trace)}
    if rank >= 0:
        head["distributedInfo"] = {"rank": rank}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ',\n"traceEvents": [\n'
    first = True
    for events in (_names(trace, rows, rank), _ops(trace, rows, rank), _memory(trace, rank), _findings(trace, rank, findings)):
        for event in events:
            yield event if first else ",\n" + event
            first = False
    yield "\n]}\n"


def _facts(trace: Trace) -> dict[str, Any]:
    devices = []
    for row in trace.facts.get("devices", ()):
        match = _DEVICE.match(str(row.get("device")))
        if match and row.get("type") == "gpu":
            capability = str(row.get("compute_capability") or "").split(".")
            known = {"id": int(match[1]), "name": row.get("name"), "totalGlobalMem": row.get("memory_bytes"), "numSms": row.get("sm_count")}
            if len(capability) == 2:
                known |= {"computeMajor": int(capability[0]), "computeMinor": int(capability[1])}
            devices.append({key: value for key, value in known.items() if value is not None})
    return {"deviceProperties": devices} if devices else {}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _us(ns: int) -> str:
    """Microseconds as exact decimal text."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _lanes(trace: Trace, rows: IntArray, rank: int) -> list[str]:
    """Names of the lanes without the rank that `assemble` put before them."""
    lane = trace.strings("lane")
    prefix = f"rank {rank} "
    used = np.unique(lane.codes[rows]).tolist()
    strip = bool(used) and len(ranks(trace)) > 1 and all(lane.values[code].startswith(prefix) for code in used)
    return [value.removeprefix(prefix) if strip else value for value in lane.values]


def _place(lane: str, device: str | None, on_device: bool) -> tuple[str, str]:
    """('"pid":...,"tid":...', args): where the event stands, such that the reader makes the same lane and device of it."""
    if not on_device:
        process, _, thread = lane.partition("/")
        return f'"pid":{_number(process)},"tid":{_number(thread)}', ""
    stream, number = _STREAM.match(lane), _DEVICE.match(device or "")
    if stream and number and stream[1] == number[1]:
        return f'"pid":{number[1]},"tid":{_number(stream[2])}', f'"device":{number[1]},"stream":{_number(stream[2])}'
    return f'"pid":{_text(device or "")},"tid":{_text(lane)}', f'"lane":{_text(lane)}'


def _number(text: str) -> str:
    """A decimal number as it is, anything else as a JSON string."""
    return text if text.isdecimal() and text.isascii() and str(int(text)) == text and len(text) < 19 else _text(text)


def _names(trace: Trace, rows: IntArray, rank: int) -> Iterator[str]:
    """Names of processes and threads, for the viewer."""
    lanes = _lanes(trace, rows, rank)
    on_device = trace.strings("role").isin(_ON_DEVICE)
    lane, device = trace.strings("lane"), trace.strings("device")
    seen: dict[str, None] = {}
    for code, at, gpu in sorted({(int(lane.codes[i]), int(device.codes[i]), bool(on_device[i])) for i in _examples(lane, rows)}):
        name = device.values[at] if at >= 0 else None
        place, _ = _place(lanes[code], name, gpu)
        process = place.partition(',"tid"')[0]
        if process not in seen:
            seen[process] = None
            title = _text({"name": f"device {name}" if gpu else f"host {lanes[code].partition('/')[0]}"})
            yield f'{{"ph":"M","name":"process_name",{place},"ts":0,"args":{title}}}'
        title = _text({"name": lanes[code] if gpu else f"thread {lanes[code]}"})
        yield f'{{"ph":"M","name":"thread_name",{place},"ts":0,"args":{title}}}'


def _examples(lane: Coded, rows: IntArray) -> list[int]:
    """One row of each lane."""
    return rows[np.unique(lane.codes[rows], return_index=True)[1]].tolist() if len(rows) else []


def _ops(trace: Trace, rows: IntArray, rank: int) -> Iterator[str]:
    """One complete event an op, in the order of the table."""
    role, name, lane, device = (trace.strings(column) for column in ("role", "name", "lane", "device"))
    lanes = _lanes(trace, rows, rank)
    gpu = np.append(np.isin(role.values, _ON_DEVICE), False)
    begin = [f'{{"ph":"X","cat":"{_CATEGORIES.get(value, value)}","name":' for value in role.values]
    names = [_text(value) for value in name.values]
    places: dict[tuple[int, int, bool], tuple[str, str]] = {}
    arguments = _arguments(trace, rows, role)
    start, dur = trace.start[rows].tolist(), trace.col("dur_ns")[rows].tolist()
    codes = (column.codes[rows].tolist() for column in (role, name, lane, device))
    for i, (r, n, at, d) in enumerate(zip(*codes, strict=True)):
        key = (at, d, bool(gpu[r]))
        if key not in places:
            places[key] = _place(lanes[at], device.values[d] if d >= 0 else None, key[2])
        where, more = places[key]
        args = ",".join(part for part in (*arguments[i], more) if part)
        yield f'{begin[r]}{names[n]},{where},"ts":{_us(start[i])},"dur":{_us(dur[i])},"args":{{{args}}}}}'


def _arguments(trace: Trace, rows: IntArray, role: Coded) -> list[tuple[str, ...]]:
    """The args of each row as pieces of JSON, empty where it has none."""
    parts = [_links(trace, rows, role)]
    for column, key in _LISTS.items():
        parts.append(_coded(trace, column, rows, key, _types if column.endswith("dtypes") else str))
    for column, key in _NUMBERS.items():
        cells = trace.columns.get(column)
        if isinstance(cells, Ints):
            values = zip(cells.values[rows].tolist(), cells.valid[rows].tolist(), strict=True)
            parts.append([f'"{key}":{value}' if valid else "" for value, valid in values])
    parts.append(_coded(trace, "label", rows, "label", _text))
    parts.append(_coded(trace, "source", rows, "source", _text))
    parts.append(_coded(trace, "detail", rows, None, lambda text: text[1:-1]))
    return list(zip(*parts, strict=True))


def _coded(trace: Trace, column: str, rows: IntArray, key: str | None, spell: Any) -> list[str]:
    cells = trace.strings(column)
    begin = f'"{key}":' if key else ""
    table = [begin + spell(value) for value in cells.values] + [""]
    return [table[code] for code in cells.codes[rows].tolist()]


def _types(text: str) -> str:
    """Canonical dtypes as torch.profiler spells them."""
    return _text([_TYPE_NAMES.get(name, name) if name else "" for name in json.loads(text)])


def _links(trace: Trace, rows: IntArray, role: Coded) -> list[str]:
    """Ids that join a device op to its launch and a call to its operator: the row number + 1 of the one that it belongs to.

    A launch by a call of the runtime has a correlation id, one by an operator itself its external id, as the reader expects.
    """
    runtime, host = role.isin(["runtime"]), role.isin(["op", "framework", "function"])
    launched = np.zeros(len(trace), np.bool_)
    launched[trace.launch[trace.launch >= 0]] = True
    by_call = np.append(runtime, False)[trace.launch]
    external = np.where(host, np.arange(len(trace)), np.where(runtime, trace.owner, np.where(by_call, -1, trace.launch)))
    correlation = np.where(runtime & launched, np.arange(len(trace)), np.where(by_call, trace.launch, -1))
    result = []
    for outer, call in zip(external[rows].tolist(), correlation[rows].tolist(), strict=True):
        first = f'"External id":{outer + 1}' if outer >= 0 else ""
        second = f'"correlation":{call + 1}' if call >= 0 else ""
        result.append(f"{first},{second}" if first and second else first or second)
    return result


def _memory(trace: Trace, rank: int) -> Iterator[str]:
    """[memory] instants, for devices that torch knows."""
    columns: Mapping[str, Any] = trace.memory_columns or {}
    if not columns:
        return
    numbers = {name: number for number, name in reversed(DEVICE_TYPES.items())}
    of_rank = np.where(columns["rank"].valid, columns["rank"].values, -1) == rank
    device, allocated, reserved = columns["device"], columns["allocated"], columns["reserved"]
    for i in np.flatnonzero(of_rank & (device.codes >= 0)).tolist():
        kind, _, number = device.values[device.codes[i]].partition(":")
        if kind not in numbers:
            continue
        args = {"Bytes": int(columns["bytes"][i]), "Device Type": numbers[kind], "Device Id": int(number) if number.isdecimal() else -1}
        for key, cells in (("Total Allocated", allocated), ("Total Reserved", reserved)):
            if cells.valid[i]:
                args[key] = int(cells.values[i])
        time = _us(int(columns["t_ns"][i]))
        yield f'{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":0,"tid":0,"ts":{time},"args":{_text(args)}}}'


def _findings(trace: Trace, rank: int, findings: Sequence[tuple[Finding, Spans]]) -> Iterator[str]:
    """One lane a finding, its claimed intervals as slices; all steps for one that is priced by steps measured without the profiler."""
    shift = int(trace.lane_shift(np.asarray([rank]))[0])
    length = int(trace.end.max(initial=0)) + 1
    for number, (finding, spans) in enumerate(findings, 1):
        own = clip(spans if len(spans[0]) else trace.step_intervals(), shift, shift + length)
        where = f'"pid":"{FINDINGS}","tid":{_text(f"{number} {finding.rule}")}'
        facts: dict[str, Any] = {"rule": finding.rule, "code": finding.code, "title": finding.title, "severity": finding.severity}
        facts |= {"confidence": finding.confidence, "share": finding.share, "message": finding.message}
        facts |= {} if len(spans[0]) else {"owns": "a part of every step, measured without the profiler"}
        for start, end in zip((own[0] - shift).tolist(), (own[1] - shift).tolist(), strict=True):
            time = f'"ts":{_us(start)},"dur":{_us(end - start)}'
            yield f'{{"ph":"X","cat":"tracediag_finding","name":{_text(finding.title)},{where},{time},"args":{_text(facts)}}}'


assert set(_CATEGORIES) == set(ROLES)
