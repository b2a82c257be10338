"""What the formats make of a common set of reports, whole, as files under golden/; TRACEDIAG_GOLDEN=write makes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report_samples import SAMPLES

from tracediag.reports import render

FOLDER = Path(__file__).resolve().parent / "golden"
ENDINGS = {"text": "txt", "json": "json", "markdown": "md", "sarif": "sarif"}
NAMES = ("none", "one", "fifty", "hostile")


@pytest.mark.parametrize("form", ENDINGS)
@pytest.mark.parametrize("name", NAMES)
def test_a_report_reads_as_it_did(name, form):
    file = FOLDER / f"{name}.{ENDINGS[form]}"
    told = render(SAMPLES[name], form)
    if os.environ.get("TRACEDIAG_GOLDEN") == "write":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8"), f"{file.name} differs; look at the change, then TRACEDIAG_GOLDEN=write"


def test_there_is_no_golden_file_without_a_test():
    assert {file.name for file in FOLDER.iterdir() if file.suffix != ".html"} == {
        f"{name}.{ending}" for name in NAMES for ending in ENDINGS.values()
    }
