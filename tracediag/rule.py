"""What a rule is: frozen dataclasses, one field for each field of a rule file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracediag.findings import Fix

__all__ = ["OWNING_MIN_SHARE", "Param", "Rule", "RuleTest", "Saving"]

Param = int | float | str

OWNING_MIN_SHARE = 0.03
"""Smallest share of the step worth a finding, where a rule sets no parameter `min_share`."""


@dataclass(frozen=True)
class Saving:
    """What the fix does to the claimed work.

    transform: drop (it goes, host calls and device work alike), keep (a fraction of both stays), at_least (the fraction keep_high stays
    at most, how much less is open), scale (the device work shrinks to a fraction, the calls that launch it stay; without a device as
    keep), scale_bytes (scale to the query's `bytes_after` of `bytes_now` at the bandwidth measured in this trace), merge_launches (the
    calls and the pauses between device ops shrink to a fraction, the device work stays), none (no prediction).
    keep_low, keep_high: fraction of the claimed time that stays, where the query does not say it row by row.
    """

    transform: str
    keep_low: float | None = None
    keep_high: float | None = None


@dataclass(frozen=True)
class RuleTest:
    """A test inside a rule file.

    given: table -> rows, and `framework`, `run` (see `Trace.from_rows`). expect: fires, and any of confidence, share, group, severity,
    message_contains.
    """

    name: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule file. `query` is one SELECT that returns a row per claimed op, gap or step; see docs/writing-rules.

    occurs: words that must occur for the query to return anything (see `occurs.Words.meet`); without them it is not run.
    """

    id: str
    code: str
    title: str
    category: str
    frameworks: tuple[str, ...]
    severity: str
    confidence: str
    needs: tuple[str, ...]
    devices: tuple[str, ...]
    occurs: tuple[str, ...]
    summary: str
    why: str
    fix: tuple[Fix, ...]
    changes_training: str | None
    params: Mapping[str, Param]
    umbrella: bool
    owns: bool
    query: str
    saving: Saving
    message: str
    excludes: tuple[str, ...]
    references: tuple[str, ...]
    since: str
    tests: tuple[RuleTest, ...]
    path: str

    @property
    def min_share(self) -> float:
        """Smallest share of the step that makes a finding: parameter `min_share`, else 3 % (0 for rules that own no time)."""
        return float(self.params.get("min_share", OWNING_MIN_SHARE if self.owns else 0.0))
