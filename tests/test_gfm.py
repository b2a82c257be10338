"""Markdown for GitHub: what its own Markdown library makes of hostile text, and what GitHub would then look for in it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import EVIL, FIFTY, FINDING, HOSTILE, SAMPLES, report

from tracediag.findings import Fix, Place
from tracediag.reports import gfm, render
from tracediag.reports.budget import LIMIT, Loss, Part, fit

cmarkgfm = pytest.importorskip("cmarkgfm")
from cmarkgfm.cmark import Options  # noqa: E402 - only where the package is

LIVE = re.compile(r"@\w|#\w|\bGH-\d|://|\bwww\.\w|:[\w+-]+:|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b", re.IGNORECASE)
KEPT = {"h2", "p", "br", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "details", "summary", "b", "ul", "li", "strong", "em"}


class Seen(HTMLParser):
    """Elements, links, and the text that GitHub searches for names: all but code and links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements, self.links, self.text, self.stack = set(), [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        if tag not in ("br", "img"):
            self.stack.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not {"code", "pre", "a"} & set(self.stack):
            self.text.append(data)


def html_of(markdown: str) -> str:
    return cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES)


def seen(markdown: str) -> Seen:
    return Seen(html_of(markdown))


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_out_of_a_trace_formats_links_pings_or_embeds(name):
    told = seen(render(SAMPLES[name], "markdown"))
    assert told.stack == []
    assert told.elements <= KEPT | {"a", "span"}
    assert [word for text in told.text for word in LIVE.findall(text)] == []
    assert all(re.match(r"https://(pytorch\.org|redirect\.github\.com)/", url) for url in told.links)


@pytest.mark.parametrize("put", ["{}", "- {}", "| a |\n|---|\n| {} |", "**x** {}", "a\n{}"])
@pytest.mark.parametrize(
    "name",
    [
        EVIL,
        "# h",
        "- l",
        "+ l",
        "* l",
        "1. l",
        "1) l",
        "---",
        "===",
        "    code",
        "> q",
        "[^1]",
        "| a |",
        ":--",
        "a\\",
        "\\|",
        "~~s~~",
        "&amp;",
    ],
)
def test_text_reads_as_it_was(put, name):
    told = seen(put.format(gfm.text(name)))
    assert told.elements - {"p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong", "span"} == set()
    assert " ".join(name.split()) in " ".join("".join(told.text).replace("\u200b", "").split())


@pytest.mark.parametrize("name", [EVIL, "a|b", "a\\|b", "\\", "`", "``", "` `", "a`b``c", "x_y_z", "&amp;", "<b>"])
def test_code_reads_as_it_was_in_a_paragraph_and_in_a_table(name):
    for html, count in ((f"x {gfm.code(name)} y", 0), (f"| a | b |\n|---|---|\n| {gfm.cell(name)} | end |", 2)):
        told = html_of(html)
        assert told.count("<td>") == count
        inner = re.search(r"<code>(.*?)</code>", told)
        assert inner
        whole = "".join(Seen(told.replace("code>", "i>")).text)
        assert name in whole.replace("\u200b", "")
        assert "`" in html or LIVE.findall(whole) == []


PIECES = [
    *"@#:/\\`*_[](){}<>|~!&;$-+=.1aGHw xé😀\t\n\"'^%?,",
    *(
        "www.",
        "http://",
        "https://a.b",
        "ftp://",
        "mailto:",
        "a@b.c",
        "GH-1",
        "&amp;",
        "&#35;",
        "```",
        "---",
        "deadbeef1",
        "1.",
        "- ",
        ":x:",
    ),
    *("<!--", "-->", "<details>", "</summary>"),
]
names = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def plain(text):
    return " ".join(text.replace("\u200b", "").split())


