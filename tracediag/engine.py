"""Run rules over a trace: what applies, what they claim, who owns which time, and the ranked findings that come of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb

from tracediag import whatif
from tracediag.claims import Claim, RowError, Totals, claims_of, totals_of
from tracediag.database import share
from tracediag.evidence import evidence, fill_message, places
from tracediag.findings import Finding, Fix
from tracediag.occurs import Words
from tracediag.ownership import Owned, settle
from tracediag.rules import override_params, select_rules
from tracediag.severity import capped, order_findings, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracediag.findings import Speedup
    from tracediag.rule import Param, Rule
    from tracediag.trace import Trace

__all__ = ["TIME_LIMIT", "EngineResult", "device_types", "fingerprint", "run"]

TIME_LIMIT = 60.0
"""Seconds that the query of one rule may take: many times what the slowest needs, since a busy machine must not change a report."""


@dataclass(frozen=True)
class EngineResult:
    """findings: ranked. skipped: {rule, reason} of each rule that could not be applied, in order of code.

    claims: fingerprint of a finding -> its rows and the time that it owns (none for one priced by the step series).
    prediction: how the speed-ups were found, and all fixes together; None where there is none to tell.
    """

    findings: tuple[Finding, ...]
    skipped: tuple[dict[str, str], ...]
    claims: Mapping[str, Claim] = field(default_factory=dict, compare=False)
    prediction: dict[str, Any] | None = None

    @property
    def pairs(self) -> tuple[tuple[Finding, Claim], ...]:
        """Each finding with its claim."""
        return tuple((finding, self.claims[finding.fingerprint]) for finding in self.findings)


def run(
    trace: Trace,
    rules: Iterable[Rule],
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    min_saving: float = 0.0,
    params: Mapping[str, Mapping[str, Param]] | None = None,
    script: str | None = None,
    cap: str = "high",
    seconds: float = TIME_LIMIT,
) -> EngineResult:
    """Apply the rules to the trace.

    select, ignore: ids or codes. min_saving: percent of the step that a predicted fix must save at least. params: rule id ->
    parameter -> value. script: what the report is about, part of the fingerprints. cap: highest severity that the state of the trace
    allows. seconds: time limit of one query. Raises RuleError for an unknown rule or parameter; a rule that fails is skipped.
    """
    chosen = select_rules(override_params(rules, params or {}), select, ignore)
    by_id = {rule.id: rule for rule in chosen}
    totals, whole = totals_of(trace), totals_of(trace, warm=False)
    claims, skipped = _claims(trace, chosen, totals, whole, seconds)
    settled = settle(claims, by_id, totals)
    priced = whatif.forecast(trace, [(owned.claim, by_id[owned.claim.rule]) for owned in settled], totals)
    findings = []
    for owned, speedup in zip(settled, priced.each, strict=True):
        rule = by_id[owned.claim.rule]
        findings.append(_finding(trace, owned, rule, totals if rule.owns else whole, speedup, script, cap))
    owners = {finding.fingerprint: owned.claim for finding, owned in zip(findings, settled, strict=True)}
    kept = [finding for finding in findings if _saves(finding, min_saving)]
    umbrellas = frozenset(rule.id for rule in chosen if rule.umbrella)
    return EngineResult(tuple(order_findings(kept, umbrellas)), tuple(skipped), owners, priced.facts)


def _claims(trace: Trace, rules: Sequence[Rule], totals: Totals, whole: Totals, seconds: float) -> tuple[list[Claim], list[dict[str, str]]]:
    """The claims of all rules, and {rule, reason} of each that could not be applied; what a rule is about does not occur: neither."""
    reasons, words = _not_applicable(trace, rules), Words(trace)
    asked = {rule.id for rule in rules if rule.id not in reasons and words.meet(rule.occurs)}
    share(trace.connection(), [rule.query for rule in rules if rule.id in asked])
    claims: list[Claim] = []
    order = sorted(rules, key=lambda rule: (rule.code, rule.id))
    for rule in order:
        if rule.id in asked:
            found, reason = _apply(trace, rule, totals if rule.owns else whole, seconds)
            claims += found
            reasons |= {rule.id: reason} if reason else {}
    return claims, [{"rule": rule.id, "reason": reasons[rule.id]} for rule in order if rule.id in reasons]


def _apply(trace: Trace, rule: Rule, totals: Totals, seconds: float) -> tuple[list[Claim], str | None]:
    """The claims of one rule, or why it failed."""
    try:
        return claims_of(trace, rule, totals, seconds=seconds), None
    except duckdb.InterruptException:
        return [], f"failed: took longer than {seconds:g} s"
    except (duckdb.Error, RowError) as error:
        return [], "failed: " + str(error).strip().splitlines()[0]


def _not_applicable(trace: Trace, rules: Iterable[Rule]) -> dict[str, str]:
    """Why rules cannot judge this trace, by the id of the rule."""
    frameworks, kinds = set(trace.frameworks), device_types(trace)
    reasons = {}
    for rule in rules:
        missing = [name for name in rule.needs if not trace.has(name)]
        if frameworks and not frameworks & set(rule.frameworks):
            reasons[rule.id] = f"holds for {', '.join(rule.frameworks)}; this is {', '.join(sorted(frameworks))}"
        elif missing:
            reasons[rule.id] = f"the trace has no {', '.join(missing)}"
        elif "any" not in rule.devices and not kinds & set(rule.devices):
            reasons[rule.id] = f"holds on {', '.join(rule.devices)}; this trace is of {', '.join(sorted(kinds))}"
    return reasons


def device_types(trace: Trace) -> set[str]:
    """cpu where no device took part, else the types of the devices that did: gpu, tpu, ..."""
    if not trace.has_device:
        return {"cpu"}
    rows = trace.connection().execute("SELECT DISTINCT device FROM ops WHERE place = 'device' AND device IS NOT NULL").fetchall()
    known = dict(trace.connection().execute("SELECT device, type FROM devices WHERE type IS NOT NULL").fetchall())
    return {known.get(name) or _type_by_name(name) for (name,) in rows} or {"gpu"}


def _type_by_name(device: str) -> str:
    match = re.match(r"[a-z]+", device.lower().lstrip("/").removeprefix("device:"))
    word = match[0] if match else ""
    return word if word in ("tpu", "xpu", "npu", "cpu") else "gpu"


def _finding(trace: Trace, owned: Owned, rule: Rule, totals: Totals, speedup: Speedup | None, script: str | None, cap: str) -> Finding:
    claim = owned.claim
    return Finding(
        rule=rule.id,
        code=rule.code,
        title=rule.title,
        category=rule.category,
        severity=capped(severity_of(claim.share, rule.severity, claim.confidence), cap),
        confidence=claim.confidence,
        share=round(claim.share, 6),
        speedup=speedup,
        message=fill_message(rule.message, _facts(claim, rule, totals, _whole(trace, claim, rule))),
        where=places(trace, claim),
        evidence=evidence(trace, claim, totals),
        why=rule.why,
        fix=_fixes(trace, rule),
        changes_training=rule.changes_training,
        references=rule.references,
        also=tuple(sorted(owned.also)),
        fingerprint=fingerprint(rule.id, script, claim.group),
        share_of=_whole(trace, claim, rule),
    )


def _fixes(trace: Trace, rule: Rule) -> tuple[Fix, ...]:
    """The fixes for the trace's framework (Keras runs on any); all of them where none is for it."""
    frameworks = {*trace.frameworks, "any", "keras"}
    return tuple(fix for fix in rule.fix if fix.framework in frameworks) or rule.fix


def _whole(trace: Trace, claim: Claim, rule: Rule) -> str:
    """What the share of a claim is a part of, in words."""
    if claim.by_series or rule.category == "measurement":
        return "the measured time"
    return "the step" if trace.has_steps else "the recorded time"


def _facts(claim: Claim, rule: Rule, totals: Totals, whole: str) -> dict[str, object]:
    """What a message may name: columns of the first row, parameters, and the engine's own facts."""
    base = totals.series_ns / len(totals.series_steps) if claim.by_series else totals.step_ns / (totals.count * totals.ranks)
    return {**rule.params, **claim.facts, "percent": claim.share * 100, "ms_per_step": claim.share * base / 1e6, "whole": whole}


def _saves(finding: Finding, percent: float) -> bool:
    return finding.speedup is None or 100 * (1 - 1 / finding.speedup.low) >= percent


def fingerprint(rule: str, script: str | None, group: str) -> str:
    """16 hex digits that stay the same from run to run for one cause in one script."""
    text: Sequence[str] = (rule, script or "", group)
    return hashlib.sha256("\0".join(text).encode()).hexdigest()[:16]
