"""The generated pages say everything; whether the written ones are up to date is `make docs-check`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tracediag.kinds import KINDS, PHASES
from tracediag.schema import TABLES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def docs():
    spec = importlib.util.spec_from_file_location("tracediag_docs", ROOT / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_schema_page_names_every_table_column_kind_and_phase(docs):
    page = docs.schema_page()
    for table in TABLES:
        assert f"## {table.name}\n" in page
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} |" in page
    for word in (*KINDS, *PHASES):
        assert f"| `{word}` |" in page


def test_commands_page_has_every_command_and_option(docs):
    page = docs.commands_page()
    for command in ("profile", "explain", "rules", "rules list", "rules show", "rules test"):
        assert f"\n## tracediag {command}\n" in page
    options = "--out --framework --warmup --steps --stop-after-window --stacks --memory --python --no-explain --timeout --format"
    for option in f"{options} --output --rules --select --ignore --min-saving --fail-on --quiet --version".split():
        assert re.search(rf"\s{option}\b", page), option


def test_check_finds_missing_changed_and_left_over_pages(docs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    monkeypatch.setattr(docs, "pages", lambda: {"rules/a.md": "a\n", "schema.md": "s\n"})
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "gone.md").write_text("x")
    (tmp_path / "by-hand.md").write_text("x")
    assert docs.main(["--check"]) == 1
    assert capsys.readouterr().out.count("stale") == 3
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    assert {p.name for p in tmp_path.rglob("*.md")} == {"a.md", "schema.md", "by-hand.md"}
