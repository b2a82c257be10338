"""Generated documentation pages."""

from __future__ import annotations

from tracediag.comparing.pairrulefiles import load_pair_rules
from tracediag.docgen import pair_rule_page, rule_page, rule_pages
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
    names = [rule.id for rule in load_rules()] + [rule.id for rule in load_pair_rules()]
    pages = rule_pages(load_rules(), load_pair_rules())
    assert set(pages) == {"index.md", *(f"{name}.md" for name in names)}
    assert all(f"({name}.md)" in pages["index.md"] for name in names)


def test_the_page_of_a_rule_about_two_traces_says_what_is_asked_of_them() -> None:
    rule = load_pair_rules()[0]
    page = pair_rule_page(rule)
    for part in (f"# {rule.code} {rule.id}", rule.title, rule.why, rule.query, "`tracediag compare`"):
        assert part in page
