"""Generated documentation pages."""

from __future__ import annotations

from tracediag.docgen import rule_page, rule_pages
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


def test_every_rule_has_a_page_and_a_line_in_the_index() -> None:
    pages = rule_pages(load_rules())
    assert set(pages) == {"index.md", *(f"{rule.id}.md" for rule in load_rules())}
    assert all(f"({rule.id}.md)" in pages["index.md"] for rule in load_rules())
