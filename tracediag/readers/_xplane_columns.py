"""Collect the events of xplanes into the columns of `Raw`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import ROLES, Coded, Health, IntArray, Ints, Raw
from tracediag.readers._coding import NONE, Codes, Integers, joined_ints, positive
from tracediag.readers._wire import WireError
from tracediag.readers._xplane_context import ROLE_CODE, PlaneContext
from tracediag.readers._xplane_events import Events, decode_events
from tracediag.readers._xplane_memory import MemoryRows
from tracediag.readers._xplane_names import copy_bytes, copy_details, input_dtypes, input_shapes, kernel_details, tf_op_parts
from tracediag.readers._xplane_planes import device_row, place_of, used_lines
from tracediag.readers._xplane_text import Int32Array, Texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.readers._words import Words
    from tracediag.readers._xplane_space import Plane

__all__ = ["XplaneColumns"]

CHUNK = 1 << 17
_DETAIL = (
    "tf_function_call",
    "tracing_count",
    "hlo_module",
    "hlo_op",
    "kernel_details",
    "memcpy_details",
    "eager_op",
    "hlo_category",
    "op_type",
)
_WANTED = frozenset((
    *_DETAIL, "correlation_id", "step_num", "_r", "shape", "tf_op", "annotation", "name", "allocation_bytes", "bytes_allocated",
    "allocator_name", "data_type", "region_type",
))  # fmt: skip
"""Stats of events that something is made of."""
_TENSORFLOW = ("EagerLocalExecute", "EagerExecute", "ExecutorState", "FunctionRun")
_SUFFIX = re.compile(r"(?:\.\d+)+$")
_NUMBERS = ("correlation", "bytes", "flops", "step_num")
_STRINGS = ("name", "label", "device", "lane", "in_shapes", "in_dtypes", "detail")
_ABSOLUTE = 10**18  # ns since 1970; a smaller time counts from the start of the profile


class XplaneColumns:
    """Growing columns of one file: `add` takes planes, `raw` makes the result."""

    def __init__(self) -> None:
        self.events = self.rows = self.lost = self.bad = self.nameless = 0
        self.devices: list[dict[str, Any]] = []
        self.text = Texts()  # every text of a stat
        self.codes: dict[str, Codes] = {column: Codes() for column in ("name", "label", "device", "lane", "detail")}
        self.codes |= {"in_shapes": Codes(input_shapes), "in_dtypes": Codes(input_dtypes)}
        self.codes["label"].convert = lambda label: label or None
        self._numbers = {column: Integers() for column in _NUMBERS}
        self._arrays: dict[str, list[Any]] = {"role": [], "start": [], "dur": []}
        self._memory = MemoryRows()
        self._lanes: set[str] = set()
        self.stat_names: set[str] = set()

    def add(self, plane: Plane, text: Words) -> None:
        """Append the events of a plane. text: the file with PAD zero bytes behind it."""
        self.events += sum(len(line.starts) for line in plane.lines)
        self.stat_names |= set(plane.stat_names.values())
        place = place_of(plane)
        if place is None:
            return
        if place.kind != "host":
            self.devices.append(device_row(plane, place))
        used = [u for u in used_lines(plane, place, self._lanes) if u.line.starts]
        if not used:
            return
        context = PlaneContext(self.codes, self.text, plane, place, used, _WANTED)
        line = np.repeat(np.arange(len(used)), [len(u.line.starts) for u in used])
        starts = np.concatenate([np.array(u.line.starts, np.int64) for u in used])
        ends = np.concatenate([np.array(u.line.ends, np.int64) for u in used])
        for at in range(0, len(line), CHUNK):
            part = slice(at, at + CHUNK)
            try:
                self._chunk(context, decode_events(text, starts[part], ends[part], context.wanted), line[part])
            except WireError:
                self.lost += len(line[part])

    def _chunk(self, context: PlaneContext, events: Events, line: IntArray) -> None:
        index = context.index(events.meta)
        start = context.stamp[line] + events.offset_ps // 1000
        dur = context.stamp[line] + (events.offset_ps + events.dur_ps) // 1000 - start
        moved = np.flatnonzero(context.memory[index])
        if len(moved):
            self._memory.add(moved, start, context.memory[index] < 0, events.stats, context.keys, context.names)
        row = {
            "role": np.where(context.line_role[line] >= 0, context.line_role[line], context.role[index]),
            "name": context.name[index],
            "label": context.label[index],
            "lane": context.lane[line],
            "start": start,
            "dur": dur,
            "flops": positive(context.flops[index], 0),
            "category": context.category[index],
        }
        self._stats(context, events, row)
        if context.steps.any():
            row["step_num"] = np.where(context.steps[line], context.step_number[index], row["step_num"])
        row["bytes"] = np.where(row["bytes"] == NONE, context.bytes[index], row["bytes"])
        if not context.whole:  # metadata stand behind the events, so that a cut plane loses names first
            nameless = index == len(context.ids)
            row["role"][nameless] = -1
            self.nameless += int(nameless.sum())
        usable = (events.dur_ps >= 0) & (events.offset_ps >= 0)
        self.bad += int(((row["role"] >= 0) & ~usable).sum())
        self._keep(context, row, np.flatnonzero((row["role"] >= 0) & events.timed & usable))

    def _stats(self, context: PlaneContext, events: Events, row: dict[str, Any]) -> None:
        """Everything that depends on the stats of the single event."""
        stats, keys = events.stats, context.keys
        text = {name: stats.codes(keys.get(name), self.text, context.names) for name in _DETAIL}
        row["correlation"] = positive(stats.numbers(keys.get("correlation_id"), NONE))
        row["step_num"] = np.full(stats.n, NONE, np.int64)
        shape = stats.codes(keys.get("shape"), self.text, context.names)
        for column in ("in_shapes", "in_dtypes"):
            row[column] = self._into(column, "shape", shape, lambda t: t if t.startswith("(") else None)
        row["bytes"] = self.text.numbers(text["memcpy_details"], "bytes", copy_bytes)
        if context.place.kind == "host":
            self._host(context, events, row, text)
        else:
            self._device(context, events, row, text)
            text["hlo_category"] = np.where(row["category"] == self.text[""], -1, row["category"])
        row["detail"] = self.text.combine(text, _detail_json, self.codes["detail"].table)

    def _host(self, context: PlaneContext, events: Events, row: dict[str, Any], text: dict[str, Int32Array]) -> None:
        stats, keys, role = events.stats, context.keys, row["role"]
        framework = role == ROLE_CODE["framework"]
        role[framework & stats.has(keys.get("correlation_id"))] = ROLE_CODE["runtime"]
        role[framework & (text["tf_function_call"] >= 0)] = ROLE_CODE["function"]
        step = framework & stats.has(keys.get("step_num")) & stats.has(keys.get("_r"))
        role[step] = ROLE_CODE["annotation"]
        row["step_num"][step] = stats.numbers(keys.get("step_num"), NONE)[step]
        hlo = (role >= 0) & (text["hlo_op"] >= 0)
        role[hlo] = ROLE_CODE["op"]
        row["name"] = np.where(hlo, self._into("name", "hlo_op", text["hlo_op"], lambda t: _SUFFIX.sub("", t)), row["name"])
        row["label"] = np.where(hlo, self._into("label", "hlo_op", text["hlo_op"], lambda t: t), row["label"])
        text["hlo_op"] = np.full(stats.n, -1, np.int32)  # it is the label already

    def _device(self, context: PlaneContext, events: Events, row: dict[str, Any], text: dict[str, Int32Array]) -> None:
        stats, keys = events.stats, context.keys
        given = row["label"] != self.codes["label"].table[None]
        for stat in ("tf_op", "annotation", "name", "hlo_op"):  # the first that says something
            codes = stats.codes(keys.get(stat), self.text, context.names)
            label = self._into("label", "device", codes, _device_label)
            row["label"] = np.where(given | (label < 0), row["label"], label)
            given |= label >= 0
            kind = self.text.translate(codes, "type", lambda t: tf_op_parts(t.split("#", 1)[0])[1], self.text)
            text["op_type"] = np.where(text["op_type"] < 0, kind, text["op_type"])

    def _into(self, column: str, question: str, codes: Int32Array, change: Callable[[str], str | None]) -> Int32Array:
        return self.text.translate(codes, (column, question), change, self.codes[column].table)

    def _keep(self, context: PlaneContext, row: dict[str, Any], index: IntArray) -> None:
        """Append the rows at `index`."""
        self.rows += len(index)
        for column, parts in self._arrays.items():
            parts.append(row[column][index])
        for column, integers in self._numbers.items():
            integers.add(row[column][index])
        device = context.place.device
        row["device"] = np.full(len(row["role"]), self.codes["device"].table[device] if device else -1, np.int32)
        for column in _STRINGS:
            self.codes[column].add_codes(row[column][index])

    def raw(self, form: str, facts: dict[str, Any], health: tuple[Health, ...]) -> Raw:
        """The columns; times are moved by facts["base_time_ns"] when they count from the start of the profile."""
        start = joined_ints(self._arrays["start"])
        base = facts.get("base_time_ns", 0)
        shift = base if len(start) and start.max() < _ABSOLUTE else 0
        n = len(start)
        nothing = Coded(np.full(n, -1, np.int32), ())
        role = self._roles(start)
        return Raw(
            format=form,
            framework=self._framework(),
            events=self.events,
            rank=None,
            role=Coded(role.astype(np.int32), ROLES),
            start_ns=start + shift,
            dur_ns=joined_ints(self._arrays["dur"]),
            external=Ints.empty(n),
            sequence=Ints.empty(n),
            in_strides=nothing,
            in_values=nothing,
            out_shapes=nothing,
            out_dtypes=nothing,
            memory=self._memory.columns(shift),
            facts=facts,
            health=health,
            **self._rest(),
        )

    def _roles(self, start: IntArray) -> npt.NDArray[np.int8]:
        """Roles; where the host marks no step, those that the first device numbers are the steps."""
        role = np.concatenate(self._arrays["role"]) if len(start) else np.zeros(0, np.int8)
        numbered = self._numbers["step_num"].ints().valid
        marks = np.flatnonzero(numbered & (role == ROLE_CODE["device_annotation"]))
        if len(marks) and not (numbered & (role == ROLE_CODE["annotation"])).any():
            lane = self.codes["lane"].coded().codes
            role[marks[lane[marks] == lane[marks[0]]]] = ROLE_CODE["annotation"]
        return role

    def _rest(self) -> dict[str, Any]:
        columns: dict[str, Any] = {column: self.codes[column].coded() for column in _STRINGS}
        return columns | {column: integers.ints() for column, integers in self._numbers.items()}

    def _framework(self) -> str:
        """jax when its calls are there and TensorFlow's are not."""
        names = self.codes["name"].table
        tensorflow = "tf_function_call" in self.stat_names or any(n.startswith(_TENSORFLOW) for n in names)
        jax = any(n.startswith(("PjitFunction", "PjRt", "jit_", "Pjit")) for n in names) or any("jit(" in t for t in self.text)
        return "jax" if jax and not tensorflow else "tensorflow"


def _device_label(text: str) -> str | None:
    """'scope/node:OpType#shape=...#' -> 'scope/node'; None for what names no op."""
    text = text.split("#", 1)[0].rstrip(":")
    return None if text in ("", "XlaModule") else tf_op_parts(text)[0] or text


def _detail_json(texts: dict[str, str]) -> str | None:
    found: dict[str, Any] = {}
    for name, text in texts.items():
        if name == "kernel_details":
            found.update(kernel_details(text))
        elif name == "memcpy_details":
            found.update(copy_details(text))
        elif text:
            found[name] = int(text) if name == "tracing_count" and text.isdecimal() and len(text) < 19 else text
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if found else None
