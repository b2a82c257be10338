"""Steps: their wall times without our own work, and when a window opens and closes."""

from __future__ import annotations

from statistics import median
from typing import Any

from .config import Config

RANK = {"forward": 0, "backward": 1, "function": 2, "optimizer": 2, "step": 3}  # step: told by the user
HOLD_BACK = 64  # weaker boundaries in a row after which an expected stronger one is given up
HOLD_BACK_NS = 10**9
SLOW_WARMUP_NS = 30 * 10**9  # a warm-up longer than this ends early
WINDOW_NS = 5 * 10**9  # and so does a window, with three steps at least (writing costs some 0.1 ms an op)
WINDOW_STEPS, WINDOW_EVENTS = 3, 150_000
STACK_STEPS, LATE_STEPS, DRIFT_STEPS, DRIFT, DRIFT_IN_A_ROW = 2, 5, 5, 1.5, 3
COLUMNS = ("tracings", "compiles", "compile_ns", "allocated", "loader_ns", "nodes", "evaluation_ns", "subnormal")
ADDING = ("loader_ns", "compile_ns", "nodes", "evaluation_ns")


def merge_samples(first: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Values of two parts of one step: times add up, the first batch counts, totals so far are the later ones."""
    if not first or not then:
        return first or then
    merged = {**first, **{name: value for name, value in then.items() if value is not None}}
    for name in ADDING:
        if first.get(name) is not None and then.get(name) is not None:
            merged[name] = first[name] + then[name]
    if first.get("batch") is not None:
        merged["batch"] = first["batch"]
    return merged


class Series:
    """The step series of run.json: one entry a step from step 0, in integer nanoseconds."""

    def __init__(self) -> None:
        self.wall: list[int] = []
        self.profiled: list[int] = []
        self._values: list[tuple[Any, ...]] = []  # of COLUMNS
        self.batch: list[int | None] = []
        self.batches: dict[str, int] = {}
        self.started = False
        self.paused = False
        self._first_ns = 0
        self.start_ns = 0
        self._starts: list[int] = []
        self._carried: dict[str, Any] = {}  # values of parts of the open step

    def __len__(self) -> int:
        return len(self.wall)

    def start(self, now: int) -> None:
        """Start the clock of step 0."""
        self.started = True
        self._first_ns = self.start_ns = now

    def resume(self, now: int) -> None:
        """The open step starts at `now`: our own work (or an evaluation phase) before it does not count."""
        if not self.started:
            self.start(now)
        self.start_ns = now
        self.paused = False

    def append(self, end_ns: int, values: dict[str, Any], profiled: bool) -> int:
        """Close the open step; returns its wall time in ns."""
        wall = max(0, end_ns - self.start_ns)
        if self._carried:
            values, self._carried = merge_samples(self._carried, values), {}
        self._starts.append(self.start_ns)
        self.wall.append(wall)
        self.profiled.append(int(profiled))
        self._values.append(tuple(map(values.get, COLUMNS)))
        text = values.get("batch")
        if text is None:
            self.batch.append(None)
        else:
            index = self.batches.get(text)
            self.batch.append(self.batches.setdefault(text, len(self.batches)) if index is None else index)
        return wall

    def restart(self, weaker: int) -> None:
        """Drop the last `weaker` entries, ended by a weaker kind of boundary: they are parts of the step that now ends when they are
        few, and a phase of its own before it when they are many."""
        if not weaker:
            return
        keep = max(0, len(self.wall) - weaker)
        few = weaker <= HOLD_BACK
        self.start_ns = self._starts[keep] if few else self._starts[-1]
        for row in range(keep if few else len(self.wall) - 1, len(self.wall)):
            self._carried = merge_samples(self._carried, self._row(row))
        columns: list[list[Any]] = [self.wall, self.profiled, self.batch, self._starts, self._values]
        for column in columns:
            del column[keep:]

    def _row(self, row: int) -> dict[str, Any]:
        index = self.batch[row]
        batch = None if index is None else list(self.batches)[index]
        return {**dict(zip(COLUMNS, self._values[row])), "batch": batch}  # noqa: B905 - strict wants Python 3.10, scripts may run on 3.9

    def as_json(self) -> dict[str, Any]:
        """The `step_series` of run.json; a column that was never filled is null."""
        table: dict[str, Any] = {"wall_ns": self.wall, "profiled": self.profiled, "batch": self.batch}
        for place, name in enumerate(COLUMNS):
            column = [values[place] for values in self._values]
            table[name] = column if any(value is not None for value in column) else None
        return table


class Track:
    """Steps and windows of one framework."""

    def __init__(self, framework: str, config: Config) -> None:
        self.framework = framework
        self.config = config
        self.rank = -1  # of the kind of boundary that ends its steps
        self.kind = "none"
        self.expected = -1
        self.rows = 0  # entries of the series since the last restart
        self.thread = 0
        self.touched = False  # our work just before makes the step that follows untypical
        self._forget()

    def _forget(self) -> None:
        self.rows = 0
        self.done: list[str] = []
        self.name = ""
        self.first_step = 0
        self.in_window = 0
        self.steps_per_call = 1
        self._opened_ns = 0
        self._first_ns = 0
        self._base: list[int] = []
        self._last: list[int] = []
        self._drifting = 0

    def restart(self, kind: str, thread: int) -> None:
        """Steps end at boundaries of `kind` on `thread` from now on."""
        self.kind, self.rank, self.thread = kind, RANK[kind], thread
        self._forget()

    def refuses(self, rank: int, thread: int) -> bool:
        """True for a boundary that ends no step: a weaker kind, or one on another thread."""
        return rank < self.rank or (rank == self.rank and self.thread != thread)

    def count(self, wall_ns: int, steps: int, unprofiled: bool) -> None:
        """A step of this framework has ended."""
        self.rows += 1
        self.steps_per_call = steps
        if self.name:
            self.in_window += 1
        elif unprofiled and "main" in self.done:
            self._watch(wall_ns)

    def _watch(self, wall_ns: int) -> None:
        """Compare the last steps with those just after the window."""
        if len(self._base) < DRIFT_STEPS:
            self._base.append(wall_ns)
            return
        self._last.append(wall_ns)
        if len(self._last) < DRIFT_STEPS:
            return
        del self._last[:-DRIFT_STEPS]
        drift = median(self._last) >= DRIFT * median(self._base)
        self._drifting = self._drifting + 1 if drift else 0

    def undisturbed(self, steps: int) -> bool:
        """No window is due within so many steps, but for one that drifting steps would open a little later."""
        if "main" not in self.done:
            return self.rows + steps < self.config.warmup
        return "stacks" in self.done or not self.config.stacks

    def wants_window(self, now: int, adapter: Any) -> str | None:
        """Name of the window to open at this boundary: main | stacks | late, or None."""
        self._first_ns = self._first_ns or now
        if "main" not in self.done:
            return "main" if self._warm(now - self._first_ns) else None
        if "stacks" not in self.done and self._stacks(adapter):
            return "stacks"
        if "late" not in self.done and self._drifting >= DRIFT_IN_A_ROW:
            return "late"
        return None

    def _warm(self, since_first_ns: int) -> bool:
        """The warm-up is over, and no stronger kind of boundary is to be waited for."""
        if self.rank < self.expected and self.rows <= HOLD_BACK and not (self.rows >= 8 and since_first_ns > HOLD_BACK_NS):
            return False
        return self.rows >= self.config.warmup or (self.rows >= 2 and since_first_ns > SLOW_WARMUP_NS)

    def _stacks(self, adapter: Any) -> bool:
        return self.config.stacks and getattr(adapter, "wants_stacks", True)

    def windows_done(self, adapter: Any) -> bool:
        """The main window, and the one with stacks when it is wanted, are recorded."""
        return "main" in self.done and ("stacks" in self.done or not self._stacks(adapter))

    def opened(self, name: str, first_step: int, now: int) -> None:
        """A window has been opened."""
        self.name, self.first_step, self.in_window, self._opened_ns = name, first_step, 0, now

    def window_full(self, now: int, events: int) -> bool:
        """The open window holds what it should, or its time is up, or it holds many events (an estimate) already."""
        wanted = {"main": self.config.steps, "stacks": STACK_STEPS, "late": LATE_STEPS}[self.name]
        large = now - self._opened_ns > WINDOW_NS or events > WINDOW_EVENTS
        return self.in_window >= wanted or (self.in_window >= WINDOW_STEPS and large)

    def closed(self) -> None:
        """The open window has been closed and written."""
        self.done.append(self.name)
        self.name = ""
        self.touched = True

    gave_up = closed
