"""Collect batches of Kineto events into columns: one pass a group of categories, no object kept per event."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from tracediag.columns import ROLES, Coded, Health, IntArray, Ints, Raw
from tracediag.readers._chrome import args_of
from tracediag.readers._coding import NONE, Codes, Dictionary, Integers, joined_ints, nanoseconds
from tracediag.readers._jsonrepair import UNREADABLE
from tracediag.readers._kineto_args import dtype_list, json_text, string
from tracediag.readers._kineto_groups import Group, detail_text, device_group, lane_text, op_group, runtime_group
from tracediag.readers._kineto_memory import MemoryRows
from tracediag.readers._kineto_roles import MEMORY, METADATA, final_roles, role_of
from tracediag.readers._kineto_vendors import is_special, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.readers._chrome import Event

__all__ = ["KinetoColumns"]

_OPS = np.isin(ROLES, ("op", "function", "annotation", "framework"))
_DEVICE = np.isin(ROLES, ("kernel", "copy", "memset", "device_annotation", "device_sync"))
_FRAMEWORK = ROLES.index("framework")
_RUNTIME = np.isin(ROLES, ("runtime",))
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_NUMBERS = ("external", "correlation", "sequence", "flops", "bytes", "step_num")
_STRINGS = ("in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes")
_KIND, _LANE, _NAME = attrgetter("ph", "cat"), attrgetter("pid", "tid"), attrgetter("name")
_LIMIT = 1 << 62
_ABSOLUTE = 10**18  # ns since 1970; a smaller time counts from baseTimeNanoseconds


class KinetoColumns:
    """Growing columns of one trace: `add` takes events, `raw` makes the result."""

    def __init__(self) -> None:
        self.events = 0
        self.accelerator = "cuda"  # what devices are called; known at the end of the file
        self.lane_names: dict[str, str] = {}
        self.memory = MemoryRows()
        self._name, self._lane, self._device = Codes(), Codes(_lane), Codes(self._device_name)
        self._strings = {column: Codes(dtype_list if column.endswith("dtypes") else json_text) for column in _STRINGS}
        self._label = Codes(string)
        self._detail = Codes(detail_text)
        self._numbers = {column: Integers() for column in _NUMBERS}
        self._starts: list[IntArray] = []
        self._durs: list[IntArray] = []
        self._roles: list[npt.NDArray[np.int8]] = []
        self._kinds = Dictionary()  # (ph, cat) -> code
        self._kind_roles: list[int] = []  # code -> role
        self._special: list[bool] = []  # code -> whether its role depends on the event
        self.nameless = 0  # events without a category whose names tell nothing either
        self.counts = np.zeros(0, np.int64)  # events by kind
        self.labels: dict[str, None] = {}  # of processes, in order

    def add(self, events: Sequence[Event]) -> None:
        """Append a batch."""
        self.events += len(events)
        roles = self._role_codes(events)
        for index in np.flatnonzero(roles == METADATA).tolist():
            self._metadata(events[index])
        instants = np.flatnonzero(roles == MEMORY)
        if len(instants):
            self.memory.add([events[i] for i in instants.tolist()])
        kept = np.flatnonzero(roles >= 0)
        if len(kept):
            self._rows([events[i] for i in kept.tolist()], roles[kept])

    def _role_codes(self, events: Sequence[Event]) -> npt.NDArray[np.int8]:
        codes = self._kinds.codes(map(_KIND, events), len(events))
        for ph, cat in list(self._kinds)[len(self._kind_roles) :]:
            self._kind_roles.append(role_of(ph, cat))
            self._special.append(is_special(ph, cat))
        counts = np.bincount(codes, minlength=len(self._kinds))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        roles = np.asarray(self._kind_roles, np.int8)[codes]
        if any(self._special):
            for i in np.flatnonzero(np.asarray(self._special)[codes]).tolist():
                roles[i] = settle(events[i])
                self.nameless += int(roles[i] == _FRAMEWORK)
        return roles

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

    def _rows(self, rows: Sequence[Event], roles: npt.NDArray[np.int8]) -> None:
        n = len(rows)
        args = [e.args for e in rows]
        ops, calls, device = (np.flatnonzero(flags[roles]) for flags in (_OPS, _RUNTIME, _DEVICE))
        op = op_group([args[i] for i in ops.tolist()])
        call = runtime_group([args[i] for i in calls.tolist()])
        work = device_group([rows[i] for i in device.tolist()], [args[i] for i in device.tolist()])
        self._roles.append(roles)
        self._starts.append(nanoseconds([e.ts for e in rows]))
        self._durs.append(nanoseconds([e.dur for e in rows]))
        self._name.add(map(_NAME, rows), n)
        self._lane.add(_lane_keys(rows, device, work), n)
        self._device.add_at((lane[1] for lane in work.lanes), device, n)
        for column, codes in self._strings.items():
            given = op.strings[column]
            if given is None:
                codes.add_null(n)
            else:
                codes.add_at(given, ops, n)
        self._add_labels(n, (ops, op), (device, work))
        self._scatter(n, (ops, op), (calls, call), (device, work))

    def _scatter(self, n: int, *groups: tuple[npt.NDArray[Any], Group]) -> None:
        """Write the numbers and details of each group to its rows."""
        for column, integers in self._numbers.items():
            values = np.full(n, NONE, np.int64)
            for index, group in groups:
                if column in group.numbers:
                    values[index] = group.numbers[column]
            integers.add(values)
        codes = np.full(n, -1, np.int32)
        for index, group in groups:
            if group.details:
                codes[index] = self._detail.table.codes(group.details, len(index))
        self._detail.add_codes(codes)

    def _add_labels(self, n: int, *groups: tuple[npt.NDArray[Any], Group]) -> None:
        given = [(index, texts) for index, group in groups if (texts := group.strings["label"]) is not None]
        if not given:
            self._label.add_null(n)
            return
        index = np.concatenate([index for index, _ in given])
        self._label.add_at([text for _, texts in given for text in texts], index, n)

    def _device_name(self, number: Any) -> str | None:
        return f"{self.accelerator}:{number}" if isinstance(number, int) or str(number).isdigit() else str(number) or None

    def bad(self) -> int:
        """How many rows have an unusable start or duration."""
        return int((~self._usable()).sum())

    def _usable(self) -> npt.NDArray[np.bool_]:
        start, dur = joined_ints(self._starts), joined_ints(self._durs)
        usable: npt.NDArray[np.bool_] = (np.abs(start) < _LIMIT) & (start != NONE) & (dur >= 0) & (dur < _LIMIT)
        return usable

    def raw(self, form: str, rank: int | None, facts: dict[str, Any], health: tuple[Health, ...]) -> Raw:
        """The columns, without the events whose times are unusable."""
        keep = self._usable()
        start = joined_ints(self._starts)[keep]
        base = facts.get("base_time_ns", 0)
        shift = base if 0 < base < _LIMIT and start.max(initial=0) < _ABSOLUTE else 0
        name = self._name.coded(keep)
        roles = final_roles(np.concatenate(self._roles)[keep] if self._roles else np.zeros(0, np.int8), name)
        return Raw(
            format=form,
            framework=facts.get("framework", "torch"),
            events=self.events,
            rank=rank,
            name=name,
            role=Coded(roles, ROLES),
            label=self._label.coded(keep),
            device=self._device.coded(keep),
            lane=self._lane.coded(keep),
            start_ns=start + shift,
            dur_ns=joined_ints(self._durs)[keep],
            step_num=_step_numbers(name, roles == ROLES.index("annotation"), self._numbers["step_num"].ints(keep)),
            detail=self._detail.coded(keep),
            memory=self.memory.columns(shift),
            facts=facts,
            health=health,
            **self._rest(keep),
        )

    def _rest(self, keep: npt.NDArray[np.bool_]) -> dict[str, Any]:
        columns: dict[str, Any] = {column: codes.coded(keep) for column, codes in self._strings.items()}
        return columns | {column: integers.ints(keep) for column, integers in self._numbers.items() if column != "step_num"}


def _lane_keys(rows: Sequence[Event], device: npt.NDArray[Any], work: Group) -> list[tuple[Any, ...]]:
    keys: list[tuple[Any, ...]] = list(map(_LANE, rows))
    for row, lane in zip(device.tolist(), work.lanes, strict=True):
        keys[row] = lane
    return keys


def _lane(key: tuple[Any, ...]) -> str:
    if len(key) == 2:
        return lane_text((key[0], key[1]))
    if key[0] != "gpu":
        return str(key[0])
    stream = key[2].removeprefix("stream ").strip() if isinstance(key[2], str) else key[2]
    return f"gpu {key[1]} stream {stream}"


def _step_numbers(name: Coded, annotation: npt.NDArray[np.bool_], given: Ints) -> Ints:
    """The step that an annotation marks: by its name, else as its args say."""
    found = [_STEP.match(value) for value in name.values]
    numbers = np.array([int(m.group(1)) if m and len(m.group(1)) < 19 else 0 for m in found] + [0], np.int64)
    named = annotation & name.where([m is not None for m in found])
    valid = named | (annotation & given.valid)
    return Ints(np.where(named, numbers[name.codes], np.where(valid, given.values, 0)), valid)
