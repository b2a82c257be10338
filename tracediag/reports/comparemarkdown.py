"""The comparison as Markdown for GitHub; never longer than a comment may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import comparewords as words
from tracediag.reports import gfm, phrases
from tracediag.reports.budget import Loss, Part, fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracediag.comparison import Comparison

__all__ = ["render"]

PARTS = 12
NOTE = "*Left out to stay under the length of a comment: {}. `--format json` has everything.*"
OPS_PARTS, OPS_OF = 4, 4
"""Parts whose operations are told, and how many of each."""
OPERATIONS, SETTINGS, FINDINGS, WORK, DIFFERENCE = range(5)
"""What gives way first, in this order."""


def render(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown; nothing out of the traces formats, links or pings."""
    return fit(list(_parts(comparison)), note=NOTE).rstrip("\n") + "\n"


def _parts(comparison: Comparison) -> Iterator[Part]:
    sides = [f"{name}: {gfm.text(phrases.clip(words.head(side), 400))}; {words.step(comparison, name.lower())}"
             for name, side in (("A", comparison.a), ("B", comparison.b))]  # fmt: skip
    facts = [*sides, f"A / B = {words.ratio(comparison.step['ratio']) or '?'}; {words.basis(comparison)}"]
    yield Part(f"## {gfm.text(phrases.clip(comparison.verdict['text'], 800))}\n\n{'<br>'.join(facts)}\n\n")
    yield Part(_work(comparison), (Loss((WORK,), "table of the work"),))
    yield Part(_difference(comparison), (Loss((DIFFERENCE,), "table of the difference"),))
    yield Part(_operations(comparison), (Loss((OPERATIONS,), "operations"),))
    for row in comparison.rules:
        told = gfm.text(phrases.clip(f"{row['title']} ({row['rule']}): {row['message']}", 600))
        yield Part(f"- {told}\n", (Loss((FINDINGS,), "findings"),))
    for row in comparison.fixes:
        careful = (
            f" Its fix changes the training maths: {gfm.text(phrases.clip(row['changes_training'], 300))}"
            if row["changes_training"]
            else ""
        )
        yield Part(
            f"- {gfm.text(phrases.clip(words.fixed(row, comparison.step['same_framework']), 400))}.{careful}\n",
            (Loss((FINDINGS,), "findings"),),
        )
    for label, names in words.other_findings(comparison):
        yield Part(f"- findings {label}: {gfm.text(phrases.clip(names, 600))}\n", (Loss((FINDINGS,), "findings"),))
    if comparison.settings:
        yield Part(_settings(comparison), (Loss((SETTINGS,), "settings that differ"),))


def _work(comparison: Comparison) -> str:
    rows = [
        [gfm.text(title), gfm.text(one), gfm.text(two), f"**{ratio}**" if differs else ratio]
        for title, one, two, ratio, differs in words.work_rows(comparison)
    ]
    return f"{gfm.table(['Work', 'A', 'B', 'A / B'], 'lrrr', rows)}\n\n" if rows else ""


def _difference(comparison: Comparison) -> str:
    if comparison.verdict["outcome"] == "identical" or not comparison.difference:
        return ""
    shown = words.shown(comparison, PARTS)
    rows = []
    for row in shown:
        cause = row["cause"]["title"] if row["cause"] else ""
        times = [phrases.duration(row["a_ms"]), phrases.duration(row["b_ms"]), words.signed(row["delta_ms"])]
        rows.append([gfm.text(phrases.clip(row["what"], 120)), *times, gfm.text(phrases.clip(cause, 120))])
    step = comparison.step
    count, *rest = words.smaller(comparison, shown)
    if count:
        rows.append([f"{count} smaller {'part' if count == 1 else 'parts'}", *rest, ""])
    whole = [phrases.duration(step["a_ms"]), phrases.duration(step["b_ms"]), words.signed(step["delta_ms"])]
    rows.append([f"**whole {step['per']}**", *whole, ""])
    return f"{gfm.table(['Where', 'A', 'B', 'A - B', 'Finding'], 'lrrrl', rows)}\n\n"


def _operations(comparison: Comparison) -> str:
    """The operations of the largest parts on both sides, folded; '' where none is known."""
    if comparison.verdict["outcome"] == "identical":
        return ""
    rows = [
        [gfm.text(part["what"]) if i == 0 else "", _op(op["a"]), _op(op["b"]), _time(op["a"]), _time(op["b"])]
        for part in words.shown(comparison, OPS_PARTS)
        for i, op in enumerate(part["ops"][:OPS_OF])
    ]
    table = gfm.table(["Where", "In A, a step", "In B, a step", "A", "B"], "lllrr", rows)
    return f"{gfm.details('Operations of the largest parts', table)}\n\n" if rows else ""


def _op(side: Mapping[str, Any] | None) -> str:
    """Count, name, shapes and line; '' where a side has none of it."""
    if side is None:
        return ""
    if not side["op"]:
        return "nothing recorded on the host"
    name = f"{side['op']} {phrases.shapes(side['shapes'])}".strip()
    others = f" and {len(side['others'])} more" if side["others"] else ""
    place = f", {gfm.text(phrases.clip(side['source'], 60))}" if side["source"] else ""
    return f"{phrases.number(side['count_per_step'])} x {gfm.cell(phrases.shorten(name, 60))}{others}{place}"


def _time(side: Mapping[str, Any] | None) -> str:
    return "" if side is None else phrases.duration(side["ms_per_step"])


def _settings(comparison: Comparison) -> str:
    rows = [[gfm.cell(phrases.clip(row["name"], 80)), _value(row["a"]), _value(row["b"])] for row in comparison.settings]
    return f"\n{gfm.table(['Setting', 'A', 'B'], 'lll', rows)}\n"


def _value(value: object) -> str:
    return "not set" if value is None else gfm.text(phrases.clip(value, 80))
