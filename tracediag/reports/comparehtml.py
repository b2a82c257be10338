"""The comparison as one HTML file: both steps on one scale, the parts of the difference with their operations, and both timelines."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from tracediag.reports import comparewords as words
from tracediag.reports import phrases
from tracediag.reports.web import DRAWING, document
from tracediag.reports.web.markup import PHASES, code, phase, section, swatch, table, text
from tracediag.reports.web.timeline import NO_SCRIPT, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracediag.comparison import Comparison

__all__ = ["render"]

PARTS = 24
OPEN = 2
"""Parts whose operations are unfolded at first."""
MAX_SHAPES = 80
LINKS = {
    "steps": "Time", "difference": "Difference", "work": "Work", "findings": "Findings", "timelines": "Timelines", "traces": "The traces",
}  # fmt: skip
SIDES = ("a", "b")
Sums = dict["str | None", tuple[float, float]]


def render(comparison: Comparison, excerpts: tuple[dict[str, Any], dict[str, Any]] | None = None) -> str:
    """The whole page. excerpts: of one run of each side (see `tracediag.excerpt`); without them no timelines are drawn, by no script."""
    sections = {
        "steps": _steps(comparison),
        "difference": _difference(comparison),
        "work": _work(comparison),
        "findings": _findings(comparison),
        "timelines": _timelines(comparison, excerpts) if excerpts else "",
        "traces": _traces(comparison),
    }
    title = f"tracediag · {phrases.line(comparison.a['name'])} and {phrases.line(comparison.b['name'])}"
    body = _top(comparison, [anchor for anchor, told in sections.items() if told]) + f"<main>\n{''.join(sections.values())}</main>\n"
    data = {f"excerpt-{side}": made for side, made in zip(SIDES, excerpts, strict=True)} if excerpts else None
    return document(title, body, (*DRAWING, "compare.js") if excerpts else (), data)


def _name(comparison: Comparison, side: str) -> str:
    return f"{side.upper()}: {text(getattr(comparison, side)['name'])}"


def _top(comparison: Comparison, anchors: list[str]) -> str:
    """Verdict, key figures and the way to the sections. anchors: those that are there."""
    step = comparison.step
    figures = [(_name(comparison, side), *_step(comparison, side)) for side in SIDES]
    figures.append(("A / B", words.ratio(step["ratio"]) or "?", "" if step["noise"]["known"] else "the noise between runs is unknown"))
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>\n" for name, value, more in figures)
    links = "".join(f'<li><a href="#{anchor}">{LINKS[anchor]}</a></li>' for anchor in anchors)
    return (
        f'<header class="top">\n<p class="meta">{text(comparison.tool["name"])} {text(comparison.tool["version"])} · compare</p>\n'
        f'<h1>{text(comparison.verdict["text"])}</h1>\n<dl class="figures">\n{cells}</dl>\n</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
    )


def _step(comparison: Comparison, side: str) -> tuple[str, str]:
    """The step time of a side, and of how many steps."""
    told = comparison.step
    value = "?" if told[f"{side}_ms"] is None else phrases.duration(told[f"{side}_ms"])
    count, mad = told[side]["count"], told["noise"][f"{side}_mad_ms"]
    spread = f", ± {phrases.duration(mad)} between runs" if mad is not None else ""
    per = told[side]["per"]
    steps = "" if per == "recording" else f", {count} {'step' if count == 1 else 'steps'}"
    return value, f"a {text(per)}{steps}{spread}"


def _steps(comparison: Comparison) -> str:
    """Both steps as bars of one scale, in the colours of the phases."""
    sums = {side: _by_phase(comparison, side) for side in SIDES}
    whole = max(sum(map(sum, one.values())) for one in sums.values())
    if not whole:
        return ""
    bars = "".join(
        f'<p class="side">{side.upper()} <span class="muted">{text(words.head(getattr(comparison, side)))}</span></p>\n'
        f'<svg class="bar" viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label="{text(_told(sums[side]))}">'
        f"{_bar(sums[side], whole)}</svg>\n"
        for side in SIDES
    )
    rows = []
    for name in sums["a"]:
        one, two = (sum(sums[side][name]) for side in SIDES)
        rows.append([swatch(name) + text(name or "unknown"), *map(phrases.duration, (one, two)), text(words.signed(one - two))])
    told = words.basis(comparison)
    pale = " Pale: nothing runs." if any(idle for one in sums.values() for _, idle in one.values()) else ""
    note = f'<p class="note">{text(told[:1].upper() + told[1:])}.{pale}</p>\n'
    parts = table(["Phase", "A", "B", "A - B"], rows, frozenset({1, 2, 3}))
    return section("steps", f"The {comparison.step['per']}", bars + parts + note)


def _by_phase(comparison: Comparison, side: str) -> Sums:
    """(work, idle) in ms of each phase that either side has, in the order of the colours."""
    found = {row["phase"] for row in comparison.difference}
    sums = {name: [0.0, 0.0] for name in [*(one for one in PHASES if one in found), *sorted(found - set(PHASES), key=str)]}
    for row in comparison.difference:
        sums[row["phase"]][row["owner"] is not None] += max(row[f"{side}_ms"], 0.0)
    return {name: (work, idle) for name, (work, idle) in sums.items()}


def _told(sums: Sums) -> str:
    return ", ".join(f"{name or 'unknown'} {phrases.duration(sum(pair))}" for name, pair in sums.items() if sum(pair))


def _bar(sums: Sums, whole: float) -> str:
    """Rectangles of 1000 units for `whole` ms."""
    pieces, at = [], 0.0
    for name, pair in sums.items():
        for idle, ms in enumerate(pair):
            width = 1000 * ms / whole
            if width > 0:
                pieces.append(f'<rect x="{at:.2f}" width="{width:.2f}" height="26" class="{phase(name)}{" idle" if idle else ""}"/>')
            at += width
    return "".join(pieces)


def _difference(comparison: Comparison) -> str:
    """The parts of the difference, each with its operations, down to what is left."""
    shown = words.shown(comparison, PARTS)
    if not shown or comparison.verdict["outcome"] == "identical":
        return ""
    step = comparison.step
    most = [max(max(sign * row["delta_ms"] for row in shown), 0.0) for sign in (-1, 1)]  # how far bars reach to the left, to the right
    parts = "".join(_part(row, most, i < OPEN) for i, row in enumerate(shown))
    left = len(comparison.difference) - len(shown)
    rest = step["delta_ms"] - sum(row["delta_ms"] for row in shown)
    smaller = f"{left} smaller {'part' if left == 1 else 'parts'} make {words.signed(rest)}, all together " if left else "All together "
    note = f"{smaller}{words.signed(step['delta_ms'])} a {step['per']}. Bars to the right: A is longer; to the left: B."
    return section("difference", "Where the difference lies", f'{parts}<p class="note">{text(note)}</p>\n')


def _part(row: Mapping[str, Any], most: list[float], opened: bool) -> str:
    cause = row["cause"]
    told = f"<p>Finding: {text(cause['title'])} {code(cause['rule'])} in {cause['side'].upper()}</p>\n" if cause else ""
    more = f'<p class="note">and {row["more_ops"]} more operations</p>\n' if row["more_ops"] else ""
    body = told + _ops(row) + more or "<p>No operation of it is recorded.</p>\n"
    times = f"{phrases.duration(row['a_ms'])} in A, {phrases.duration(row['b_ms'])} in B"
    return (
        f'<details class="part"{" open" if opened else ""}{_names(row)}>\n<summary><span><b>{text(words.signed(row["delta_ms"]))}</b> '
        f'<h3>{text(row["what"])}</h3></span><span class="facts">{text(times)}</span>{_delta(row, most)}</summary>\n'
        f'<div class="body">\n{body}</div>\n</details>\n'
    )


def _names(row: Mapping[str, Any]) -> str:
    """The operations of a part on either side, for the script that finds them in the timelines."""
    named = {side: [name for op in row["ops"] if op[side] for name in (op[side]["op"], *op[side]["others"]) if name] for side in SIDES}
    return "".join(f' data-{side}="{escape(json.dumps(names), quote=True)}"' for side, names in named.items())


def _delta(row: Mapping[str, Any], most: list[float]) -> str:
    """A bar from the line of no difference to the side that is longer."""
    scale = 1000 / max(sum(most), 1e-9)
    zero, width = most[0] * scale, abs(row["delta_ms"]) * scale
    at = zero if row["delta_ms"] > 0 else zero - width
    return (
        '<svg class="delta" viewBox="-3 0 1006 12" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="{at:.2f}" width="{width:.2f}" height="12" class="{phase(row["phase"])}"/>'
        f'<rect x="{zero - 1.5:.2f}" width="3" height="12" class="axis"/></svg>'
    )


def _ops(row: Mapping[str, Any]) -> str:
    rows = [[cell for side in SIDES for cell in _op(op[side])] for op in row["ops"]]
    return table(["In A", "A step", "Time", "In B", "A step", "Time"], rows, frozenset({1, 2, 4, 5})) if rows else ""


def _op(side: Mapping[str, Any] | None) -> list[str]:
    """Name with shapes and line, count, time; empty where a side has none of it."""
    if side is None:
        return ["", "", ""]
    others = f"and {len(side['others'])} more" if side["others"] else ""
    facts = (others, phrases.shorten(phrases.shapes(side["shapes"]), MAX_SHAPES), phrases.line(side["source"] or ""))
    name = code(side["op"]) or '<span class="muted">nothing recorded on the host</span>'
    name += f'<span class="under">{text(" · ".join(fact for fact in facts if fact))}</span>' if any(facts) else ""
    return [name, text(phrases.number(side["count_per_step"])), text(phrases.duration(side["ms_per_step"]))]


def _work(comparison: Comparison) -> str:
    rows = [
        [text(title), text(one), text(two), f"<b>{text(ratio) or 'differs'}</b>" if differs else text(ratio)]
        for title, one, two, ratio, differs in words.work_rows(comparison)
    ]
    warnings = "".join(f"<p>{text(row['warning'])}</p>\n" for row in comparison.same_work.values() if row.get("warning"))
    told = table(["Work", "A", "B", "A / B"], rows, frozenset({1, 2, 3})) if rows else "<p>Neither side tells what it computes.</p>\n"
    return section("work", "The same work?", warnings + told)


def _findings(comparison: Comparison) -> str:
    lines = "".join(f"<li>{told}</li>\n" for told in _told_findings(comparison))
    rows = [[code(row["name"]), _value(row["a"]), _value(row["b"])] for row in comparison.settings]
    settings = "<h3>Settings that differ</h3>\n" + table(["Setting", "A", "B"], rows) if rows else ""
    return section("findings", "Findings", (f"<ul>\n{lines}</ul>\n" if lines else "<p>None tells the sides apart.</p>\n") + settings)


def _told_findings(comparison: Comparison) -> Iterator[str]:
    for row in comparison.rules:
        yield f"{text(row['title'])} ({code(row['rule'])}): {text(row['message'])}"
    for row in comparison.fixes:
        careful = f" Careful, its fix changes the training maths: {text(row['changes_training'])}" if row["changes_training"] else ""
        yield f"{text(words.fixed(row, comparison.step['same_framework']))}.{careful}"
    for label, names in words.other_findings(comparison):
        yield f"{text(label[:1].upper() + label[1:])}: {text(names)}"


def _value(value: object) -> str:
    return '<span class="muted">not set</span>' if value is None else code(value)


def _timelines(comparison: Comparison, excerpts: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """Both timelines on one scale of time."""
    parts = ['<div class="tools"><label><input type="checkbox" id="together" checked> Move and zoom both together</label></div>\n']
    for side, made in zip(SIDES, excerpts, strict=True):
        parts.append(f"<h3>{_name(comparison, side)}</h3>\n{timeline(made, (), f'{side}-', f'Timeline of {side.upper()}')}")
    return section("timelines", "Timelines", NO_SCRIPT + "".join(parts))


def _traces(comparison: Comparison) -> str:
    """What is wrong with the traces of either side."""
    notes = [(side, note) for side in SIDES for note in getattr(comparison, side)["health"]]
    lines = "".join(
        f"<li><b>{side.upper()}, {text(n['level'])}</b>: {text(n['message'])} ({text(n['effect'])})</li>\n" for side, n in notes
    )
    return section("traces", "The traces", f"<ul>\n{lines}</ul>\n" if lines else "<p>Nothing is wrong with them.</p>\n")
