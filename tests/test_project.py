"""What the project promises outside its code: pinned versions, a schema and rules that travel, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracediag.reports.json import schema

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def test_constraints_are_plain_pins():
    rows = [row for row in (ROOT / "constraints.txt").read_text().splitlines() if not row.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9._-]+==[\w.]+(; python_version >= \"3\.\d+\")?", row) for row in rows)
    assert {"torch==2.13.0", "tensorflow-cpu==2.21.0", "tf-keras==2.21.0"} <= set(rows)


def test_what_the_wheel_must_carry_is_named_in_pyproject():
    told = (ROOT / "pyproject.toml").read_text()
    assert '"rules" = "tracediag/_data/rules"' in told
    assert '"docs/schema" = "tracediag/_data/schema"' in told


def test_schema_says_which_major_version_it_is():
    assert schema()["title"] == schema()["properties"]["schema"]["const"] == "tracediag.report/1"


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


def test_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
