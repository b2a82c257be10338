"""The place of a timeline on a page: its caption, its buttons, its legend; a script draws in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases
from tracediag.reports.web.markup import PHASES, swatch, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NO_SCRIPT", "timeline"]

MS = 1e6
MAX_CHOICE = 90
NO_SCRIPT = "<noscript><p>What else stands here is drawn by a script, which does not run in this viewer.</p></noscript>\n"
KEYS = """<details class="note keys"><summary>Mouse, fingers and keys</summary>
<p id="{p}keys">Drag to move, <kbd>Ctrl</kbd> and the wheel or two fingers to zoom, double-click to zoom on an event.
Keys: <kbd>&larr;</kbd> <kbd>&rarr;</kbd> move, <kbd>&uarr;</kbd> <kbd>&darr;</kbd> lanes, <kbd>+</kbd> <kbd>&minus;</kbd> zoom,
<kbd>0</kbd> fit, <kbd>.</kbd> <kbd>,</kbd> next and previous event (of the highlighted ones, if any), <kbd>Enter</kbd> zoom on it,
<kbd>Esc</kbd> let go.</p></details>
"""


def timeline(excerpt: dict[str, Any], findings: Sequence[tuple[int, str]] = (), prefix: str = "", name: str = "Timeline") -> str:
    """What stands under the heading of a timeline.

    findings: place in the report and name of those that can be highlighted. prefix: of all ids. name: for those who hear the page.
    """
    p = prefix
    choices = "".join(f'<option value="{i}">{text(phrases.clip(one, MAX_CHOICE))}</option>' for i, one in findings)
    legend = "".join(f"<li>{swatch(one)}{'communication' if one == 'comm' else one}</li>" for one in _phases(excerpt))
    select = (
        f'<label>Highlight <select id="{p}highlight"><option value="">no finding</option>{choices}</select></label>\n' if findings else ""
    )
    return f"""<p class="note">{text(_caption(excerpt))}</p>
<div class="tools" role="toolbar" aria-label="{text(name)}">
{select}<button type="button" id="{p}zoom-in" aria-label="Zoom in">+</button>
<button type="button" id="{p}zoom-out" aria-label="Zoom out">&minus;</button>
<button type="button" id="{p}zoom-fit">Fit</button>
<button type="button" id="{p}previous" aria-label="Previous highlighted event" disabled>&lsaquo;</button>
<button type="button" id="{p}next" aria-label="Next highlighted event" disabled>&rsaquo;</button>
<button type="button" id="{p}save" class="end">Save for Perfetto</button>
</div>
<div class="view" id="{p}view" tabindex="0" role="group" aria-label="{text(name)}" aria-describedby="{p}keys"><div id="{p}space"><canvas
 id="{p}canvas" aria-hidden="true"></canvas></div></div>
<div class="tip" id="{p}tip" hidden></div>
<ul class="legend" aria-label="Colours">{legend}<li>hatched: nothing runs</li></ul>
<div class="chosen" id="{p}chosen" role="status"><span class="muted">Choose an event to see what it is.</span></div>
{KEYS.format(p=p)}"""


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
