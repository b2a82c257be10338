"""The events of an excerpt: which lanes and rows are shown, how deep they nest, and their columns with text coded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag.columns import Coded, Ints
from tracediag.distinct import distinct
from tracediag.excerpt.thinning import largest

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.excerpt.window import Window
    from tracediag.trace import Trace

__all__ = ["Texts", "depths", "lanes_of", "pick", "places_of", "rows_of"]

MAX_LANES = 24
MAX_DEVICE_LANES = 16
"""Of them, where the threads need the others."""
MAX_TEXT = 300
"""Characters of a name, of shapes: templates of kernels fill pages."""
WEIGHTS = {"kernel": 4, "copy": 4, "memset": 4, "python": 0.25, "overhead": 0.1}
"""When events have to be left out: how much longer than it is an event counts. Device work is seldom nested, Python frames are deep."""
TEXTS = {
    "name": "name",
    "label": "label",
    "kind": "kind",
    "phase": "phase",
    "role": "role",
    "in": "in_shapes",
    "out": "out_shapes",
    "source": "source",
}
"""Key in the excerpt -> column of `ops`."""


class Texts:
    """Strings in order of first use, each kept once and cut at MAX_TEXT characters."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def values(self) -> list[str]:
        """All strings."""
        return list(self._places)

    def place(self, text: str) -> int:
        """Index of a string in `values`."""
        short = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
        return self._places.setdefault(short, len(self._places))

    def codes(self, column: Coded, rows: IntArray) -> list[int]:
        """Indexes of a string column's rows, -1 for NULL."""
        codes = column.codes[rows]
        table = {code: self.place(column.values[code]) for code in distinct(codes).tolist() if code >= 0}
        return [table.get(code, -1) for code in codes.tolist()]


def lanes_of(trace: Trace, window: Window) -> tuple[list[dict[str, Any]], int]:
    """The lanes of a window and how many more there are: the lanes of a device together, then threads, the busiest first.

    Each: `name`, `device` (null for the host), `code` (of the column `lane`).
    """
    rows = window.rows(trace)
    lane, device = trace.strings("lane"), trace.strings("device")
    busy = np.zeros(len(lane.values), np.int64)
    np.add.at(busy, lane.codes[rows], np.maximum(trace.col("self_ns")[rows], 0))
    at = np.full(len(lane.values), -1, np.int64)
    at[lane.codes[rows]] = device.codes[rows]
    codes = distinct(lane.codes[rows])
    hidden = max(len(codes) - MAX_LANES, 0)
    whole = np.zeros(len(device.values) + 1, np.int64)
    np.add.at(whole, at[codes], busy[codes])
    codes = _busiest(codes[np.lexsort((codes, -busy[codes]))], at)
    order = codes[np.lexsort((codes, -busy[codes], at[codes], -whole[at[codes]], at[codes] < 0))]
    names = {code: device.values[at[code]] if at[code] >= 0 else None for code in order.tolist()}
    prefix = f"rank {window.rank} "  # what `assemble` puts before the lanes of several ranks
    lanes = [{"name": lane.values[code].removeprefix(prefix), "device": name, "code": code} for code, name in names.items()]
    return lanes, hidden


def _busiest(codes: IntArray, device: IntArray) -> IntArray:
    """At most MAX_LANES lanes of those in order of their work, and threads among them. device: of each lane, -1 for a thread."""
    on_device, on_host = codes[device[codes] >= 0], codes[device[codes] < 0]
    devices = on_device[: max(MAX_DEVICE_LANES, MAX_LANES - len(on_host))]
    return np.concatenate([devices, on_host[: MAX_LANES - len(devices)]])


def pick(trace: Trace, window: Window, lanes: list[dict[str, Any]], most: int) -> tuple[IntArray, dict[str, Any]]:
    """The rows that are shown, at most `most`, by lane and time, and what is left out: the shortest (see WEIGHTS).

    left out: `events` of `of`; `shorter_ns`: all that are shorter are left out, null when none is.
    """
    lane = trace.strings("lane").codes
    place = np.full(int(lane.max(initial=-1)) + 1, -1, np.int64)
    for i, one in enumerate(lanes):
        place[one["code"]] = i
    rows = window.rows(trace)
    rows = rows[place[lane[rows]] >= 0]
    whole, shorter = len(rows), None
    if whole > most:
        worth = _worth(trace, rows)
        kept = largest(worth, most)
        shorter = int(np.ceil(worth[kept].min()))
        rows = rows[kept]
    length = trace.col("dur_ns")[rows]
    rows = rows[np.lexsort((rows, -length, trace.start[rows], place[lane[rows]]))]
    return rows, {"events": whole - len(rows), "of": whole, "shorter_ns": shorter}


def _worth(trace: Trace, rows: IntArray) -> npt.NDArray[np.float64]:
    role = trace.strings("role")
    weight = np.asarray([WEIGHTS.get(name, 1) for name in role.values])
    return np.asarray(trace.col("dur_ns")[rows] * weight[role.codes[rows]])


def rows_of(trace: Trace, window: Window, rows: IntArray, lanes: list[dict[str, Any]], texts: Texts) -> dict[str, list[int] | None]:
    """Columns of the shown rows: lane, depth, dur, self, bytes, launch (the shown event that launched it) and coded text, -1 for none; null
    for a column of nothing else. start: what is to be added to the start of the event before, which keeps the numbers short."""
    place = {one["code"]: i for i, one in enumerate(lanes)}
    lane = [place[code] for code in trace.strings("lane").codes[rows].tolist()]
    begin, length = trace.start[rows] - window.start, trace.col("dur_ns")[rows]
    columns = {
        "lane": lane,
        "depth": depths(lane, begin.tolist(), (begin + length).tolist()),
        "start": np.diff(begin, prepend=0).tolist(),
        "dur": length.tolist(),
        "self": trace.col("self_ns")[rows].tolist(),
        "launch": places_of(trace.launch[rows], rows, len(trace)),
        "bytes": _numbers(trace, "bytes", rows),
    }
    columns |= {key: texts.codes(trace.strings(column), rows) for key, column in TEXTS.items()}
    return {key: column if key in ("lane", "start") or set(column) != {-1} else None for key, column in columns.items()}


def places_of(wanted: IntArray, shown: IntArray, count: int) -> list[int]:
    """Place in `shown` of each wanted row, -1 where it is not shown. count: number of rows of the table."""
    place = np.full(count + 1, -1, np.int64)
    place[shown] = np.arange(len(shown))
    return place[np.where(wanted >= 0, wanted, count)].tolist()  # type: ignore[no-any-return]


def _numbers(trace: Trace, name: str, rows: IntArray) -> list[int]:
    cells = trace.columns[name]
    if not isinstance(cells, Ints):
        return [-1] * len(rows)
    return np.where(cells.valid[rows], cells.values[rows], -1).tolist()  # type: ignore[no-any-return]


def depths(lane: list[int], start: list[int], end: list[int]) -> list[int]:
    """The first row of its lane that is free at the start of each event, which for nested ones is how deep they nest; events in order of
    lane and start."""
    result: list[int] = []
    taken: list[int] = []  # until when, by row
    current = -1
    for at, begin, stop in zip(lane, start, end, strict=True):
        if at != current:
            current, taken = at, []
        depth = next((row for row, until in enumerate(taken) if until <= begin), len(taken))
        taken[depth : depth + 1] = [stop]
        result.append(depth)
    return result
