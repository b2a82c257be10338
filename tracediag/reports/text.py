"""The report for a terminal: verdict, step, breakdown, findings with evidence, line and fix, health of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediag.reports import phrases
from tracediag.reports.terminal import LABEL, LEAST_WIDTH, STYLES, WIDTH, labelled, printed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from tracediag.findings import Finding, Fix, Report

__all__ = ["render"]

ROWS = 5
"""Rows of evidence shown; JSON has them all."""
BAR = 30


def render(report: Report, *, width: int = WIDTH, color: bool = False) -> str:
    """The report as lines of at most `width` columns, with terminal colours if `color`."""
    return printed(_blocks(report, max(width, LEAST_WIDTH)), width, color=color)


def _blocks(report: Report, width: int) -> Iterator[RenderableType]:
    yield Text(phrases.head(report), style="dim")
    yield Text()
    yield Padding(Text(phrases.line(report.verdict["text"]), style="bold"), (0, 0, 0, 2))
    yield Text()
    yield _facts(report)
    loud = [f for f in report.findings if f.severity in ("high", "medium")]
    told: set[str] = set()
    for finding in loud:
        yield Text()
        yield from _finding(finding, width, again=finding.rule in told)
        told.add(finding.rule)
    quiet = [f for f in report.findings if f.severity not in ("high", "medium")]
    if quiet:
        yield Text()
        yield _quiet(quiet)
    together = phrases.together(report)
    if together:
        yield Text()
        yield labelled([("Savings", Text(together))])
    notes = list(_notes(report))
    if notes:
        yield Text()
        yield labelled(notes)


def _facts(report: Report) -> Table:
    rows: list[tuple[str, RenderableType]] = [("Step", Text(phrases.step_line(report.steps)))]
    if report.device is not None:
        rows.append(("Device", Text(phrases.device_line(report.device))))
    for i, part in enumerate(part for part in report.breakdown if part["share"] > 0):
        rows.append(("Time" if i == 0 else "", _bar(part)))
    return labelled(rows)


def _bar(part: dict[str, Any]) -> Text:
    """Phase, share, time a step and a bar."""
    whole = part["host_ms"] + part["device_ms"] + part["idle_ms"]
    row = Text(f"{part['phase'] or 'unknown':<10}{phrases.percent(part['share']):>9}{phrases.duration(whole):>10}  ")
    return row.append(phrases.bar(part, BAR), style="blue")


def _finding(finding: Finding, width: int, again: bool) -> Iterator[RenderableType]:
    """again: a finding of the same rule stands above, with the same advice."""
    title = Text(f"{finding.severity.upper():<{LABEL}}", style=STYLES[finding.severity])
    title.append(phrases.line(finding.title), style="bold")
    yield title.append(f"  {finding.code} {finding.rule}", style="dim")
    facts = [f"{phrases.percent(finding.share)} of {finding.share_of}", phrases.speedup(finding.speedup), phrases.confidence(finding)]
    rows: list[tuple[str, RenderableType]] = [("", Text(" · ".join(facts)))]
    if finding.where:
        rows.append(("Line", Text(phrases.where(finding), style="bold")))
    rows.append(("What", Text(phrases.line(finding.message))))
    if finding.evidence:
        rows.append(("Evidence", _evidence(finding, width)))
    if again:
        rows.append(("Why, fix", Text("as above")))
    else:
        rows += _advice(finding)
    if finding.also:
        rows.append(("Also", Text(f"the same time also matches {', '.join(map(phrases.line, finding.also))}", style="dim")))
    yield labelled(rows)


def _advice(finding: Finding) -> Iterator[tuple[str, RenderableType]]:
    yield "Why", Text(phrases.lead(finding.why, 260))
    blocks = (block for fix in finding.fix for block in _fix(fix, named=len({f.framework for f in finding.fix}) > 1))
    for i, block in enumerate(blocks):
        yield ("Fix" if i == 0 else ""), block
    if finding.changes_training:
        yield "Careful", Text(f"changes the training maths: {phrases.line(finding.changes_training)}", style="yellow")


def _evidence(finding: Finding, width: int) -> Table:
    kinds = max(len(str(row.get("kind") or "")) for row in finding.evidence)
    free = max(width - LABEL - kinds - 24, 28)  # 24: count, time and the space between columns
    widest = min(free - 14, max(len(str(row.get("op"))) for row in finding.evidence))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("op", "kind", "a step", "time", "shapes"):
        table.add_column(heading, justify="right" if heading in ("a step", "time") else "left", no_wrap=True)
    for row in finding.evidence[:ROWS]:
        count = row.get("count_per_step")
        table.add_row(
            Text(phrases.shorten(row.get("op") or "", widest)),
            Text(phrases.line(row.get("kind") or "")),
            Text("" if count is None else phrases.number(count)),
            Text(phrases.duration(row.get("ms_per_step"))),
            Text(phrases.clip(phrases.shapes_of(row), free - widest)),
        )
    if len(finding.evidence) > ROWS:
        table.add_row(Text(f"{len(finding.evidence) - ROWS} more in JSON", style="dim"))
    return table


def _fix(fix: Fix, *, named: bool) -> Iterator[RenderableType]:
    framework = f"{fix.framework}: " if named and fix.framework != "any" else ""
    yield Text(framework + phrases.line(fix.text))
    if fix.code:
        yield Padding(Text(phrases.clean(fix.code.strip("\n")), style="green"), (0, 0, 0, 2))


def _quiet(findings: list[Finding]) -> Table:
    rows: list[tuple[str, RenderableType]] = []
    for finding in findings:
        where = phrases.where(finding, most=1)
        gain = phrases.speedup(finding.speedup) if finding.speedup else ""
        facts = [f"{phrases.percent(finding.share)} of {finding.share_of}", gain, where, finding.rule]
        told = f"{phrases.line(finding.title)}: {', '.join(fact for fact in facts if fact)}"
        rows.append((finding.severity, Text(told)))
    return labelled(rows)


def _notes(report: Report) -> Iterator[tuple[str, RenderableType]]:
    for note in report.health:
        text = Text(f"{note['level']}: ", style=STYLES.get(note["level"], ""))
        text.append(phrases.line(note["message"]), style="default")
        yield "Trace", text.append(f" ({phrases.line(note['effect'])})" if note.get("effect") else "", style="dim")
    for failed in phrases.failed(report):
        yield "Rules", Text(failed, style=STYLES["warning"])
    if report.skipped:
        yield "Rules", Text(f"{phrases.skipped(report)} (reasons: --format json)", style="dim")
