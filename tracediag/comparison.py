"""The comparison of two sides as plain data, in the shape of `tracediag.comparison/1`; `reports` turns it into text."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = ["COMPARISON_SCHEMA", "Comparison"]

COMPARISON_SCHEMA = "tracediag.comparison/1"


@dataclass(frozen=True)
class Comparison:
    """Everything that `compare` says. Sides are called a and b; a difference is a minus b, a ratio a / b.

    a, b: head of each side: name, runs, inputs, run, subject, steps, health, verdict (keys as in `tracediag.report/1`).
    same_work: quantity -> {a, b, ratio, per, warning}; ratio and warning None where a side does not tell.
    step: {a_ms, b_ms, ratio, basis, per, change, noise, ...}; ratio is per sample where the batches differ.
    difference: [{phase, kind, idle, a_ms, b_ms, delta_ms, share, cause, ops, ...}], largest first; the deltas, whole nanoseconds, add up
    to step a minus step b exactly. idle: owner of idle time, 'unattributed' for what nothing explains; share: of the whole difference.
    ops: {matched, only_a, only_b, changed, ...}. findings: {only_a, only_b, both}. fixes: what a finding that is gone had predicted and
    what was measured. settings: [{name, a, b}] that differ. rules: findings of the rules about pairs. verdict: {rule, text, outcome}.
    """

    tool: dict[str, Any]
    a: dict[str, Any]
    b: dict[str, Any]
    same_work: dict[str, dict[str, Any]]
    step: dict[str, Any]
    difference: tuple[dict[str, Any], ...]
    ops: dict[str, Any]
    findings: dict[str, tuple[dict[str, Any], ...]]
    fixes: tuple[dict[str, Any], ...]
    settings: tuple[dict[str, Any], ...]
    rules: tuple[dict[str, Any], ...]
    verdict: dict[str, Any]
    schema: str = field(default=COMPARISON_SCHEMA)

    def to_json(self) -> str:
        """The comparison as JSON text, `tracediag.comparison/1`."""
        return _render(self, "json")

    def to_markdown(self) -> str:
        """The comparison as Markdown."""
        return _render(self, "markdown")

    def __str__(self) -> str:
        return _render(self, "text")

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return self.to_markdown()


def _render(comparison: Comparison, form: str) -> str:
    """Reports stand above this module, which therefore knows them by name only."""
    return str(import_module("tracediag.reports").render_comparison(comparison, form))