@settings(max_examples=400, deadline=None)
@given(names, st.sampled_from(["{}", "- {}", "| a |\n|---|\n| {} |", "**x** {}", "a\n{}", "> {}", "1. {}"]))
def test_any_text_is_inert_and_reads_as_it_was(name, put):
    told = seen(put.replace("{}", gfm.text(name)))
    assert told.elements <= {"p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "strong", "span", "blockquote"}
    assert plain(name) in plain("".join(told.text))
    assert [word for text in told.text for word in LIVE.findall(text)] == []


@settings(max_examples=300, deadline=None)
@given(names)
def test_any_code_is_inert_and_reads_as_it_was(name):
    for markdown in (f"x {gfm.code(name)} y", f"| a | b |\n|---|---|\n| {gfm.cell(name)} | end |"):
        told = seen(markdown.replace("x ", "", 1))
        assert told.elements <= {"p", "table", "thead", "tbody", "tr", "th", "td", "code", "span"}
        assert plain(name) in plain("".join(Seen(html_of(markdown).replace("code>", "i>")).text))


@pytest.mark.parametrize("figure", ["56.6 M", "-35.1 ms", "+6.98 ms", "1.5x to 2x", "12 (of 13)", ":name"])
def test_figures_need_no_escape(figure):
    assert gfm.text(figure) == figure


def test_details_hold_their_summary_as_text():
    told = seen(gfm.details(gfm.html(EVIL), "body"))
    assert told.elements <= {"details", "summary", "p", "span"}
    assert LIVE.findall("".join(told.text)) == []


def test_prose_of_rules_keeps_its_code():
    told = seen(gfm.prose("Use `@tf.function`, not @tf.function, see #5"))
    assert told.elements == {"p", "code"}
    assert LIVE.findall("".join(told.text)) == []


def test_links_go_to_web_pages_only_and_tell_no_other_project():
    assert gfm.link("https://a.example/b_c") == "[a.example/b\\_c](<https://a.example/b_c>)"
    assert "(<https://redirect.github.com/o/r/issues/1>)" in gfm.link("https://github.com/o/r/issues/1")
    assert "(<https://github.com/o/r>)" in gfm.link("https://github.com/o/r")
    assert seen(gfm.link("javascript:alert(1)")).links == seen(gfm.link("https://a.example/> [x](b)")).links == []


def worst(count: int, size: int) -> object:
    """A report as long as can be: every text is long and each of its characters takes the longest escape."""
    text = "$" * size
    finding = replace(
        HOSTILE,
        title=text,
        message=text,
        why=text,
        changes_training=text,
        where=tuple(Place(text, i, text) for i in range(20)),
        fix=tuple(Fix("torch", text, text) for _ in range(5)),
        evidence=tuple({"op": "|" * size, "kind": "|" * size, "shapes": "|" * size, "count_per_step": 1} for _ in range(40)),
        references=("https://a.example/" + "x" * size,) * 20,
        also=("`" * size,) * 30,
        share_of=text,
    )
    return report(
        *(replace(finding, rule=f"{i}{text}") for i in range(count)),
        verdict={"rule": None, "text": text},
        health=tuple(
            {"id": "x", "level": level, "message": text, "effect": text} for level in ("info", "warning", "error") for _ in range(50)
        ),
        subject={"script": text, "framework": text, "kind": "training"},
        inputs=tuple({"path": text, "format": text, "framework": text, "bytes": 1, "events": 1, "rank": i} for i in range(500)),
        skipped=tuple({"rule": text, "reason": f"failed {text}"} for _ in range(90)),
        run={
            "framework": text,
            "versions": {f"{i}{text}": text for i in range(50)},
            "devices": [{"device": f"{text}{i}"} for i in range(64)],
        },
    )


@pytest.mark.parametrize(("count", "size"), [(1, 100_000), (50, 3_000), (400, 200), (0, 50_000)])
def test_a_comment_is_never_too_long_whatever_is_in_it(count, size):
    told = render(worst(count, size), "markdown")
    assert len(told.encode("utf-16-le")) // 2 <= LIMIT < 65_536
    assert "Left out to stay under the length of a comment" in told
    assert told.startswith("## ")
    assert seen(told).stack == []


def test_the_least_important_parts_give_way_first():
    told = render(FIFTY, "markdown")
    assert len(told) <= LIMIT
    assert "| 🔴&nbsp;high | Cause number 0 " in told
    assert "| ⚪&nbsp;info | Cause number 49 " in told
    assert "aten::operator\\_0" not in told
    assert "`aten::operator_0_0`" in told
    assert "`aten::operator_49_0`" not in told
    assert re.search(r"Left out to stay under the length of a comment: 1 list of the environment, \d+ tables of evidence", told)
    assert "Left out" not in render(report(FINDING), "markdown")


def test_parts_give_way_in_the_order_of_their_worth():
    parts = [Part("a" * 60), Part("b" * 50, (Loss((1,), "bs", "b"), Loss((3,), "all bs"))), Part("c" * 50, (Loss((2,), "cs"),))]
    assert fit(parts, 160) == "a" * 60 + "b" * 50 + "c" * 50
    short = "\nLeft out here for length: "
    assert fit(parts, 159) == "a" * 60 + f"b{short}1 bs, 1 cs.\n"
    assert fit(parts, 80) == "a" * 60 + f"{short}1 bs, 1 cs, 1 all bs.\n"
