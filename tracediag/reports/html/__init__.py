"""The report as one HTML file that needs nothing else: no network and no script but its own; with an excerpt of the trace it draws it."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases
from tracediag.reports.html import drawings, sections
from tracediag.reports.html.markup import text

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["render"]

SCRIPTS = ("uPlot.iife.min.js", "format.js", "tracks.js", "timeline.js", "control.js", "optable.js", "charts.js", "save.js", "main.js")
"""In this order. uPlot (MIT) draws the series. The timeline is our own: the chart libraries that could draw one are ten times the size of
all this, and none has lanes, nesting and keys."""


def render(report: Report, excerpt: dict[str, Any] | None = None) -> str:
    """The whole page. excerpt: of the trace (see `tracediag.excerpt`); without one there is no timeline, and no script at all.

    Every name out of the trace is escaped text, or JSON in a block that no browser runs. The policy in the page allows the scripts and
    styles whose hashes it names, and no request of any kind.
    """
    style = _asset("page.css") + (_asset("uPlot.min.css") if excerpt else "")
    script = f"/*\n{_asset('uPlot.LICENSE')}*/\n" + "".join(map(_asset, SCRIPTS)) if excerpt else ""
    title = phrases.line(report.subject.get("script") or "report")
    shown = drawings.sections(report, excerpt) if excerpt else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>tracediag · {text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{sections.top(report, bool(excerpt))}<main>\n{sections.before(report)}{shown}{sections.after(report)}</main>\n"
        f"{_scripts(excerpt, script)}</body>\n</html>\n"
    )


def _scripts(excerpt: dict[str, Any] | None, script: str) -> str:
    if not excerpt:
        return ""
    return f'<script type="application/json" id="excerpt">{_data(excerpt)}</script>\n<script>{script}</script>\n'


def _data(excerpt: dict[str, Any]) -> str:
    """JSON that cannot end its element: ASCII, with the signs of markup written as escapes."""
    told = json.dumps(excerpt, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _asset(name: str) -> str:
    """A file of the folder `assets`, with one newline at its end."""
    return (files("tracediag.reports.html") / "assets" / name).read_text(encoding="utf-8").rstrip() + "\n"


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing but this style and, if there is one, this script."""
    allowed = f"'{_hash(script)}'" if script else "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
