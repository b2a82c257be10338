"""The HTML report in headless Chromium: it draws, zooms, searches, highlights and saves, says no error and asks for nothing."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import node_tools
import pytest
from html_samples import ROOT, crowded, hostile, hostile_comparison, recorded

from tracediag import api
from tracediag.reports import render, render_comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHROMIUM = os.environ.get("TRACEDIAG_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
REQUIRED = "browser" in os.environ.get("TRACEDIAG_REQUIRE", "")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
INJECTED = """() => new Promise((done) => {
  addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.ran = 1";
  document.body.append(script);
  setTimeout(() => done(""), 500);
})"""
LEGIBLE = {
    "bg": ("text", "muted", "link", "high", "medium", "low"), "panel": ("text", "muted"), "gap": ("text",), "line": ("text",),
    **dict.fromkeys(("forward", "backward", "optimizer", "comm", "input", "other", "frame"), ("ink",)), "mark": ("bg",),
}  # fmt: skip
"""Ground -> colours of text that stand on it."""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

pytestmark = pytest.mark.browser
if not REQUIRED:
    pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH (TRACEDIAG_CHROMIUM names one elsewhere)", allow_module_level=True)
from playwright.sync_api import Page, expect, sync_playwright  # noqa: E402


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages as files."""
    folder = tmp_path_factory.mktemp("pages")
    made = {"run": recorded("torch-unfused-adam"), "tensorflow": recorded("tf-retrace-shape"), "hostile": hostile(), "crowded": crowded()}
    for name, (report, excerpt) in made.items():
        (folder / f"{name}.html").write_text(render(report, "html", excerpt), encoding="utf-8")
    both = api.illustrate_comparison(*(ROOT / "fixtures" / "torch-unfused-adam" / side for side in ("slow", "fast")))
    (folder / "both.html").write_text(render_comparison(both[0], "html", both[1]), encoding="utf-8")
    (folder / "hostile-both.html").write_text(render_comparison(*hostile_comparison(both[0])), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in [*made, "both", "hostile-both"]}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with a profile of its own, which playwright makes empty and removes."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def provoked() -> list[str]:
    """Words of complaints that a test itself brings about."""
    return []


