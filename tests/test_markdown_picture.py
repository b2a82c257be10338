"""The Markdown as GitHub shows it: its own Markdown library, its style sheet, a browser that takes the picture."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from node_tools import MODULES, needs_node
from report_samples import SAMPLES

from tracediag.reports import render

pytestmark = [pytest.mark.node, pytest.mark.browser]
needs_node()
CHROMIUM = os.environ.get("TRACEDIAG_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
if "browser" not in os.environ.get("TRACEDIAG_REQUIRE", ""):
    pytest.importorskip("playwright.sync_api")
    pytest.importorskip("cmarkgfm")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH", allow_module_level=True)
import cmarkgfm  # noqa: E402 - only where all of it is
from cmarkgfm.cmark import Options  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

MEASURE = """() => {
  const page = document.documentElement, shown = document.querySelector("article");
  const widest = Math.max(...[...shown.querySelectorAll(":scope > table")].map((table) => table.offsetWidth), 0);
  const [first, second] = [...shown.children].map((element) => element.tagName);
  const faint = [...shown.querySelectorAll("td, th, p, h2, li")].filter((element) =>
    getComputedStyle(element).color === getComputedStyle(document.body).backgroundColor).length;
  return { first, second, faint, table: widest, page: page.scrollWidth, room: shown.clientWidth,
    heights: [...shown.querySelectorAll("details")].map((part) => part.offsetHeight) };
}"""


def document(markdown: str, ground: str) -> str:
    style = (MODULES / "github-markdown-css" / "github-markdown.css").read_text(encoding="utf-8")
    body = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    head = f"<style>{style} body {{ margin: 0; background: {ground} }} article {{ max-width: 860px; padding: 24px }}</style>"
    return f'<!DOCTYPE html><html><head>{head}</head><body><article class="markdown-body">{body}</article></body></html>'


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield started
        started.close()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 980), ("dark", 980), ("light", 400)])
def test_it_reads_well_as_a_comment(browser, tmp_path, name, scheme, width):
    asked: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    page.set_content(document(render(SAMPLES[name], "markdown"), "#ffffff" if scheme == "light" else "#0d1117"))
    seen = page.evaluate(MEASURE)
    folder = os.environ.get("TRACEDIAG_PICTURES", tmp_path)
    page.screenshot(path=f"{folder}/markdown-{name}-{scheme}-{width}.png", full_page=True)
    page.close()
    assert asked == []  # nothing is loaded, nothing runs
    assert (seen["first"], seen["second"]) == ("H2", "P")  # the verdict stands first
    assert seen["faint"] == 0
    assert seen["page"] <= width  # wide tables scroll by themselves
    assert all(height < 80 for height in seen["heights"])  # all but the verdict and the tables is folded


def test_what_is_folded_can_be_opened(browser):
    page = browser.new_page()
    page.set_content(document(render(SAMPLES["one"], "markdown"), "#ffffff"))
    page.click("summary")
    assert "SparseAdam" in page.inner_text("details[open] pre")
    assert re.search(r"aten::embedding_dense_backward", page.inner_text("details[open] table"))
    page.close()
