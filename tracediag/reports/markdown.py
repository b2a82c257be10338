"""The report as Markdown for GitHub: what `profile` leaves as report.md and what `attach` posts; never longer than a comment may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import gfm, phrases
from tracediag.reports.budget import Loss, Part, fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracediag.findings import Finding, Report

__all__ = ["NOTE", "breakdown", "render"]

ROWS = 10
"""Rows of evidence shown; JSON has them all."""
BAR = 20
STEP = "the step"
PLACES = {"host_ms": "host", "device_ms": "device", "idle_ms": "idle"}
MARKS = {"high": "🔴", "medium": "🟠", "low": "🟡", "info": "⚪", "error": "⛔", "warning": "⚠️"}
NOTE = "*Left out to stay under the length of a comment: {}. `--format json` has everything.*"
INPUTS = 8
TITLE, NAME, PROSE, CODE = 160, 160, 1500, 4000
"""Characters that a title, a name, a paragraph and a snippet may have."""
INFO, EVIDENCE, ADVICE, ROW, TIME, HEALTH = range(6)
"""What gives way first, in this order; of findings the last one before the others."""


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown of at most `budget.LIMIT` characters; nothing out of the trace formats, links or pings."""
    return fit(list(_parts(report)), note=NOTE).rstrip("\n") + "\n"


def _parts(report: Report) -> Iterator[Part]:
    facts = [gfm.text(phrases.clip(phrases.head(report), 400)), f"Step: {phrases.step_line(report.steps)}"]
    if report.device is not None:
        facts.append(f"Device: {phrases.device_line(report.device)}")
    yield Part(f"## {gfm.text(phrases.clip(report.verdict['text'], 600))}\n\n{'<br>'.join(facts)}\n\n")
    yield from _findings(report)
    if report.breakdown:
        yield Part(f"{breakdown(report.breakdown)}\n\n", (Loss((TIME,), "table of where the time goes"),))
    for note in report.health:
        if note["level"] != "info":
            yield Part(f"{MARKS[note['level']]} {_note(note)}\n\n", (Loss((HEALTH,), "problems of the trace"),))
    yield Part(_environment(report), (Loss((INFO,), "list of the environment"),))


def _findings(report: Report) -> Iterator[Part]:
    """The table of findings, then the evidence and fix of each, folded."""
    if not report.findings:
        return
    yield Part(gfm.table(["", "Cause", "Line", "Of the step", "If fixed", "Sure"], "lllrrl", ()) + "\n")
    count = len(report.findings)
    for i, finding in enumerate(report.findings):
        yield Part(f"{_row(finding)}\n", (Loss((ROW, count - i), "rows of the table of findings"),))
    together = phrases.together(report)
    yield Part(f"\n{gfm.text(phrases.clip(together[:1].upper() + together[1:], 600))}.\n\n" if together else "\n")
    told: set[str] = set()
    for i, finding in enumerate(report.findings):
        whole, brief = (_folded(i, finding, finding.rule in told, evidence) for evidence in (True, False))
        told.add(finding.rule)
        less = Loss((EVIDENCE, count - i), "tables of evidence", brief), Loss((ADVICE, count - i), "explanations with their fixes")
        yield Part(whole, less if finding.evidence else less[1:])


def _row(finding: Finding) -> str:
    cells = [
        f"{MARKS[finding.severity]}&nbsp;{finding.severity}",
        f"{gfm.text(phrases.clip(finding.title, TITLE))} {gfm.cell(finding.code)}",
        ", ".join(gfm.cell(phrases.shorten(f"{spot.file}:{spot.line}", NAME)) for spot in finding.where[:1]),
        phrases.percent(finding.share) + ("" if finding.share_of == STEP else f" of {gfm.text(phrases.clip(finding.share_of, NAME))}"),
        "" if finding.speedup is None else phrases.speedup(finding.speedup),
        finding.confidence,
    ]
    return f"| {' | '.join(cells)} |"


def _folded(i: int, finding: Finding, again: bool, evidence: bool) -> str:
    """again: a finding of the same rule stands above, with the same advice. evidence: with the table of ops."""
    title = f"<b>{i + 1}. {gfm.html(phrases.clip(finding.title, TITLE))}</b>: why, and how to fix it"
    blocks = [gfm.text(phrases.clip(finding.message, PROSE)), *_places(finding)]
    if evidence and finding.evidence:
        blocks.append(_evidence(finding))
    blocks += ["Why, and how to fix it: as above."] if again else _advice(finding)
    facts = [phrases.speedup(finding.speedup), phrases.confidence(finding), f"rule {gfm.code(phrases.clip(finding.rule, NAME))}"]
    also = ", ".join(gfm.code(phrases.clip(rule, NAME)) for rule in finding.also[:ROWS])
    blocks.append(" · ".join([*facts, *([f"the same time also matches {also}"] if also else [])]))
    return gfm.details(title, "\n\n".join(blocks)) + "\n\n"


