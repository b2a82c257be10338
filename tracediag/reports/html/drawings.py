"""The places of the page that a script fills from the excerpt: timeline, operations, steps and memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases
from tracediag.reports.html.markup import swatch, text

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["sections"]

MS = 1e6
PHASES = ("forward", "backward", "optimizer", "comm", "input", "other")
MAX_CHOICE = 90

KEYS = """<details class="note keys"><summary>Mouse, fingers and keys</summary>
<p id="keys">Drag to move, <kbd>Ctrl</kbd> and the wheel or two fingers to zoom, double-click to zoom on an event.
Keys: <kbd>&larr;</kbd> <kbd>&rarr;</kbd> move, <kbd>&uarr;</kbd> <kbd>&darr;</kbd> lanes, <kbd>+</kbd> <kbd>&minus;</kbd> zoom,
<kbd>0</kbd> fit, <kbd>.</kbd> <kbd>,</kbd> next and previous event (of the highlighted ones, if any), <kbd>Enter</kbd> zoom on it,
<kbd>Esc</kbd> let go.</p></details>
"""


def sections(report: Report, excerpt: dict[str, Any]) -> str:
    """The sections, empty but for what can be said without drawing."""
    return (
        "<noscript><p>The timeline, the operations and the curves are drawn by a script, which does not run here.</p></noscript>\n"
        + _timeline(report, excerpt)
        + _operations(excerpt)
        + _series(excerpt)
    )


def _timeline(report: Report, excerpt: dict[str, Any]) -> str:
    names = [f"{finding.code} {finding.title} ({phrases.percent(finding.share)})" for finding in report.findings]
    choices = "".join(f'<option value="{i}">{text(phrases.clip(name, MAX_CHOICE))}</option>' for i, name in enumerate(names))
    legend = "".join(f"<li>{swatch(name)}{'communication' if name == 'comm' else name}</li>" for name in _phases(excerpt))
    return f"""<section id="timeline" aria-labelledby="timeline-title">
<h2 id="timeline-title">Timeline</h2>
<p class="note">{text(_caption(excerpt))}</p>
<div class="tools" role="toolbar" aria-label="Timeline">
<label>Highlight <select id="highlight"><option value="">no finding</option>{choices}</select></label>
<button type="button" id="zoom-in" aria-label="Zoom in">+</button><button type="button" id="zoom-out" aria-label="Zoom out">&minus;</button>
<button type="button" id="zoom-fit">Fit</button>
<button type="button" id="previous" aria-label="Previous highlighted event" disabled>&lsaquo;</button>
<button type="button" id="next" aria-label="Next highlighted event" disabled>&rsaquo;</button>
<button type="button" id="save" class="end">Save for Perfetto</button>
</div>
<div class="view" id="view" tabindex="0" role="group" aria-label="Timeline of the excerpt" aria-describedby="keys"><div id="space"><canvas
 id="canvas" aria-hidden="true"></canvas></div></div>
<div class="tip" id="tip" hidden></div>
<ul class="legend" aria-label="Colours">{legend}<li>hatched: nothing runs</li></ul>
<div class="chosen" id="chosen" role="status"><span class="muted">Choose an event to see what it is.</span></div>
{KEYS}</section>
"""


def _phases(excerpt: dict[str, Any]) -> list[str]:
    """The phases that have a colour in the picture."""
    strings, coded = excerpt["strings"], excerpt["events"]["phase"] or []
    seen = {excerpt["phases"]["names"][i] for i in set(excerpt["phases"]["phase"])} | {strings[i] for i in set(coded) if i >= 0}
    return [name for name in PHASES if name in seen or name == "other"]


def _caption(excerpt: dict[str, Any]) -> str:
    """What the timeline shows of the trace and what is left out."""
    window, left_out, steps = excerpt["window"], excerpt["left_out"], excerpt["steps"]
    told = [_stretch(window, steps)]
    if window["ranks"] > 1:
        told.append(f"Only rank {'?' if window['rank'] is None else window['rank']} of {window['ranks']} is drawn.")
    if left_out["events"]:
        shown, least = phrases.number(left_out["of"] - left_out["events"]), phrases.duration(left_out["shorter_ns"] / MS)
        told.append(f"{shown} of {phrases.number(left_out['of'])} events are drawn; the shortest, up to about {least}, are left out.")
    if left_out["gaps"]:
        told.append(f"{phrases.number(left_out['gaps'])} short pieces of idle time are left out.")
    if left_out["lanes"]:
        told.append(f"{left_out['lanes']} lanes with the least work are left out.")
    return " ".join(told)


def _stretch(window: dict[str, Any], steps: list[dict[str, int]]) -> str:
    length = phrases.duration(window["length_ns"] / MS)
    if not steps:
        return f"All that was recorded, {length}; no training step was found."
    if len(steps) == 1:
        which = "the only one recorded" if window["all_steps"] == 1 else f"the median of {window['all_steps']} recorded"
        return f"Step {steps[0]['number']}, {which}; {length}."
    between = f"Steps {steps[0]['number']} to {steps[-1]['number']}"
    return f"{between}: the median of {window['all_steps']} recorded and its neighbours; {length}."


def _operations(excerpt: dict[str, Any]) -> str:
    steps, rest = excerpt["ops"]["steps"], excerpt["ops"]["left_out"]
    told = f"Mean of {phrases.number(steps)} steps." if excerpt["steps"] else "Sums over all that was recorded."
    told += " Own time is without what runs inside."
    if rest["rows"]:
        told += (
            f" {phrases.number(rest['rows'])} more names with {phrases.duration(rest['self'] / steps / MS)} own time in all are left out."
        )
    return f"""<section id="operations" aria-labelledby="operations-title">
<h2 id="operations-title">Operations</h2>
<p class="note">{text(told)}</p>
<div class="tools"><label>Search <input type="search" id="search" placeholder="name or kind" autocomplete="off" spellcheck="false"></label>
<span class="note" id="found" role="status"></span></div>
<div class="scroll"><table id="ops"><thead></thead><tbody></tbody></table></div>
<div class="tools"><button type="button" id="more" hidden>Show all</button></div>
</section>
"""


def _series(excerpt: dict[str, Any]) -> str:
    charts = ""
    if excerpt["series"]:
        note = "" if excerpt["series"]["whole"] else '<p class="note">Recorded steps only; the trace does not tell the others.</p>'
        charts += f'<div class="chart" id="steps-chart"><h3>Step time</h3>{note}</div>\n'
    charts += '<div id="memory-charts"></div>\n' if excerpt["memory"] else ""
    missing = " ".join(
        told for key, told in (("series", "No step is known."), ("memory", "The trace holds no allocations.")) if not excerpt[key]
    )
    note = f'<p class="note">{missing}</p>\n' if missing else ""
    return f'<section id="series" aria-labelledby="series-title">\n<h2 id="series-title">Over time</h2>\n{charts}{note}</section>\n'
