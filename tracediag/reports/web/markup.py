"""Text and small figures as HTML; whatever comes in is text, never markup."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from tracediag.reports import phrases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PHASES", "code", "link", "phase", "prose", "section", "swatch", "table", "text"]

MAX_NAME = 240
"""Characters of a name out of the trace; templates of kernels fill pages."""
PHASES = ("forward", "backward", "optimizer", "comm", "input", "other")
"""Phases that have a colour."""
_CODE = re.compile(r"`([^`]+)`")


def text(value: object) -> str:
    """`value` on one line, with what could steer or hide written as escapes."""
    return escape(phrases.line(value), quote=True)


def code(value: object) -> str:
    """A name out of the trace; its middle gives way when it is very long."""
    return f"<code>{escape(phrases.shorten(value, MAX_NAME), quote=True)}</code>" if value else ""


def prose(value: object) -> str:
    """A sentence of a rule; what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", text(value))


def link(url: str) -> str:
    """A link to a web page, anything else as text."""
    plain = text(url)
    return f'<a href="{plain}" rel="noopener noreferrer">{plain}</a>' if url.startswith(("https://", "http://")) else plain


def section(anchor: str, title: str, body: str) -> str:
    """A section with its heading. anchor: its id; title: text; body: HTML."""
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{text(title)}</h2>\n{body}</section>\n'


def phase(name: str | None) -> str:
    """The class that colours a phase."""
    return f"p-{name if name in PHASES else 'other'}"


def swatch(name: str | None) -> str:
    """The colour of a phase beside its name."""
    return f'<svg class="swatch" aria-hidden="true"><rect width="11" height="11" class="{phase(name)}"/></svg>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """A table of cells that are HTML already; a column without any is left out. numbers: columns to be set to the right."""
    lines = [list(row) for row in rows]
    used = [i for i in range(len(head)) if any(row[i] for row in lines)]
    head, lines = [head[i] for i in used], [[row[i] for i in used] for row in lines]
    numbers = frozenset(used.index(i) for i in numbers if i in used)
    kinds = ['class="n"' if i in numbers else "" for i in range(len(head))]
    top = "".join(f'<th scope="col" {kind}>{cell}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = "".join("<tr>" + "".join(f"<td {k}>{c}</td>" for c, k in zip(row, kinds, strict=True)) + "</tr>\n" for row in lines)
    plain = f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>".replace("<td >", "<td>").replace('col" >', 'col">')
    return f'<div class="scroll"><table>{plain}</table></div>\n'
