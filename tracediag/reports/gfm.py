"""Markdown as GitHub renders it, made of text that may be hostile: nothing out of a trace formats, links, pings, closes or embeds.

GitHub looks for mentions (@name), references (#1, GH-1, commits), addresses, emoji and formulas in the rendered text, so that escaping
the Markdown is not enough: an invisible character (written as an entity) parts the sign from what follows. Code is left alone by GitHub.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from tracediag.reports import phrases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["cell", "code", "details", "fenced", "html", "link", "prose", "table", "text"]

GAP = "&#8203;"
"""A space without width."""
_LIVE = re.compile(
    r"(?P<part>@|#(?=\w)|GH-(?=\d)|:(?=//)|www(?=\.)|:(?=[\w+-]+:))"
    r"|(?P<commit>\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b)|(?P<math>\$)|(?P<tag>[<>&|])|(?P<mark>[\\`*_\[\]~#])",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$)))?((?<=\d)[.)]|(?<!\d)[-+=:](?=[-=:\s]|$))")
"""What starts a list, a table or a heading at the beginning of a line."""
_SPAN = re.compile(r"`([^`]+)`")
_URL = re.compile(r"https?://[^\s<>\"'()\\]+\Z")
_TRACKED = re.compile(r"https://(?:www\.)?github\.com/(?=[^/]+/[^/]+/(?:issues|pull|discussions|commit)/)", re.IGNORECASE)


def text(value: object) -> str:
    """`value` as one line of inert text, anywhere in Markdown, also in a cell of a table."""
    escaped = _LIVE.sub(_inert, phrases.line(value))
    return _BLOCK.sub(lambda found: f"{found[1] or ''}\\{found[2]}", escaped)


def html(value: object) -> str:
    """`value` as one line of inert text inside an HTML element, where Markdown is not read."""
    return _LIVE.sub(lambda found: found[0] if found["mark"] else _inert(found), phrases.line(value))


def prose(value: object) -> str:
    """Text of a rule: inert as `text` is, but what stands between backticks is code."""
    pieces = _SPAN.split(phrases.line(value))
    return "".join(code(piece) if i % 2 else text(piece) if i == 0 else _LIVE.sub(_inert, piece) for i, piece in enumerate(pieces))


def code(value: object) -> str:
    """A code span of one line; '' for empty text."""
    line = phrases.line(value)
    if not line:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def cell(value: object) -> str:
    """Code in a cell of a table, where bars and backslashes mean something even inside a code span."""
    line = "" if value is None else phrases.line(value)
    return f"<code>{text(line)}</code>" if re.search(r"[|\\`]", line) else code(line)


def fenced(block: str, language: str = "") -> str:
    """A block of code, with a fence longer than any run of backticks inside."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block)), default=0))
    return f"{fence}{language}\n{phrases.clean(block.strip(chr(10)))}\n{fence}"


def link(url: str) -> str:
    """A link to a web page; any other address as code. Issues of other projects are linked without telling them so."""
    plain = phrases.line(url)
    if not _URL.match(plain):
        return code(plain)
    return f"[{text(plain.split('://', 1)[1])}](<{_TRACKED.sub('https://redirect.github.com/', plain)}>)"


def table(head: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> str:
    """A table of finished cells. align: a letter a column, l or r."""
    rule = ["--:" if side == "r" else "---" for side in align]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def details(summary: str, body: str) -> str:
    """A folded part: summary as made by `html`, body of Markdown."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _inert(found: re.Match[str]) -> str:
    """One sign that GitHub or Markdown would act upon, written so that neither does."""
    sign = found[0]
    if found["part"]:
        return f"{sign}{GAP}"
    if found["commit"]:
        return GAP.join(re.findall(".{1,4}", sign))
    if found["math"]:
        return "<span>$</span>"
    if found["tag"]:
        return "&#124;" if sign == "|" else escape(sign)
    return f"\\{sign}"
