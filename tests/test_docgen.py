"""Generated documentation pages."""

from __future__ import annotations

from pathlib import Path

from tracediag.docgen import rule_page, rule_pages, stale, write_pages
from tracediag.rules import load_rules


def test_a_rule_page_says_everything() -> None:
    rule = next(rule for rule in load_rules() if rule.id == "emb-dense-grad-torch")
    page = rule_page(rule)
    assert page.startswith("# E03 emb-dense-grad-torch\n")
    for part in (
        rule.title,
        rule.why,
        rule.query,
        rule.fix[0].text,
        rule.fix[0].code,
        *rule.references,
        rule.changes_training,
        "| `min_share` | 0.03 |",
    ):
        assert part is not None and part in page


def test_pages_are_written_once_and_old_ones_removed(tmp_path: Path) -> None:
    pages = rule_pages(load_rules())
    (tmp_path / "gone.md").write_text("old", encoding="utf-8")
    assert set(stale(tmp_path, pages)) == {*pages, "gone.md"}
    write_pages(tmp_path, pages)
    assert stale(tmp_path, pages) == []
    assert not (tmp_path / "gone.md").exists()