def _places(finding: Finding) -> Iterator[str]:
    if finding.where:
        named = ", ".join(gfm.code(phrases.shorten(phrases.place(spot), NAME)) for spot in finding.where[:ROWS])
        yield f"Line: {named}{' and more' if len(finding.where) > ROWS else ''}"


def _evidence(finding: Finding) -> str:
    rows = []
    for row in finding.evidence[:ROWS]:
        count = row.get("count_per_step")
        names = [gfm.cell(phrases.shorten(row.get(key) or "", NAME)) for key in ("op", "kind")]
        figures = ["" if count is None else phrases.number(count), phrases.duration(row.get("ms_per_step"))]
        rows.append([*names, *figures, gfm.cell(phrases.shorten(phrases.shapes_of(row), NAME))])
    return gfm.table(["op", "kind", "a step", "time a step", "shapes"], "llrrl", rows)


def _advice(finding: Finding) -> Iterator[str]:
    yield f"**Why.** {gfm.prose(phrases.clip(finding.why, PROSE))}"
    for fix in finding.fix:
        named = "" if fix.framework == "any" else f" ({fix.framework})"
        yield f"**Fix{named}.** {gfm.prose(phrases.clip(fix.text, PROSE))}"
        if fix.code:
            yield gfm.fenced(fix.code[:CODE], "python")
    if finding.changes_training:
        yield f"**Careful:** changes the training maths: {gfm.prose(phrases.clip(finding.changes_training, PROSE))}"
    if finding.references:
        yield "See " + ", ".join(gfm.link(phrases.clip(url, 2 * NAME)) for url in finding.references[:ROWS])


def breakdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Where a step's time goes, as a table with bars; phases and places without time are left out."""
    parts = [part for part in rows if part["share"] > 0]
    places = [key for key in PLACES if any(part[key] for part in parts)]
    cells = [
        [
            part["phase"] or "unknown",
            phrases.bar(part, BAR),
            phrases.percent(part["share"]),
            *(phrases.duration(part[key]) for key in places),
        ]
        for part in parts
    ]
    head = ["Time of a step", "", "part", *(PLACES[key] for key in places)]
    return gfm.table(head, "ll" + "r" * (len(head) - 2), cells)


def _note(note: Mapping[str, Any]) -> str:
    effect = f" ({gfm.text(phrases.clip(note['effect'], PROSE))})" if note.get("effect") else ""
    return f"{note['level']}: {gfm.text(phrases.clip(note['message'], PROSE))}{effect}"


def _environment(report: Report) -> str:
    """What was run and read, how it was judged, and remarks on the trace, folded."""
    run = report.run or {}
    versions = [f"{name} {version}" for name, version in sorted((run.get("versions") or {}).items()) if version]
    devices = phrases.devices(run)
    lines = [
        *([f"Versions: {gfm.text(phrases.clip(', '.join(versions), PROSE))}"] if versions else []),
        *([f"Devices: {gfm.text(phrases.clip(', '.join(devices), PROSE))}"] if devices else []),
        *(f"Read: {_input(row)}" for row in report.inputs[:INPUTS]),
        *([f"and {len(report.inputs) - INPUTS} more files"] if len(report.inputs) > INPUTS else []),
        *(_note(note) for note in report.health[:ROWS] if note["level"] == "info"),
        *(gfm.text(phrases.clip(failed, PROSE)) for failed in phrases.failed(report)[:ROWS]),
        *([phrases.skipped(report)] if report.skipped else []),
    ]
    title = f"{gfm.html(report.tool['name'])} {gfm.html(report.tool['version'])}: environment, and health of the trace"
    return gfm.details(title, "\n".join(f"- {line}" for line in lines))


def _input(row: Mapping[str, Any]) -> str:
    rank = "" if row.get("rank") is None else f", rank {row['rank']}"
    name = gfm.code(phrases.shorten(row["path"], NAME))
    return f"{name} ({gfm.text(row['format'])}, {phrases.number(row['events'])} events{rank})"
