"""The comparison as a page: parts that add up, hostile names, two timelines."""

from __future__ import annotations

import json
import re

import pytest
from html_samples import ROOT, Reading, hostile_comparison

from tracediag import api
from tracediag.cli import main
from tracediag.reports import render_comparison

RUN = ROOT / "fixtures" / "torch-unfused-adam"


@pytest.fixture(scope="module")
def made():
    return api.illustrate_comparison(RUN / "slow", RUN / "fast")


def test_a_page_of_a_comparison(made):
    comparison, excerpts = made
    page = Reading(render_comparison(comparison, "html", excerpts))
    told = " ".join(page.text)
    assert comparison.verdict["text"] in told
    for words in ("optimizer, optimizer update", "samples a step", "opt-not-fused", "optimizer 0: fused", "A: slow", "B: fast"):
        assert words in told
    assert len(page.ids) == len(set(page.ids))
    assert {"a-view", "b-view", "excerpt-a", "excerpt-b"} <= set(page.ids)
    assert [len(one["steps"]) for one in excerpts] == [1, 1]


def test_bars_of_both_steps_have_one_scale(made):
    comparison, _ = made
    page = Reading(render_comparison(comparison, "html"))
    bars, widths = -1, [0.0, 0.0]
    for tag, attributes in page.tags:
        bars += tag == "svg" and attributes.get("class") == "bar"
        if tag == "rect" and str(attributes.get("class")).startswith("p-") and bars >= 0 and attributes["height"] == "26":
            widths[bars] += float(attributes["width"])
    assert max(widths) == pytest.approx(1000, abs=0.5)
    assert widths[0] / widths[1] == pytest.approx(comparison.step["ratio"], rel=0.1)


def test_no_traces_no_script(made):
    text = render_comparison(made[0], "html")
    assert "<script" not in text
    assert "script-src 'none'" in text


def test_nothing_of_a_name_becomes_markup(made):
    page = Reading(text := render_comparison(*hostile_comparison(made[0])))
    assert "img" not in {tag for tag, _ in page.tags}
    assert all((attributes.get("href") or "#").startswith(("#", "https://")) for _, attributes in page.tags)
    assert "<script>alert" not in text
    assert len(re.findall(r"<script[ >]", text)) == 3


def test_the_command_writes_it(tmp_path, capsys):
    assert main(["compare", str(RUN / "slow"), str(RUN / "fast"), "--format", "html", "--output", str(tmp_path / "c.html"), "-q"]) == 0
    text = (tmp_path / "c.html").read_text(encoding="utf-8")
    data = re.search(r'(?s)id="excerpt-b">(.*?)</script>', text)[1]
    assert json.loads(data)["steps"]
    assert capsys.readouterr().out == ""


def test_a_report_alone_has_no_timeline(tmp_path):
    (tmp_path / "report.json").write_text(api.explain(RUN / "fast").to_json(), encoding="utf-8")
    comparison, drawn = api.illustrate_comparison(RUN / "slow", tmp_path / "report.json")
    assert drawn is None
    assert "Timelines" not in render_comparison(comparison, "html")
