"""Put a Trace and the engine's findings into the shape of a report: the run, its steps, where the time goes, the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag._version import __version__
from tracediag.findings import Report
from tracediag.problems import problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracediag.columns import Health
    from tracediag.engine import EngineResult
    from tracediag.findings import Finding
    from tracediag.trace import Trace

__all__ = ["run_facts", "script_of", "subject", "summarize", "verdict"]

LOUD = ("high", "medium")
RUN_KEYS = ("ended", "exit_code", "environment", "host", "windows")
"""Facts of run.json that a report repeats; the rest stays in the run directory."""


def summarize(trace: Trace, result: EngineResult, rules: int) -> Report:
    """The report of `trace`. rules: number of rules known."""
    parts = tuple(trace.breakdown())
    return Report(
        tool={"name": "tracediag", "version": __version__, "rules": rules},
        inputs=tuple(dict(row) for row in trace.inputs),
        run=run_facts(trace),
        health=tuple(_health_row(item) for item in trace.health),
        subject=subject(trace),
        steps=trace.step_stats(),
        device=trace.device_stats(),
        breakdown=parts,
        findings=result.findings,
        skipped=result.skipped,
        verdict=verdict(result.findings, parts),
        prediction=result.prediction,
    )


def _health_row(item: Health) -> dict[str, str]:
    """One health item with what to do about it, where the list of problems says so."""
    known = problem(item.id)
    row = {"id": item.id, "level": item.level, "message": item.message, "effect": item.effect}
    return row | ({"fix": known.fix} if known else {})


def script_of(trace: Trace) -> str | None:
    """The script or module of the run, None where the trace does not tell."""
    script = (trace.run or {}).get("script")
    return str(script) if script else None


def subject(trace: Trace) -> dict[str, Any]:
    """What the report is about: script, framework, kind of run (training, unknown)."""
    return {"script": script_of(trace), "framework": _framework(trace), "kind": "training" if trace.has_steps else "unknown"}


def run_facts(trace: Trace) -> dict[str, Any] | None:
    """Framework, versions, devices and circumstances; None for a trace that came without run.json and names no device."""
    run = trace.run or {}
    devices = [{name: value for name, value in row.items() if value is not None} for row in trace.facts.get("devices", ())]
    if not run and not devices:
        return None
    versions = {name: str(value) for name, value in (run.get("versions") or {}).items() if value}
    facts = {"framework": _framework(trace), "versions": versions, "devices": devices}
    return facts | {name: run[name] for name in RUN_KEYS if name in run}


def _framework(trace: Trace) -> str | None:
    named = (trace.run or {}).get("framework")
    return str(named) if named else "+".join(sorted(trace.frameworks)) or None


def verdict(findings: Sequence[Finding], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first finding at medium or above in one sentence; else where the time goes."""
    first = next((finding for finding in findings if finding.severity in LOUD), None)
    if first is not None:
        return {"rule": first.rule, "text": _sentence(first)}
    largest = sorted((part for part in parts if part["share"] >= 0.01), key=lambda part: -part["share"])[:3]
    where = ", ".join(f"{part['phase'] or 'unknown'} {_percent(part['share'])}" for part in largest)
    return {"rule": None, "text": f"No cause above 5 % of the step was found{f'; the time goes to {where}' if where else ''}."}


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    place = f" ({finding.where[0].file}:{finding.where[0].line})" if finding.where else ""
    whose = "of the measured time is wrong" if finding.category == "measurement" else f"of {finding.share_of}"
    return f"{title}{place}: {_percent(finding.share)} {whose}{_gain(finding)}."


def _gain(finding: Finding) -> str:
    predicted = finding.speedup
    if predicted is None or predicted.low < 1.005:
        return ""
    if predicted.high is None:
        return f"; without it a step should be at least {predicted.low:.2g} times faster"
    low, high = f"{predicted.low:.2g}", f"{predicted.high:.2g}"
    return f"; without it a step should be {low if low == high else f'{low} to {high}'} times faster"
