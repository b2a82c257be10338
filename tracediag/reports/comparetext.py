"""The comparison for a terminal: verdict, same work, where the difference goes, findings gone and new, settings that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracediag.reports import comparewords as words
from tracediag.reports import phrases
from tracediag.reports.terminal import LABEL, LEAST_WIDTH, WIDTH, labelled, printed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from tracediag.comparison import Comparison

__all__ = ["render"]

PARTS = 8
OPS_OF = 3
"""Parts whose operations are shown, and how many of them."""
SETTINGS = 8


def render(comparison: Comparison, *, width: int = WIDTH, color: bool = False) -> str:
    """The comparison as lines of at most `width` columns, with terminal colours if `color`."""
    return printed(_blocks(comparison, max(width, LEAST_WIDTH)), width, color=color)


def _blocks(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    yield Text(f"{comparison.tool['name']} {comparison.tool['version']} · compare", style="dim")
    yield Text()
    yield Padding(Text(phrases.line(comparison.verdict["text"]), style="bold"), (0, 0, 0, 2))
    yield Text()
    yield labelled([("A", Text(words.head(comparison.a))), ("", Text(words.step(comparison, "a"))),
                    ("B", Text(words.head(comparison.b))), ("", Text(words.step(comparison, "b"))),
                    ("Step", Text(f"{words.ratio(comparison.step['ratio']) or '?'} = A / B; {words.basis(comparison)}"))])  # fmt: skip
    yield Text()
    yield labelled([("Work", _work(comparison))])
    if comparison.difference and comparison.verdict["outcome"] != "identical":
        yield Text()
        yield labelled([("Where", _difference(comparison, width))])
    rows = list(_findings(comparison))
    if rows:
        yield Text()
        yield labelled(rows)


def _work(comparison: Comparison) -> RenderableType:
    rows = list(words.work_rows(comparison))
    if not rows:
        return Text("neither side tells what it computes (shapes were not recorded)")
    table = _table("", "A", "B", "A / B")
    for title, one, two, ratio, differs in rows:
        table.add_row(title, one, two, Text(ratio, style="bold yellow" if differs else ""))
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _difference(comparison: Comparison, width: int) -> Table:
    """The largest parts, the operations of the first of them, what is left, and the sum."""
    table = _table("", "A", "B", "A - B")
    free = width - LABEL - 34
    rows, traces = words.shown(comparison, PARTS), not (comparison.a["only_report"] or comparison.b["only_report"])
    for i, row in enumerate(rows):
        name = Text(phrases.clip(row["what"], free))
        table.add_row(name, *(phrases.duration(row[key]) for key in ("a_ms", "b_ms")), Text(words.signed(row["delta_ms"]), style="bold"))
        for op in row["ops"][: OPS_OF if i < OPS_OF else 1]:
            for cells in _op(op, free - 2, traces):
                table.add_row(*(Text(cell, style="dim") for cell in cells), "")
        if row["cause"]:
            table.add_row(Text(f"  ↳ {phrases.clip(row['cause']['title'], free - 4)}", style="green"), "", "", "")
    step = comparison.step
    count, *rest = words.smaller(comparison, rows)
    if count:
        table.add_row(f"{count} smaller {'part' if count == 1 else 'parts'}", *rest)
    total = (phrases.duration(step["a_ms"]), phrases.duration(step["b_ms"]), Text(words.signed(step["delta_ms"]), style="bold"))
    table.add_row(Text(f"whole {step['per']}", style="bold"), *total)
    if step["attributed"] is not None and step["attributed"] < 0.9:
        table.add_row(Text(f"{phrases.percent(1 - step['attributed'])} of it without a known reason", style="yellow"), "", "", "")
    return table


def _op(op: Mapping[str, Any], width: int, traces: bool) -> Iterator[tuple[str, str, str]]:
    """(name, time in A, time in B) of an operation; a line a side where the sides have other names for it.

    traces: both sides tell their operations, so that one may be told to be on one side only.
    """
    one, two = op["a"], op["b"]
    if one and two and (one["op"], one["shapes"]) == (two["op"], two["shapes"]):
        counts = [phrases.number(side["count_per_step"]) for side in (one, two)]
        yield _named(" | ".join(dict.fromkeys(counts)), one, width), _time(one), _time(two)
        return
    for side, other, sign in ((one, two, "A"), (two, one, "B")):
        if side:
            alone = traces and other is None and side["op"]
            name = _named(phrases.number(side["count_per_step"]), side, width - 5 if alone else width - 2)
            yield f"{name} only" if alone else name, _time(side) if sign == "A" else "", _time(side) if sign == "B" else ""


def _time(side: Mapping[str, Any]) -> str:
    return phrases.duration(side["ms_per_step"])


def _named(count: str, side: Mapping[str, Any], width: int) -> str:
    """'  4 x aten::mm 256x4, 4x8  train.py:12'; shapes give way, then the name."""
    more = f" +{len(side['others'])}" if side["others"] else ""
    place = f"  {phrases.line(side['source']).rsplit('/', 1)[-1]}" if side["source"] else ""
    shapes = phrases.shapes(side["shapes"])
    room = width - len(place) - 2
    name = phrases.shorten(f"{count} x {side['op']}{more}" if side["op"] else "nothing recorded on the host", room)
    if shapes and room - len(name) > 6:
        name += f" {phrases.clip(shapes, room - len(name) - 1)}"
    return f"  {name}{place}"


def _findings(comparison: Comparison) -> Iterator[tuple[str, RenderableType]]:
    for row in comparison.rules:
        yield "Pair", Text(phrases.line(f"{row['title']} ({row['rule']}): {row['message']}"))
    for row in comparison.fixes:
        yield "Finding", Text(words.fixed(row, comparison.step["same_framework"]), style="" if row["held"] is not False else "yellow")
        if row["changes_training"]:
            yield "Careful", Text(f"its fix changes the training maths: {phrases.line(row['changes_training'])}", style="yellow")
    for label, names in words.other_findings(comparison):
        yield "Also", Text(f"{label}: {names}", style="dim")
    settings = comparison.settings
    for row in settings[:SETTINGS]:
        yield "Setting", Text(phrases.clip(f"{row['name']}: {_value(row['a'])} in A, {_value(row['b'])} in B", 200))
    if len(settings) > SETTINGS:
        yield "", Text(f"{len(settings) - SETTINGS} more settings differ (--format json)", style="dim")


def _value(value: object) -> str:
    return "not set" if value is None else phrases.line(value)
