"""The HTML report as text: goldens, its policy, hostile names, its size."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from html_samples import ROOT, Reading, bare, crowded, hostile, recorded
from report_samples import EVIL, FINDING, SAMPLES, report

from tracediag import console, privacy
from tracediag.cli import main
from tracediag.console import emit
from tracediag.errors import InputError
from tracediag.reports import render
from tracediag.reports.web import markup

GOLDEN = Path(__file__).parent / "golden"
LIMIT = 1_500_000


@pytest.mark.parametrize("name", ["none", "one", "fifty", "hostile", "empty"])
def test_golden(name):
    file = GOLDEN / f"report-{name}.html"
    told = bare(render(SAMPLES[name], "html"))
    if os.environ.get("TRACEDIAG_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8"), "if the change is wanted: TRACEDIAG_GOLDEN=write"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_alone_is_a_whole_page_without_a_script(name):
    page = Reading(render(SAMPLES[name], "html"))
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert len(page.ids) == len(set(page.ids))
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert SAMPLES[name].verdict["text"].split()[0] in " ".join(page.text)


@pytest.mark.parametrize("made", [hostile, crowded])
def test_a_page_with_an_excerpt_is_well_formed_and_asks_for_nothing(made):
    text = render(*_split(made()))
    page = Reading(text)
    assert len(page.ids) == len(set(page.ids))
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "object", "embed", "link", "base", "form"), tag
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset")], attributes
        assert (attributes.get("href") or "#").startswith(("#", "https://", "http://"))
    assert len(text.encode()) < LIMIT
    assert text == render(*_split(made()))


def _split(made):
    return made[0], "html", made[1]


def test_the_policy_names_the_hashes_of_all_that_runs():
    text = render(*_split(hostile()))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert text.index("Content-Security-Policy") < text.index("<style")
    scripts = re.findall(r"(?s)<script>(.*?)</script>", text)
    assert len(scripts) == 1
    for content in (*scripts, *re.findall(r"(?s)<style>(.*?)</style>", text)):
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    assert "script-src 'none'" in render(SAMPLES["one"], "html")


def test_data_cannot_leave_its_block():
    _, made = hostile()
    text = render(SAMPLES["hostile"], "html", made)
    data = re.search(r'(?s)<script type="application/json" id="excerpt">(.*?)</script>', text)[1]
    assert json.loads(data) == json.loads(json.dumps(made))
    assert "<" not in data
    assert data.isascii()
    assert "<script>alert" not in text
    assert "onerror=alert(2)>" not in text


def test_names_are_shown_as_they_are():
    told = " ".join(Reading(render(SAMPLES["hostile"], "html")).text)
    assert "<script>alert(1)</script> <img src=x onerror=alert(2)>" in told
    assert "\\u202e" in told
    assert "\u202e" not in told


def test_only_web_addresses_become_links():
    assert "<a " not in markup.link("javascript:alert(1)")
    assert markup.link('https://a.example/?a=1&b="').count('"') == 4
    assert "<code>&lt;b&gt;</code>" in markup.prose("see `<b>`")


def test_findings_open_by_weight_and_all_are_there():
    page = Reading(render(SAMPLES["fifty"], "html"))
    found = [attrs for tag, attrs in page.tags if tag == "details" and "data-finding" in attrs]
    assert [one["data-finding"] for one in found] == [str(i) for i in range(50)]
    assert sum("open" in one for one in found) == 3


def test_hundreds_of_findings_stay_small():
    text = render(report(*[FINDING] * 400), "html")
    assert len(text) < 600_000


def test_a_run_without_steps_is_not_called_a_step():
    told = " ".join(Reading(render(SAMPLES["empty"], "html")).text)
    assert "the step goes" not in told
    _, made = recorded("torch-unfused-adam")
    shown = " ".join(Reading(render(SAMPLES["none"], "html", made | {"steps": [], "series": None, "memory": []})).text)
    assert "no training step was found" in shown
    assert "No allocations of any size are in the trace." in shown


def test_what_is_left_out_is_said():
    _, made = recorded("torch-unfused-adam")
    left_out = {"events": 400, "of": 1400, "shorter_ns": 1500, "lanes": 3, "gaps": 7}
    window = made["window"] | {"ranks": 8, "rank": 2}
    told = " ".join(Reading(render(SAMPLES["none"], "html", made | {"left_out": left_out, "window": window})).text)
    for words in ("1,000 of 1,400 events are drawn", "1.5 µs", "3 lanes", "7 short pieces", "Only rank 2 of 8"):
        assert words in told


def test_the_command_draws_the_trace_although_its_report_is_kept(tmp_path):
    for name in ("first.html", "second.html"):
        run = [str(ROOT / "fixtures" / "torch-unfused-adam" / "slow"), "--format", "html", "--output", str(tmp_path / name), "-q"]
        assert main(["explain", *run]) == 0
    first, second = (tmp_path / name for name in ("first.html", "second.html"))
    assert first.read_bytes() == second.read_bytes()
    assert 'id="excerpt"' in first.read_text(encoding="utf-8")
    assert str(ROOT) not in first.read_text(encoding="utf-8")


def test_a_page_tells_no_private_names(tmp_path, monkeypatch):
    monkeypatch.setattr(privacy, "names_here", lambda: ["marvin"])
    name = "/home/marvin/code/train.py(7): step on marvin"
    report, made = hostile()
    drawn = made | {"strings": [name if text == EVIL else text for text in made["strings"]]}
    emit(replace(report, verdict={"rule": None, "text": name}), "html", tmp_path / "page.html", drawn)
    told = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "marvin" not in told
    assert "train.py(7): step on private" in told


def test_a_page_is_not_for_a_terminal(monkeypatch):
    monkeypatch.setattr(console, "_is_terminal", lambda _: True)
    with pytest.raises(InputError, match=r"--output report\.html"):
        emit(SAMPLES["one"], "html", None)


def test_the_licence_of_the_library_travels_with_it():
    assert "The MIT License (MIT)" in render(*_split(hostile()))
    assert "uPlot" not in render(SAMPLES["one"], "html")
