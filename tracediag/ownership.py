"""Which rule owns which time: one piece of time goes to one claim, in the order of precedence; the others become `also` of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tracediag import intervals
from tracediag.severity import precedence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracediag.claims import Claim, Totals
    from tracediag.columns import IntArray
    from tracediag.rule import Rule

__all__ = ["Owned", "settle"]

MIN_LEFT = 0.3
"""A claim of which less than this part is left is no finding of its own."""

MIN_SHARED = 0.1
"""An umbrella finding names the owners of at least this part of its claim."""


@dataclass
class Owned:
    """A claim cut down to the time that it owns, and the rules that also matched that time."""

    claim: Claim
    also: set[str] = field(default_factory=set)


@dataclass
class _Ledger:
    """What has been given away so far. taken: merged intervals; series: ns taken of each unprofiled step, shape (m,)."""

    totals: Totals
    taken: intervals.Spans = field(default_factory=intervals.empty)
    series: IntArray = field(init=False)
    owned: list[Owned] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.series = np.zeros(len(self.totals.series_steps), np.int64)

    def left(self, claim: Claim) -> Claim:
        """The claim without what others own. Of a step of the series, claims are taken to mean the same time as far as they can."""
        starts, ends = intervals.subtract(claim.spans, self.taken)
        rest = np.maximum(claim.series_claims - self.series[np.searchsorted(self.totals.series_steps, claim.series_steps)], 0)
        cut = replace(claim, starts=starts, ends=ends, series_claims=rest)
        return replace(cut, share=cut.measure(self.totals))

    def give(self, claim: Claim) -> None:
        """Enter what the claim owns."""
        self.owned.append(Owned(claim))
        self.taken = intervals.merge(np.concatenate([self.taken[0], claim.starts]), np.concatenate([self.taken[1], claim.ends]))
        self.series[np.searchsorted(self.totals.series_steps, claim.series_steps)] += claim.series_claims


def settle(claims: Sequence[Claim], rules: Mapping[str, Rule], totals: Totals) -> list[Owned]:
    """The claims that become findings, each with the time it owns; rules that own no time keep their whole claim."""
    big_enough = [claim for claim in claims if claim.share >= rules[claim.rule].min_share]
    owning = sorted((claim for claim in big_enough if rules[claim.rule].owns), key=_order)
    ledger = _Ledger(totals)
    for claim in _excluders_first(owning, rules):
        _place(claim, rules, ledger)
    others = [_free(claim, rules, ledger.owned, totals) for claim in sorted(big_enough, key=_order) if not rules[claim.rule].owns]
    return others + ledger.owned


def _order(claim: Claim) -> tuple[int, bool, float, str, str, str]:
    """By precedence, the larger first; but what an optimizer does to an embedding table is the table's, be there one or many of them."""
    return precedence(claim.code), claim.code[0] != "E", -claim.share, claim.code, claim.rule, claim.group


def _excluders_first(claims: Sequence[Claim], rules: Mapping[str, Rule]) -> Iterator[Claim]:
    """The claims in their order, but a claim of a rule that excludes another's claim on the same time comes before that one."""
    done: set[int] = set()

    def visit(claim: Claim) -> Iterator[Claim]:
        if id(claim) in done:
            return
        done.add(id(claim))
        for other in claims:
            if claim.rule in rules[other.rule].excludes and _common(claim, other) > 0:
                yield from visit(other)
        yield claim

    for claim in claims:
        yield from visit(claim)


def _place(claim: Claim, rules: Mapping[str, Rule], ledger: _Ledger) -> None:
    excluder = next((o for o in ledger.owned if claim.rule in rules[o.claim.rule].excludes and _common(claim, o.claim) > 0), None)
    left = ledger.left(claim)
    if excluder is None and left.share >= MIN_LEFT * claim.share and left.share >= rules[claim.rule].min_share:
        ledger.give(left)
        return
    shared = [_common(claim, owned.claim) for owned in ledger.owned]
    owner = excluder or (ledger.owned[int(np.argmax(shared))] if shared else None)
    if owner is not None and owner.claim.rule != claim.rule:
        owner.also.add(claim.rule)


def _free(claim: Claim, rules: Mapping[str, Rule], owned: Sequence[Owned], totals: Totals) -> Owned:
    """A claim of a rule that owns nothing; an umbrella names the rules that explain its time."""
    if not rules[claim.rule].umbrella:
        return Owned(claim)
    size = intervals.total(claim.spans) + claim.series_ns
    explain = {other.claim.rule for other in owned if _common(claim, other.claim) >= max(MIN_SHARED * size, 1)}
    return Owned(claim, explain)


def _common(a: Claim, b: Claim) -> int:
    """Time that both claim, in ns: of the recorded steps, and of the series."""
    _, in_a, in_b = np.intersect1d(a.series_steps, b.series_steps, assume_unique=True, return_indices=True)
    series = int(np.minimum(a.series_claims[in_a], b.series_claims[in_b]).sum())
    few, many = sorted((a, b), key=lambda claim: len(claim.starts))
    return int(intervals.overlap(many.spans, few.starts, few.ends).sum()) + series
