"""docs/formats.md says what became of every real file, and is up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from format_samples import ascend, dumped, local_trace, run_metadata, timeline
from reader_samples import XPLANE, kineto, kineto_bytes, xspace

from tracediag.readers import read_all

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def formats():
    spec = importlib.util.spec_from_file_location("tracediag_formats", ROOT / "tools" / "formats.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAMPLES = {
    "a.json": kineto_bytes(kineto()),
    "b.json": dumped(timeline()),
    "c.json": dumped(ascend()),
    "d.xplane.pb": xspace(XPLANE),
    "e": run_metadata(),
    "f.trace": local_trace(),
}


def test_the_count_of_the_page_is_that_of_the_readers(formats, tmp_path):
    for name, data in SAMPLES.items():
        (tmp_path / name).write_bytes(data)
        assert formats.in_file(tmp_path / name) == read_all([str(tmp_path / name)])[0][0].events, name


def test_each_file_has_a_line(formats, tmp_path):
    (tmp_path / "kind").mkdir()
    for name, data in {**SAMPLES, "g.html": b"<html>", "h.json": kineto_bytes(kineto())[:900]}.items():
        (tmp_path / "kind" / name).write_bytes(data)
    page = formats.page(tmp_path)
    assert re.search(r"\| kind/a.json \| kineto \| (\d+) / \1 \| \d+ \| `few-steps`", page)
    assert re.search(r"\| kind/g.html \| no \| \| \| a web page .* \|", page)
    assert re.search(r"\| kind/h.json \| kineto \| \d+ / \? \| \d+ \| `truncated-file`", page)
    assert str(tmp_path) not in page


def test_the_page_is_checked_and_written(formats, tmp_path, monkeypatch, capsys):
    (tmp_path / "kind").mkdir()
    (tmp_path / "kind" / "a.json").write_bytes(kineto_bytes(kineto()))
    monkeypatch.setattr(formats, "PAGE", tmp_path / "formats.md")
    assert formats.main(["--check", str(tmp_path)]) == 1
    assert "stale" in capsys.readouterr().out
    assert formats.main([str(tmp_path)]) == formats.main(["--check", str(tmp_path)]) == 0
    assert formats.main(["--check", str(tmp_path / "nowhere")]) == 0


@pytest.mark.traces
def test_the_page_is_up_to_date_and_no_event_is_lost(formats):
    if not formats.FOLDER.is_dir():
        pytest.skip("the public traces are not beside this checkout")
    wanted = formats.page(formats.FOLDER)
    for line in re.findall(r"^\| \S+/\S+ \|.*$", wanted, re.MULTILINE):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[1] == "no":
            assert len(cells[4]) > 20, line
        else:
            read, there = cells[2].split(" / ")
            assert read == there or "?" in there, line
            assert int(cells[3]) > 0 or "`no-events`" in cells[4], line
    assert formats.PAGE.read_text(encoding="utf-8") == wanted, "run: python tools/formats.py"
