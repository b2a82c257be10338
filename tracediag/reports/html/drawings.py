"""The places of the page that a script fills from the excerpt: timeline, operations, steps and memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases
from tracediag.reports.web.markup import section, text
from tracediag.reports.web.timeline import NO_SCRIPT, timeline

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["sections"]

MS = 1e6


def sections(report: Report, excerpt: dict[str, Any]) -> str:
    """The sections, empty but for what can be said without drawing."""
    names = [
        (i, f"{finding.code} {finding.title} ({phrases.percent(finding.share)})")
        for i, (finding, mark) in enumerate(zip(report.findings, excerpt["marks"], strict=False))
        if mark["start"] or mark["events"] or mark["gaps"]  # else it is about other steps than those drawn
    ]
    return NO_SCRIPT + section("timeline", "Timeline", timeline(excerpt, names)) + _operations(excerpt) + _series(excerpt)


def _operations(excerpt: dict[str, Any]) -> str:
    steps, rest = excerpt["ops"]["steps"], excerpt["ops"]["left_out"]
    told = f"Mean of {phrases.number(steps)} steps." if excerpt["steps"] else "Sums over all that was recorded."
    told += " Own time is without what runs inside."
    if rest["rows"]:
        told += (
            f" {phrases.number(rest['rows'])} more names with {phrases.duration(rest['self'] / steps / MS)} own time in all are left out."
        )
    body = f"""<p class="note">{text(told)}</p>
<div class="tools"><label>Search <input type="search" id="search" placeholder="name or kind" autocomplete="off" spellcheck="false"></label>
<span class="note" id="found" role="status"></span></div>
<div class="scroll"><table id="ops"><thead></thead><tbody></tbody></table></div>
<div class="tools"><button type="button" id="more" hidden>Show all</button></div>
"""
    return section("operations", "Operations", body)


def _series(excerpt: dict[str, Any]) -> str:
    charts = ""
    if excerpt["series"]:
        note = "" if excerpt["series"]["whole"] else '<p class="note">Recorded steps only; the trace does not tell the others.</p>'
        charts += f'<div class="chart" id="steps-chart"><h3>Step time</h3>{note}</div>\n'
    charts += '<div id="memory-charts"></div>\n' if excerpt["memory"] else ""
    told = {"series": "No step is known.", "memory": "No allocations of any size are in the trace."}
    missing = " ".join(words for key, words in told.items() if not excerpt[key])
    note = f'<p class="note">{missing}</p>\n' if missing else ""
    return section("series", "Over time", charts + note)
