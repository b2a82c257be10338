"""Rows of figures, targets judged by them, and the page with both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from measure import Figure


@dataclass(frozen=True)
class Row:
    """One measured way. key: how targets name it; what: how the page does; figure: None when it was not run, `note` says why.

    events: in the file, for events a CPU second; held_mib: memory held at the end where the way itself told it.
    """

    key: str
    what: str
    figure: Figure | None
    events: int | None = None
    note: str = ""
    held_mib: float | None = None

    @property
    def rate(self) -> float | None:
        """Events a CPU second."""
        return self.events / self.figure.median("cpu_s") if self.events and self.figure else None


@dataclass(frozen=True)
class Section:
    """One file, or none, and what was done with it. Rows are compared with the first. kind: kineto, xplane or ''; size: bytes."""

    title: str
    rows: list[Row]
    kind: str = ""
    megabytes: int = 0
    size: int = 0

    @property
    def text(self) -> str:
        """Size of the file and events in it."""
        events = next((row.events for row in self.rows if row.events), 0)
        return f"{self.size / 1e6:,.0f} MB ({self.size / (1 << 20):,.0f} MiB), {events:,} events." if self.kind else ""


@dataclass(frozen=True)
class Target:
    """A promise: value `least` or `most`; value None when it was not measured."""

    what: str
    value: float | None
    least: float | None = None
    most: float | None = None
    digits: int = 2

    @property
    def verdict(self) -> str:
        """PASS, MISS, or - when it was not measured."""
        if self.value is None:
            return "-"
        met = (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)
        return "PASS" if met else "**MISS**"

    @property
    def limit(self) -> str:
        """The bound in words."""
        return f"at least {self._form(self.least)}" if self.least is not None else f"at most {self._form(self.most)}"

    def _form(self, value: float | None) -> str:
        return "-" if value is None else f"{value:,.{self.digits}f}"

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        return self.what, self._form(self.value), self.limit, self.verdict


@dataclass
class Results:
    """A whole run. facts: what it ran on, in order."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def row(self, key: str) -> Row | None:
        """A measured row by its key; None when there is none or it was not run."""
        return next((row for section in self.sections for row in section.rows if row.key == key and row.figure), None)

    def value(self, key: str, name: str = "cpu_s") -> float | None:
        """Median of a row, None when it was not run."""
        row = self.row(key)
        return row.figure.median(name) if row and row.figure else None

    def seconds(self, key: str) -> tuple[float | None, str]:
        """Elapsed time of a row and its name; CPU time where other work was not kept off, which makes elapsed time mean nothing."""
        row = self.row(key)
        quiet = row is not None and row.figure is not None and all(run.quiet for run in row.figure.runs)
        return (self.value(key, "wall_s"), "elapsed s") if quiet else (self.value(key), "s (CPU: the machine was shared)")

    def ratio(self, key: str, to: str, name: str = "cpu_s") -> float | None:
        """Median of one row in that of another."""
        above, below = self.value(key, name), self.value(to, name)
        return above / below if above is not None and below else None


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first to the right."""
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1)), *(" | ".join(row) for row in rows)]
    return "".join(f"| {line} |\n" for line in lines)


def _median(figure: Figure, name: str, digits: int) -> str:
    """Median, with least and most when there were several runs."""
    low, high = figure.spread(name)
    text = f"{figure.median(name):,.{digits}f}"
    return f"{text} ({low:,.{digits}f}-{high:,.{digits}f})" if len(figure.runs) > 1 else text


def _cells(row: Row, base: Row | None) -> tuple[str, ...]:
    if row.figure is None:
        return row.what, row.note, "", "", "", "", ""
    cpu = row.figure.median("cpu_s")
    times = f"{cpu / base.figure.median('cpu_s'):.2f}" if base and base.figure else "-"
    what = f"{row.what} ({row.note})" if row.note else row.what
    return (
        what,
        _median(row.figure, "cpu_s", 2),
        times,
        _median(row.figure, "wall_s", 2),
        f"{row.figure.median('peak_mib'):,.0f}",
        f"{row.rate:,.0f}" if row.rate else "-",
        str(len(row.figure.runs)),
    )


def _company(results: Results) -> str:
    runs = [run for section in results.sections for row in section.rows if row.figure for run in row.figure.runs]
    quiet = sum(run.quiet for run in runs)
    return f"kept off during {quiet} of {len(runs)} runs" if quiet else "not kept off; CPU times are higher while a core is shared"


HEAD = ("way", "CPU s", "ratio", "elapsed s", "peak MiB", "events a CPU s", "runs")
INTRO = """# What reading costs

Written by `make bench`; by hand changes nothing. Each way ran in a process of its own, imports and start-up counted: median of the runs
(least to most), user and system time of the process and all below it, peak memory of all of them together. Ratio: CPU time against the
first row. The traces are generated (`benchmarks/generate.py`): no step repeats another. MB are 10^6 bytes, MiB 2^20.
"""


def render(results: Results) -> str:
    """The page."""
    parts = [INTRO, table(("run on", ""), [*results.facts, ("other work on the machine", _company(results))]).replace("---:", "---")]
    parts += ["## Targets\n", table(("target", "measured", "bound", "verdict"), [target.cells for target in results.targets])]
    for section in results.sections:
        base = section.rows[0] if section.rows else None
        parts += [f"## {section.title}\n", section.text + "\n"] if section.text else [f"## {section.title}\n"]
        parts.append(table(HEAD, [_cells(row, base) for row in section.rows]))
    return "\n".join(parts)
