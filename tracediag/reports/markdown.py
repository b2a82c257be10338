"""The report as Markdown: what `profile` leaves beside the trace as report.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediag.reports import phrases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.findings import Finding, Report

__all__ = ["render"]

ROWS = 10
"""Rows of evidence shown; JSON has them all."""
SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~!$"} | {"&": "&amp;"})


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; names out of the trace can neither format nor link; prose of rules may."""
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_text(report.verdict['text'])}\n"
    yield f"{_text(phrases.head(report))}\n"
    yield f"- Step: {phrases.step_line(report.steps)}"
    if report.device is not None:
        yield f"- Device: {phrases.device_line(report.device)}"
    yield ""
    yield from _breakdown(report)
    told: set[str] = set()
    for finding in report.findings:
        yield from _finding(finding)
        yield from _advice(finding) if finding.rule not in told else ("Why and how to fix it: as above.\n",)
        told.add(finding.rule)
    together = phrases.together(report)
    if together:
        yield f"Savings: {_text(together)}\n"
    if report.health or report.skipped:
        yield "## The trace\n"
    for note in report.health:
        yield f"- {note['level']}: {_text(note['message'])} ({_text(note['effect'])})"
    if report.skipped:
        yield "".join(f"- {_text(failed)}\n" for failed in phrases.failed(report)) + f"- {phrases.skipped(report)}"


def _breakdown(report: Report) -> Iterator[str]:
    if not report.breakdown:
        return
    yield "| phase | share | host | device | idle |\n|---|--:|--:|--:|--:|"
    for part in report.breakdown:
        times = " | ".join(phrases.duration(part[key]) for key in ("host_ms", "device_ms", "idle_ms"))
        yield f"| {part['phase'] or 'unknown'} | {phrases.percent(part['share'])} | {times} |"
    yield ""


def _finding(finding: Finding) -> Iterator[str]:
    facts = [
        finding.severity,
        f"{phrases.percent(finding.share)} of {finding.share_of}",
        phrases.speedup(finding.speedup),
        phrases.confidence(finding),
        f"`{finding.rule}` ({finding.code})",
    ]
    yield f"## {_text(finding.title)}\n"
    yield f"**{' · '.join(facts)}**\n"
    if finding.where:
        yield f"Line: {_code(phrases.where(finding))}\n"
    yield f"{_text(finding.message)}\n"
    yield from _evidence(finding)
    if finding.also:
        yield f"The same time also matches: {', '.join(_code(rule) for rule in finding.also)}\n"


def _advice(finding: Finding) -> Iterator[str]:
    yield f"{phrases.line(finding.why)}\n"
    for fix in finding.fix:
        named = "" if fix.framework == "any" else f" ({fix.framework})"
        yield f"Fix{named}: {phrases.line(fix.text)}\n"
        if fix.code:
            yield _fenced(fix.code)
    if finding.changes_training:
        yield f"Changes the training maths: {phrases.line(finding.changes_training)}\n"
    if finding.references:
        yield "\n".join(f"- <{phrases.line(url).translate(str.maketrans('', '', '<> '))}>" for url in finding.references) + "\n"


def _evidence(finding: Finding) -> Iterator[str]:
    if not finding.evidence:
        return
    yield "| op | kind | a step | time a step | shapes |\n|---|---|--:|--:|---|"
    for row in finding.evidence[:ROWS]:
        count = row.get("count_per_step")
        cells = [_cell(row.get("op")), _cell(row.get("kind")), "" if count is None else phrases.number(count)]
        yield f"| {' | '.join(cells)} | {phrases.duration(row.get('ms_per_step'))} | {_cell(phrases.shapes_of(row))} |"
    yield ""


def _text(value: object) -> str:
    return phrases.line(value).translate(SPECIAL)


def _code(value: object) -> str:
    """A code span; backticks inside become quotes."""
    return f"`{phrases.line(value).replace('`', chr(39))}`"


def _cell(value: object) -> str:
    """A code span in a table, where a pipe ends the cell even inside code."""
    return _code(value).replace("|", "\\|") if value else ""


def _fenced(code: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}python\n{phrases.clean(code.strip(chr(10)))}\n{fence}\n"
