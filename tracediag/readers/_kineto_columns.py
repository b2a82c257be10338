"""Collect Kineto events, one object an event or already as arrays, into columns; no object is kept per event."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from tracediag.columns import ROLES, Coded, Health, IntArray, Ints, Raw
from tracediag.readers._chrome import args_of
from tracediag.readers._coding import NONE, Codes, Dictionary, Growing, Integers, Keep, nanoseconds
from tracediag.readers._jsonrepair import UNREADABLE
from tracediag.readers._kineto_args import DeviceArgs, OpArgs, RuntimeArgs, decode_args, dtype_list, json_text, string
from tracediag.readers._kineto_groups import Group, detail_text, device_group, device_lanes, lane_text, op_group, runtime_group
from tracediag.readers._kineto_memory import MemoryRows
from tracediag.readers._kineto_roles import MEMORY, METADATA, final_roles, role_of
from tracediag.readers._kineto_vendors import is_special, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.readers._chrome import Event

__all__ = ["DEVICE", "OPS", "RUNTIME", "KinetoColumns", "Part"]

OPS = np.isin(ROLES, ("op", "function", "annotation", "framework"))
DEVICE = np.isin(ROLES, ("kernel", "copy", "memset", "device_annotation", "device_sync"))
RUNTIME = np.isin(ROLES, ("runtime",))
"""Roles whose args are read as those of host ops, of device work and of runtime calls."""
_FRAMEWORK = ROLES.index("framework")
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_NUMBERS = ("external", "correlation", "sequence", "flops", "bytes", "step_num")
_STRINGS = ("in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes")
_KIND, _LANE, _NAME = attrgetter("ph", "cat"), attrgetter("pid", "tid"), attrgetter("name")
_LIMIT = 1 << 62
_ABSOLUTE = 10**18  # ns since 1970; a smaller time counts from baseTimeNanoseconds


@dataclass
class Part:
    """Columns of n rows, as codes of the tables of `KinetoColumns`; columns that are not in `numbers` and `strings` hold nothing."""

    n: int
    role: npt.NDArray[np.int8]
    start: IntArray
    dur: IntArray
    name: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int32]
    numbers: dict[str, IntArray] = field(default_factory=dict)
    strings: dict[str, npt.NDArray[np.int32]] = field(default_factory=dict)
    detail: npt.NDArray[np.int32] = field(init=False)
    device: npt.NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        self.detail, self.device = np.full(self.n, -1, np.int32), np.full(self.n, -1, np.int32)

    def number(self, column: str) -> IntArray:
        """A column of numbers to write to."""
        return self.numbers.setdefault(column, np.full(self.n, NONE)) if column not in self.numbers else self.numbers[column]

    def string(self, column: str) -> npt.NDArray[np.int32]:
        """A column of codes to write to."""
        return self.strings.setdefault(column, np.full(self.n, -1, np.int32)) if column not in self.strings else self.strings[column]

    def take(self, keep: npt.NDArray[np.bool_]) -> Part:
        """The rows that are kept."""
        result = Part(int(keep.sum()), self.role[keep], self.start[keep], self.dur[keep], self.name[keep], self.lane[keep])
        result.numbers = {column: values[keep] for column, values in self.numbers.items()}
        result.strings = {column: codes[keep] for column, codes in self.strings.items()}
        result.detail, result.device = self.detail[keep], self.device[keep]
        return result


class KinetoColumns:
    """Growing columns of one trace: `add` takes events, `append` rows, `raw` makes the result."""

    def __init__(self) -> None:
        self.events = 0
        self.accelerator = "cuda"  # what devices are called; known at the end of the file
        self.lane_names: dict[str, str] = {}
        self.memory = MemoryRows()
        self._name, self._lane, self._device = Codes(), Codes(_lane), Codes()
        self.strings = {column: Codes(dtype_list if column.endswith("dtypes") else json_text) for column in _STRINGS}
        self.strings["label"] = Codes(string)
        self.detail = Codes(detail_text)
        self._numbers = {column: Integers() for column in _NUMBERS}
        self._starts, self._durs = Growing(np.int64), Growing(np.int64)
        self._roles = Growing(np.int8)
        self._order = Growing(np.int64)  # number of the event of each row
        self._kinds = Dictionary()  # (ph, cat) -> code
        self._kind_roles: list[int] = []  # code -> role
        self._special: list[bool] = []  # code -> whether its role depends on the event
        self.nameless = 0  # events without a category whose names tell nothing either
        self.counts = np.zeros(0, np.int64)  # events by kind
        self.labels: dict[str, None] = {}  # of processes, in order

    def add(self, events: Sequence[Event], order: IntArray | None = None) -> None:
        """Append a batch. order: number of each event in the file, where it is not the next ones that come, shape (n,)."""
        order = np.arange(len(events)) + self.events if order is None else order
        self.events += len(events)
        roles = self._role_codes(events)
        for index in np.flatnonzero(roles == METADATA).tolist():
            self._metadata(events[index])
        instants = np.flatnonzero(roles == MEMORY)
        if len(instants):
            self.memory.add([events[i] for i in instants.tolist()])
        kept = np.flatnonzero(roles >= 0)
        if len(kept):
            self.append(self._part([events[i] for i in kept.tolist()], roles[kept]), order[kept])

    def _role_codes(self, events: Sequence[Event]) -> npt.NDArray[np.int8]:
        codes = self._kinds.codes(map(_KIND, events), len(events))
        self._know_kinds()
        self.count_kinds(codes)
        roles = np.asarray(self._kind_roles, np.int8)[codes]
        if any(self._special):
            for i in np.flatnonzero(np.asarray(self._special)[codes]).tolist():
                roles[i] = settle(events[i])
                self.nameless += int(roles[i] == _FRAMEWORK)
        return roles

    def _know_kinds(self) -> None:
        for ph, cat in list(self._kinds)[len(self._kind_roles) :]:
            self._kind_roles.append(role_of(ph, cat))
            self._special.append(is_special(ph, cat))

    def count_kinds(self, codes: npt.NDArray[Any]) -> None:
        """Count events by the codes of their kinds."""
        counts = np.bincount(codes, minlength=len(self._kinds))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def header_codes(self, event: Event) -> tuple[int, int, int]:
        """Codes of kind, name and lane of the events that begin as this one does."""
        kind = self._kinds[_KIND(event)]
        self._know_kinds()
        return kind, self._name.table[event.name], self._lane.table[_LANE(event)]

    def lane_codes(self, key: tuple[Any, Any, Any]) -> tuple[int, int]:
        """Codes of lane and device of device work. key: see `device_lanes`."""
        return self._lane.table[key], self._device.table[key[1]]

    def categories(self) -> dict[str, int]:
        """Complete events ("ph": "X") by category."""
        return {cat: int(n) for (ph, cat), n in zip(self._kinds, self.counts.tolist(), strict=True) if ph == "X"}

    def _metadata(self, event: Event) -> None:
        if event.name == "process_labels":
            self.labels[str(args_of(event).get("labels", ""))] = None
        if event.name == "thread_name":
            try:
                self.lane_names[lane_text((event.pid, event.tid))] = str(msgspec.json.decode(event.args)["name"])
            except (*UNREADABLE, LookupError, TypeError):
                return  # a lane without a name is no loss

    def _part(self, rows: Sequence[Event], roles: npt.NDArray[np.int8]) -> Part:
        """The columns of events of one object each."""
        raws = [e.args for e in rows]
        part = Part(
            len(rows), roles, nanoseconds([e.ts for e in rows]), nanoseconds([e.dur for e in rows]),
            self._name.table.codes(map(_NAME, rows), len(rows)), self._lane.table.codes(map(_LANE, rows), len(rows)),
        )  # fmt: skip
        kinds: tuple[tuple[Any, Any, Any], ...] = (
            (OPS, OpArgs, op_group), (RUNTIME, RuntimeArgs, runtime_group), (DEVICE, DeviceArgs, device_group),
        )  # fmt: skip
        for flags, kind, group_of in kinds:
            index = np.flatnonzero(flags[roles])
            own = [raws[i] for i in index.tolist()]
            args = decode_args(kind, own)
            self._write(part, index, group_of(args, own))
            if kind is DeviceArgs:
                lanes = device_lanes(args, [_LANE(rows[i]) for i in index.tolist()])
                part.lane[index] = self._lane.table.codes(lanes, len(index))
                part.device[index] = self._device.table.codes((lane[1] for lane in lanes), len(index))
        return part

    def _write(self, part: Part, index: npt.NDArray[Any], group: Group) -> None:
        """Write what the args of a group say to the rows at `index`."""
        for column, values in group.numbers.items():
            part.number(column)[index] = values
        for column, texts in group.strings.items():
            if texts is not None:
                part.string(column)[index] = self.strings[column].table.codes(texts, len(index))
        if group.details:
            part.detail[index] = self.detail.table.codes(group.details, len(index))

    def append(self, part: Part, order: IntArray) -> None:
        """Append rows. order: number of the event of each."""
        self._order.extend(order)
        self._roles.extend(part.role)
        self._starts.extend(part.start)
        self._durs.extend(part.dur)
        self._name.add_codes(part.name)
        self._lane.add_codes(part.lane)
        self._device.add_codes(part.device)
        self.detail.add_codes(part.detail)
        for column, codes in self.strings.items():
            codes.add_codes(part.strings[column]) if column in part.strings else codes.add_null(part.n)
        for column, integers in self._numbers.items():
            integers.add(part.numbers[column]) if column in part.numbers else integers.add_null(part.n)

    def bad(self) -> int:
        """How many rows have an unusable start or duration."""
        return int((~self._usable()).sum())

    def _usable(self) -> npt.NDArray[np.bool_]:
        start, dur = self._starts.cells, self._durs.cells
        usable: npt.NDArray[np.bool_] = (np.abs(start) < _LIMIT) & (start != NONE) & (dur >= 0) & (dur < _LIMIT)
        return usable

    def raw(self, form: str, rank: int | None, facts: dict[str, Any], health: tuple[Health, ...]) -> Raw:
        """The columns, in the order of the file, without the events whose times are unusable."""
        keep = self._kept()
        self._device.convert = partial(_device_name, self.accelerator)
        start = self._starts.cells[keep]
        base = facts.get("base_time_ns", 0)
        shift = base if 0 < base < _LIMIT and start.max(initial=0) < _ABSOLUTE else 0
        name = self._name.coded(keep, last=True)
        roles = final_roles(self._roles.cells[keep], name)
        return Raw(
            format=form,
            framework=facts.get("framework", "torch"),
            events=self.events,
            rank=rank,
            name=name,
            role=Coded(roles, ROLES),
            device=self._device.coded(keep, last=True),
            lane=self._lane.coded(keep, last=True),
            start_ns=start + shift,
            dur_ns=self._durs.cells[keep],
            step_num=_step_numbers(name, roles == ROLES.index("annotation"), self._numbers["step_num"].ints(keep, last=True)),
            detail=self.detail.coded(keep, last=True),
            memory=self.memory.columns(shift),
            facts=facts,
            health=health,
            **self._rest(keep),
        )

    def _kept(self) -> Keep:
        """Which rows are kept: all (a slice), a mask, or where they came out of order their places."""
        usable = self._usable()
        order = self._order.cells
        if (order[1:] >= order[:-1]).all():
            return slice(None) if usable.all() else usable
        places = np.argsort(order, kind="stable")
        return places[usable[places]]

    def _rest(self, keep: Keep) -> dict[str, Any]:
        columns: dict[str, Any] = {column: codes.coded(keep, last=True) for column, codes in self.strings.items()}
        return columns | {column: integers.ints(keep, last=True) for column, integers in self._numbers.items() if column != "step_num"}


def _lane(key: tuple[Any, ...]) -> str:
    if len(key) == 2:
        return lane_text((key[0], key[1]))
    if key[0] != "gpu":
        return str(key[0])
    stream = key[2].removeprefix("stream ").strip() if isinstance(key[2], str) else key[2]
    return f"gpu {key[1]} stream {stream}"


def _device_name(accelerator: str, number: Any) -> str | None:
    return f"{accelerator}:{number}" if isinstance(number, int) or str(number).isdigit() else str(number) or None


def _step_numbers(name: Coded, annotation: npt.NDArray[np.bool_], given: Ints) -> Ints:
    """The step that an annotation marks: by its name, else as its args say."""
    found = [_STEP.match(value) for value in name.values]
    numbers = np.array([int(m.group(1)) if m and len(m.group(1)) < 19 else 0 for m in found] + [0], np.int64)
    named = annotation & name.where([m is not None for m in found])
    valid = named | (annotation & given.valid)
    return Ints(np.where(named, numbers[name.codes], np.where(valid, given.values, 0)), valid)
