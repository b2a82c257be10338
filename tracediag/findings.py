"""Findings and the report: frozen dataclasses in the shape of `tracediag.report/1` (see the published JSON Schema)."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = ["CONFIDENCES", "REPORT_SCHEMA", "SEVERITIES", "Finding", "Fix", "Place", "Report", "Speedup"]

REPORT_SCHEMA = "tracediag.report/1"
SEVERITIES = ("high", "medium", "low", "info")
CONFIDENCES = ("certain", "likely", "possible")


@dataclass(frozen=True)
class Place:
    """A line of the user's code. file: relative to the working directory of the run where possible."""

    file: str
    line: int
    function: str | None = None


@dataclass(frozen=True)
class Fix:
    """What to change. framework: torch | tensorflow | keras | jax | any. code: a snippet that runs, or None."""

    framework: str
    text: str
    code: str | None = None


@dataclass(frozen=True)
class Speedup:
    """Predicted mean step time now / after the fix; high is None for "at least low"."""

    low: float
    high: float | None


@dataclass(frozen=True)
class Finding:
    """One cause.

    share: part of `share_of` (the step, the recorded time, the measured time) that this cause owns, 0..1. where: lines of the user's
    code. also: other rules that matched the same time. evidence: one dict an op group (op, kind, count_per_step, ms_per_step, shapes).
    """

    rule: str
    code: str
    title: str
    category: str
    severity: str
    confidence: str
    share: float
    speedup: Speedup | None
    message: str
    where: tuple[Place, ...]
    evidence: tuple[dict[str, Any], ...]
    why: str
    fix: tuple[Fix, ...]
    changes_training: str | None
    references: tuple[str, ...]
    also: tuple[str, ...]
    fingerprint: str
    share_of: str = "the step"


@dataclass(frozen=True)
class Report:
    """Everything that `explain` says, as plain data; `reports.*.render(report)` turns it into text.

    Dictionaries have the keys of contract `tracediag.report/1`: inputs, run, health, subject, steps, device, breakdown, skipped,
    verdict; prediction: how speed-ups were found, and what all fixes save together. Rendering never computes: every number is already here.
    """

    tool: dict[str, Any]
    inputs: tuple[dict[str, Any], ...]
    run: dict[str, Any] | None
    health: tuple[dict[str, Any], ...]
    subject: dict[str, Any]
    steps: dict[str, Any]
    device: dict[str, Any] | None
    breakdown: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]
    skipped: tuple[dict[str, Any], ...]
    verdict: dict[str, Any]
    prediction: dict[str, Any] | None = None
    schema: str = field(default=REPORT_SCHEMA)

    def to_json(self) -> str:
        """The report as JSON text, `tracediag.report/1`."""
        return _render(self, "json")

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return _render(self, "markdown")

    def __str__(self) -> str:
        return _render(self, "text")

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return self.to_markdown()


def _render(report: Report, form: str) -> str:
    """Reports stand above this module, which therefore knows them by name only."""
    return str(import_module("tracediag.reports").render(report, form))
