"""The report as one HTML file; with an excerpt of the trace it draws that too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases
from tracediag.reports.html import drawings, sections
from tracediag.reports.web import DRAWING, LIBRARY, document

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["render"]

SCRIPTS = (LIBRARY, *DRAWING, "optable.js", "charts.js", "report.js")


def render(report: Report, excerpt: dict[str, Any] | None = None) -> str:
    """The whole page. excerpt: of the trace (see `tracediag.excerpt`); without one there is no timeline, and no script at all."""
    title = f"tracediag · {phrases.line(report.subject.get('script') or 'report')}"
    drawn = drawings.sections(report, excerpt) if excerpt else ""
    main = f"<main>\n{sections.before(report)}{drawn}{sections.after(report)}</main>\n"
    body = sections.top(report, bool(excerpt)) + main
    return document(title, body, SCRIPTS if excerpt else (), {"excerpt": excerpt} if excerpt else None)
