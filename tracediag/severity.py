"""Severity, precedence and order of findings: the contract's thresholds, said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediag.findings import CONFIDENCES, SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CATEGORIES", "capped", "lowest_confidence", "order_findings", "precedence", "severity_of"]

HIGH_SHARE = 0.15
MEDIUM_SHARE = 0.05

CATEGORIES: dict[str, str] = {
    "M": "measurement",
    "C": "compile",
    "I": "input",
    "S": "sync",
    "H": "host",
    "R": "distributed",
    "A": "memory",
    "E": "embedding",
    "O": "optimizer",
    "D": "data-movement",
    "P": "precision",
    "Y": "layout",
    "K": "kernel",
    "L": "launch",
}
"""First letter of a rule's code -> its category."""

_GROUPS = ("M", "C", "ISH", "R", "AEO", "DPYK", "L")


def precedence(code: str) -> int:
    """Place of a rule's group in the order in which claims are settled, 0 first. Raises StopIteration for an unknown letter."""
    return next(place for place, letters in enumerate(_GROUPS) if code[0] in letters)


def capped(severity: str, *caps: str) -> str:
    """The severity, but no higher than any of the caps."""
    return SEVERITIES[max(SEVERITIES.index(level) for level in (severity, *caps))]


def severity_of(share: float, cap: str, confidence: str) -> str:
    """high from 15 % of the step, medium from 5 %, else low; never above the rule's own; a `possible` one at most medium."""
    level = "high" if share >= HIGH_SHARE else "medium" if share >= MEDIUM_SHARE else "low"
    return capped(level, cap, "medium" if confidence == "possible" else "high")


def lowest_confidence(confidences: Iterable[str]) -> str:
    """The least certain of several; there must be at least one."""
    return CONFIDENCES[max(CONFIDENCES.index(confidence) for confidence in confidences)]


def order_findings(findings: Iterable[Finding], umbrellas: frozenset[str]) -> list[Finding]:
    """By severity, precedence group, share (larger first), id; an umbrella rule is never first while there is another."""

    def key(finding: Finding) -> tuple[int, int, float, str, str]:
        place = SEVERITIES.index(finding.severity)
        return place, precedence(finding.code), -finding.share, finding.rule, finding.fingerprint

    ordered = sorted(findings, key=key)
    first = next((i for i, finding in enumerate(ordered) if finding.rule not in umbrellas), 0)
    return [ordered[first], *ordered[:first], *ordered[first + 1 :]] if ordered else []