@pytest.fixture
def show(browser: Any, pages: dict[str, Path], provoked: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens a page; at the end nothing must have been complained of, and nothing asked for but the file itself."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts = []

    def opened(name: str, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(pages[name].as_uri())
        page.evaluate(SETTLED)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [told for told in complaints if not any(words in told for words in provoked)] == []
    assert {url for url in requests if not url.startswith("blob:")} <= {page.as_uri() for page in pages.values()}


def colours(page: Page, canvas: str = "canvas") -> int:
    """How many different colours the timeline has."""
    page.evaluate(SETTLED)
    return page.evaluate(
        "(id) => { const c = document.getElementById(id); const d = new Uint32Array(c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.buffer); return new Set(d).size; }",
        canvas,
    )


def picture(page: Page, canvas: str = "canvas") -> str:
    """The timeline as it is drawn."""
    page.evaluate(SETTLED)
    return page.evaluate("(id) => document.getElementById(id).toDataURL()", canvas)


@pytest.mark.parametrize("name", ["run", "tensorflow", "hostile", "crowded"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_timeline_and_the_curves_are_drawn(show, name, scheme):
    page = show(name, color_scheme=scheme)
    assert colours(page) > 20
    assert page.locator("#series canvas").count() >= 1
    assert page.locator("#ops tbody tr").count() > 2
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_zoom_by_buttons_keys_and_wheel_and_back(show):
    page = show("run")
    first = picture(page)
    page.click("#zoom-in")
    assert (closer := picture(page)) != first
    page.focus("#view")
    page.keyboard.press("ArrowRight")
    assert (moved := picture(page)) != closer
    page.keyboard.press("+")
    assert picture(page) != moved
    page.keyboard.press("0")
    assert picture(page) == first
    page.hover("#view", position={"x": 300, "y": 100})
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_timeout(50)
    assert picture(page) != first
    page.click("#zoom-fit")
    page.mouse.move(5, 5)
    assert picture(page) == first


def test_dragging_moves_and_the_pointer_tells_what_is_under_it(show):
    page = show("run")
    page.click("#zoom-in")
    before = picture(page)
    page.locator("#view").scroll_into_view_if_needed()
    box = page.locator("#view").bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 52)
    expect(page.locator("#tip")).to_contain_text("step")
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 52, steps=4)
    page.mouse.up()
    assert picture(page) != before
    expect(page.locator("#chosen")).to_contain_text("Choose an event")  # a drag chooses nothing
    page.mouse.click(box["x"] + 600, box["y"] + 52)
    expect(page.locator("#chosen")).to_contain_text("Time")


def test_choosing_a_finding_highlights_its_events(show):
    page = show("run")
    plain = picture(page)
    page.locator("#finding-0 button").click()
    assert picture(page) != plain
    assert page.input_value("#highlight") == "0"
    expect(page.locator("#finding-0")).to_have_class("finding medium selected")
    expect(page.locator("#view")).to_be_focused()
    page.keyboard.press(".")
    expect(page.locator("#chosen")).to_contain_text("Optimizer.step#AdamW.step")
    page.keyboard.press("Escape")
    assert page.input_value("#highlight") == ""
    assert picture(page) == plain
    page.select_option("#highlight", "0")
    assert picture(page) != plain


def test_operations_are_searched_and_sorted(show):
    page = show("run")
    rows = page.locator("#ops tbody tr")
    page.fill("#search", "AddMM")
    assert all("addmm" in text.lower() for text in rows.all_inner_texts())
    assert rows.count() >= 1
    expect(page.locator("#found")).to_contain_text("of")
    page.fill("#search", "no such operation")
    expect(rows).to_have_count(0)
    page.fill("#search", "")
    page.click("#ops th button >> text=Operation")
    expect(page.locator("#ops th[aria-sort=ascending]")).to_have_text("Operation")
    first = page.locator("#ops tbody code").all_inner_texts()
    assert first == sorted(first, key=str.lower) or len(first) == 25
    page.click("#more")
    assert rows.count() > 25
    page.locator("#ops tbody button").first.click()
    expect(page.locator("#view")).to_be_focused()
    expect(page.locator("#chosen dl")).to_be_visible()


def test_the_whole_page_works_by_keys(show):
    page = show("run")
    seen = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => document.activeElement.id || document.activeElement.closest('[id]')?.id || document.activeElement.tagName"
        )
        seen.add(here)
        if here == "trace":
            break
    assert {"finding-0", "highlight", "zoom-in", "save", "view", "search", "ops", "trace"} <= seen


def test_a_phone_sees_all_of_it(show):
    page = show("run", width=390, has_touch=True, is_mobile=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert colours(page) > 20
    small = page.evaluate(
        "() => [...document.querySelectorAll('.tools button, select')].filter((b) => b.offsetParent && b.offsetHeight < 40).length"
    )
    assert small == 0


def test_fingers_move_pinch_and_choose(show):
    page = show("run", width=390, has_touch=True, is_mobile=True)
    page.locator("#view").scroll_into_view_if_needed()
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + 180, box["y"] + 60
    device = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": px, "y": y, "id": i} for i, px in enumerate(places)]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    whole = picture(page)
    touch("touchStart", x - 20, x + 20)
    for far in (40, 60, 80):
        touch("touchMove", x - far, x + far)
    touch("touchEnd")
    assert (closer := picture(page)) != whole
    touch("touchStart", x)
    for by in (20, 40, 60):
        touch("touchMove", x - by)
    touch("touchEnd")
    assert picture(page) != closer
    page.touchscreen.tap(x, box["y"] + 52)
    expect(page.locator("#chosen dl")).to_be_visible()


@pytest.mark.parametrize("name", ["run", "hostile"])
def test_the_excerpt_is_saved_as_a_trace_that_reads_back(show, pages, tmp_path, name):
    page = show(name)
    with page.expect_download() as download:
        page.click("#save")
    file = tmp_path / "excerpt.trace.json"
    download.value.save_as(file)
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert {event["ph"] for event in saved["traceEvents"]} >= {"M", "X"}
    if name == "run":
        back, shown = api.load(file), recorded("torch-unfused-adam")[1]
        assert len(back.step_table) == len(shown["steps"])
        mine = sorted(shown["strings"][code] for code in shown["events"]["name"])
        assert sorted(back.strings("name").to_objects()) == mine
        assert int(back.col("dur_ns").sum()) == sum(shown["events"]["dur"])


def test_paper_is_light_and_unfolded(show, provoked):
    provoked.append("willReadFrequently")
    page = show("run", color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate(SETTLED)
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("() => [...document.querySelectorAll('details.finding')].every((one) => one.open)")
    pixel = "() => [...document.getElementById('canvas').getContext('2d').getImageData(2, 30, 1, 1).data.slice(0, 3)]"
    assert min(page.evaluate(pixel)) > 200
    page.emulate_media(media="screen")
    page.evaluate(SETTLED)
    assert max(page.evaluate(pixel)) < 60


def test_nothing_of_a_name_runs_and_the_policy_holds(show, provoked):
    provoked.append("Content Security Policy directive 'script-src")
    page = show("hostile")
    assert "alert(1)" in page.inner_text("#ops")
    assert page.evaluate("() => document.querySelectorAll('img, iframe, object, embed').length") == 0
    blocked = page.evaluate(INJECTED)
    assert blocked == "script-src-elem"
    assert page.evaluate("() => window.ran") is None


@pytest.mark.parametrize(("name", "scheme"), [("run", "light"), ("run", "dark"), ("both", "light")])
def test_axe_finds_no_barrier(show, name, scheme):
    axe = node_tools.MODULES / "axe-core" / "axe.min.js"
    if not axe.is_file() and not node_tools.REQUIRED:
        pytest.skip("the packages of tests/node are missing (make node)")
    page = show(name, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(path=axe)
    found = page.evaluate("() => axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_contrast_of_text_is_enough(show):
    for scheme in ("light", "dark"):
        page = show("run", color_scheme=scheme)
        for ground, texts in LEGIBLE.items():
            for text in texts:
                pair = page.evaluate("(names) => names.map(colour)", [text, ground])
                assert contrast(*pair) >= 4.5, (scheme, text, ground, pair)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (#rrggbb), as WCAG 2.2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_operations_of_a_part_are_found_in_both_timelines(show):
    page = show("both")
    before = picture(page, "a-canvas"), picture(page, "b-canvas")
    page.locator(".part button").first.click()
    after = picture(page, "a-canvas"), picture(page, "b-canvas")
    assert before[0] != after[0]
    assert before[1] != after[1]
    expect(page.locator("#a-view")).to_be_focused()
    page.keyboard.press(".")
    expect(page.locator("#a-chosen dl")).to_be_visible()


def test_a_comparison_of_hostile_names_on_a_phone(show):
    page = show("hostile-both", width=390, has_touch=True, is_mobile=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert colours(page, "a-canvas") > 15


def test_two_timelines_move_together_unless_told_not_to(show):
    page = show("both")
    assert min(colours(page, "a-canvas"), colours(page, "b-canvas")) > 15
    first = picture(page, "b-canvas")
    page.click("#a-zoom-in")
    assert (moved := picture(page, "b-canvas")) != first
    page.uncheck("#together")
    page.click("#a-zoom-in")
    assert picture(page, "b-canvas") == moved


def test_a_page_packs_well(pages):
    assert len(gzip.compress(pages["run"].read_bytes())) < 120_000
