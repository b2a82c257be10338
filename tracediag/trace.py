"""The Trace: one op-level table and its companions, for pandas, for SQL, and as plain arrays for the engine."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import Coded, Health, IntArray, Ints, Raw
from tracediag.distinct import distinct
from tracediag.intervals import Spans, empty, merge, subtract
from tracediag.kinds import DEVICE_ROLES
from tracediag.nesting import inherit
from tracediag.notebook import Shown
from tracediag.plausible import plausible
from tracediag.schema import TABLES, table
from tracediag.unrecorded import waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import pandas as pd

    from tracediag.database import Cells
    from tracediag.gaps import Gaps
    from tracediag.steps import Steps

__all__ = ["Trace", "build_trace"]


def build_trace(raws: Sequence[Raw], run: dict[str, Any] | None = None, inputs: Sequence[dict[str, Any]] = ()) -> Trace:
    """Derive the Trace of one job from the columns of its files (see `derive`), corrupt times set right (see `plausible`)."""
    from tracediag.derive import derive

    return derive([plausible(raw) for raw in raws], run, inputs)


def _coded(columns: Mapping[str, Cells], name: str) -> Coded:
    cells = columns[name]
    if not isinstance(cells, Coded):
        raise TypeError(f"{name} is not a string column")
    return cells


@dataclass(frozen=True, eq=False)
class Trace(Shown):
    """Everything known about one recorded job.

    columns: the columns of table `ops`, n rows. parent, launch, owner, step_row: row numbers or -1, shape (n,). device_key: which
    device each row of device work ran on (rank and device), -1 for host rows. device_names: name of each device key.
    """

    columns: dict[str, Cells]
    parent: IntArray
    launch: IntArray
    owner: IntArray
    step_row: IntArray
    device_key: IntArray
    device_names: tuple[tuple[int, str], ...]
    step_table: Steps
    window_table: Steps
    gap_table: Gaps
    gap_columns: dict[str, Cells]
    memory_columns: dict[str, Cells] | None
    facts: dict[str, list[dict[str, Any]]]
    run: dict[str, Any] | None
    inputs: tuple[dict[str, Any], ...]
    file_health: tuple[Health, ...]
    raw_facts: tuple[dict[str, Any], ...] = ()
    present: frozenset[str] = field(default_factory=frozenset)

    def __len__(self) -> int:
        return len(self.parent)

    @staticmethod
    def from_rows(given: Mapping[str, Any]) -> Trace:
        """A Trace from rows written by hand (see `rowtrace.trace_from_rows`)."""
        from tracediag.rowtrace import trace_from_rows

        return trace_from_rows(given)

    def col(self, name: str) -> npt.NDArray[Any]:
        """A numeric column of `ops` as an array (start_ns, dur_ns, self_ns, ...). NULLs of nullable columns are not visible here."""
        cells = self.columns[name]
        return cells.values if isinstance(cells, Ints) else np.asarray(cells)

    def strings(self, name: str) -> Coded:
        """A string column of `ops`, dictionary-coded. Raises TypeError for a numeric column."""
        return _coded(self.columns, name)

    def gap_strings(self, name: str) -> Coded:
        """A string column of `gaps`, dictionary-coded. Raises TypeError for a numeric column."""
        return _coded(self.gap_columns, name)

    @cached_property
    def start(self) -> IntArray:
        """Start of each op, ns."""
        return self.col("start_ns")

    @cached_property
    def end(self) -> IntArray:
        """End of each op, ns."""
        return np.asarray(self.start + self.col("dur_ns"))

    @cached_property
    def ranks(self) -> IntArray:
        """Rank of each op, -1 where the trace names none."""
        rank = self.columns["rank"]
        assert isinstance(rank, Ints)
        return np.where(rank.valid, rank.values, -1)

    @cached_property
    def _ranks(self) -> IntArray:
        """Distinct ranks in order, -1 for none; each has its own stretch of the claim time line, with steps or without."""
        return np.asarray(distinct(np.concatenate([self.step_table.rank, self.window_table.rank])))

    def lane_shift(self, ranks: IntArray) -> IntArray:
        """What claims add to times of these ranks, so that ranks lie behind each other on one time line and never hide each other."""
        return np.maximum(np.searchsorted(self._ranks, ranks, "right") - 1, 0) * (int(self.end.max(initial=0)) + 1)

    @cached_property
    def shift(self) -> IntArray:
        """`lane_shift` of each op, shape (n,); all zero for one rank."""
        return self.lane_shift(self.ranks)

    @cached_property
    def _gap_shift(self) -> IntArray:
        ranks = np.asarray([rank for rank, _ in self.device_names], np.int64) if self.has_device else distinct(self.step_table.rank)
        return self.lane_shift(ranks)[self.gap_table.device]

    @cached_property
    def device_mask(self) -> npt.NDArray[np.bool_]:
        """Rows that are work of a device."""
        return self.strings("role").isin(DEVICE_ROLES)

    @property
    def has_device(self) -> bool:
        """Whether any device work was recorded."""
        return len(self.device_names) > 0

    @property
    def has_steps(self) -> bool:
        """Whether steps were found (else the single row of `steps` is the whole window)."""
        return not self.step_table.window and len(self.step_table) > 0

    @property
    def frameworks(self) -> tuple[str, ...]:
        """Frameworks that the events name."""
        coded = self.strings("framework")
        return tuple(value for i, value in enumerate(coded.values) if (coded.codes == i).any())

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """Every table that is there as a DataFrame, by name."""
        from tracediag.database import frame, rows_frame  # pandas and DuckDB cost time and memory that reading a trace does not need
        from tracediag.stats import step_columns

        cells = {"ops": self.columns, "steps": step_columns(self), "gaps": self.gap_columns}
        result = {name: frame(table(name), columns) for name, columns in cells.items()}
        if self.memory_columns is not None:
            result["memory"] = frame(table("memory"), self.memory_columns)
        result |= {facts.name: rows_frame(facts, self.facts[facts.name]) for facts in TABLES if facts.name in self.facts}
        return result

    @property
    def steps_per_row(self) -> int:
        """Training steps inside one row of `steps` (a loop inside one compiled call)."""
        windows = (self.run or {}).get("windows") or [] if self.has_steps else []
        return max((int(window.get("steps_per_call") or 1) for window in windows), default=1)

    def busy(self, key: int) -> Spans:
        """Merged busy time of one device."""
        rows = np.flatnonzero(self.device_key == key)
        return merge(self.start[rows], self.end[rows])

    @property
    def ops(self) -> pd.DataFrame:
        """One row per executed operation."""
        return self.frames["ops"]

    @property
    def steps(self) -> pd.DataFrame:
        """One row per step; a single row found_by 'window' a rank where no step was found."""
        return self.frames["steps"]

    @property
    def gaps(self) -> pd.DataFrame:
        """One row per piece of device idle time."""
        return self.frames["gaps"]

    @property
    def memory(self) -> pd.DataFrame:
        """One row per allocation or release; empty when the trace has none."""
        from tracediag.database import rows_frame

        return self.frames.get("memory", rows_frame(table("memory"), None))

    @property
    def series(self) -> pd.DataFrame | None:
        """Step times of the whole run measured without the profiler, None when the run was not captured by us."""
        return self.frames.get("step_series")

    @cached_property
    def health(self) -> tuple[Health, ...]:
        """Problems of the trace itself: of its files, of the capture, and of the whole (see `health.check_trace`)."""
        from tracediag.health import check_trace

        return check_trace(self)

    def has(self, name: str) -> bool:
        """Whether a table (`params`) or a column with at least one value (`ops.in_shapes`) is there; `a|b`: one of them."""
        return not self.present.isdisjoint(name.split("|"))

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        from tracediag.database import connect

        connection = connect(self.frames)
        # closed while the interpreter is whole: DuckDB's threads must not come back to Python during its shutdown
        weakref.finalize(self, connection.close)
        return connection

    def connection(self) -> duckdb.DuckDBPyConnection:
        """The locked DuckDB connection with all tables and shared views."""
        return self._connection

    def sql(self, query: str) -> pd.DataFrame:
        """Run one query over the tables; see the schema page for tables and columns."""
        result: pd.DataFrame = self._connection.execute(query).df()
        return result

    def subtree(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Mask of the rows, everything below them, and the device work that these launched."""
        own = np.full(len(self), -1, np.int64)
        own[rows] = 1
        inside = inherit(self.parent, own) >= 0
        linked = self.launch >= 0
        inside[linked] |= inside[self.launch[linked]]
        return inside

    def subtree_claim(self, rows: IntArray) -> Spans:
        """Time that a set of ops owns, merged, on the claim time line (see `lane_shift`).

        With a device: the device work launched by them and by all below them, and the idle time they own; without one: their own
        intervals.
        """
        rows = np.asarray(rows, np.int64)
        if len(rows) == 0:
            return empty()
        if not self.has_device:
            return merge((self.start + self.shift)[rows], (self.end + self.shift)[rows])
        inside = self.subtree(rows)
        work, held = np.flatnonzero(inside & self.device_mask), self.gap_table.host
        idle = self.gap_claim(np.flatnonzero((held >= 0) & inside[held]))
        return merge(
            np.concatenate([(self.start + self.shift)[work], idle[0]]),
            np.concatenate([(self.end + self.shift)[work], idle[1]]),
        )

    def gap_claim(self, gap_ids: IntArray) -> Spans:
        """Merged time of a set of gaps, on the claim time line."""
        at = np.asarray(gap_ids, np.int64)
        shift = self._gap_shift[at]
        return merge(self.gap_table.start[at] + shift, self.gap_table.end[at] + shift)

    def step_intervals(self) -> Spans:
        """Merged time of the settled steps (see `Steps.settled`) without `unrecorded`, on the claim time line."""
        shift = self.lane_shift(self.step_table.rank)
        use = self.step_table.settled
        return subtract(merge((self.step_table.start + shift)[use], (self.step_table.end + shift)[use]), self.unrecorded)

    @cached_property
    def unrecorded(self) -> Spans:
        """Time in which a device waits for work that is not in the trace (see `unrecorded.waits`), on the claim time line."""
        if not self.has_device:
            return empty()
        return self.gap_claim(waits(self.gap_table, self.start, self.device_key, int((self.step_table.end - self.step_table.start).sum())))

    def step_stats(self) -> dict[str, Any]:
        """Step times, see `stats.step_stats`."""
        from tracediag.stats import step_stats

        return step_stats(self)

    def device_stats(self) -> dict[str, Any] | None:
        """Device use, see `stats.device_stats`."""
        from tracediag.stats import device_stats

        return device_stats(self)

    def breakdown(self) -> list[dict[str, Any]]:
        """Where the step goes, see `stats.breakdown`."""
        from tracediag.stats import breakdown

        return breakdown(self)
