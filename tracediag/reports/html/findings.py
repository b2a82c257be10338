"""The findings as a list that folds: what, how much, where, the evidence, why, and the fix."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tracediag.reports import phrases
from tracediag.reports.web.markup import code, link, prose, section, table, text

if TYPE_CHECKING:
    from tracediag.findings import Finding, Report

__all__ = ["listing"]

OPEN = 3
"""Findings at medium or above that are unfolded at first."""
FULL = 60
"""Findings told in full; beyond them a line each keeps the file small."""
LOUD = ("high", "medium")


def listing(report: Report) -> str:
    """The section of findings; the advice of a rule stands once."""
    told: set[str] = set()
    parts = []
    for number, finding in enumerate(report.findings):
        parts.append(_finding(finding, number, finding.rule in told, bool(report.steps["count"])))
        told.add(finding.rule)
    together = phrases.together(report)
    body = ("".join(parts) or "<p>None of the rules found a cause.</p>\n") + (
        f'<p class="note">{text(together[:1].upper() + together[1:])}.</p>\n' if together else ""
    )
    return section("findings", "Findings", body)


def _finding(finding: Finding, number: int, told: bool, stepped: bool) -> str:
    opened = " open" if number < OPEN and finding.severity in LOUD else ""
    severity = finding.severity if finding.severity in LOUD else "low"
    body = _body(finding, told, stepped) if number < FULL else f"<p>{text(finding.message)}</p>\n"
    return (
        f'<details class="finding {severity}" id="finding-{number}" data-finding="{number}"{opened}>\n<summary>'
        f'<span><span class="badge">{text(finding.severity)}</span><h3>{text(finding.title)}</h3></span>'
        f'<span class="facts">{_facts(finding)}</span></summary>\n<div class="body">\n{body}</div>\n</details>\n'
    )


def _facts(finding: Finding) -> str:
    facts = [f"<b>{phrases.percent(finding.share)}</b> of {text(finding.share_of)}"]
    facts.append(f"<b>{phrases.speedup(finding.speedup)}</b>" if finding.speedup else phrases.speedup(None))
    facts.append(text(phrases.confidence(finding)))
    facts += [f"<code>{text(phrases.where(finding, 1))}</code>"] if finding.where else []
    return " · ".join(facts)


def _body(finding: Finding, told: bool, stepped: bool) -> str:
    more = f"<p>Lines: {code(phrases.where(finding))}</p>\n" if len(finding.where) > 1 else ""
    also = f'<p class="note">The same time also matches {", ".join(map(code, finding.also))}.</p>\n' if finding.also else ""
    advice = '<p class="note">Why and how to fix it: as above.</p>\n' if told else _advice(finding)
    rule = f'<p class="note">Rule {text(finding.code)} {code(finding.rule)}</p>\n'
    return f"<p>{text(finding.message)}</p>\n{more}{_evidence(finding, stepped)}{advice}{also}{rule}"


def _evidence(finding: Finding, stepped: bool) -> str:
    if not finding.evidence:
        return ""
    rows = [
        [
            code(row.get("op")),
            text(str(row.get("kind") or "").replace("_", " ")),
            "" if row.get("count_per_step") is None else text(phrases.number(row["count_per_step"])),
            text(phrases.duration(row.get("ms_per_step"))),
            code(phrases.shapes_of(row)),
        ]
        for row in finding.evidence
    ]
    counted = ("A step", "Time a step") if stepped else ("Count", "Time")
    return "<h4>Evidence</h4>\n" + table(["Operation", "Kind", *counted, "Shapes"], rows, frozenset({2, 3}))


def _advice(finding: Finding) -> str:
    parts = [f"<h4>Why</h4>\n<p>{prose(finding.why)}</p>\n<h4>Fix</h4>\n"]
    for fix in finding.fix:
        named = "" if fix.framework == "any" or len(finding.fix) == 1 else f' <span class="muted">({text(fix.framework)})</span>'
        parts.append(f"<p>{prose(fix.text)}{named}</p>\n")
        if fix.code:
            parts.append(f'<pre tabindex="0"><code>{escape(phrases.clean(fix.code.strip(chr(10))))}</code></pre>\n')
    if finding.changes_training:
        parts.append(f'<p class="careful">Careful, this changes the training maths: {prose(finding.changes_training)}</p>\n')
    if finding.references:
        parts.append("<h4>References</h4>\n<ul>\n" + "".join(f"<li>{link(url)}</li>\n" for url in finding.references) + "</ul>\n")
    return "".join(parts)
