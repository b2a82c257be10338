"""Every rule file of the project: checked against the schema, its own tests, and the laws of the registry."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from tracediag.kinds import KINDS, PHASES
from tracediag.rulecheck import vocabularies
from tracediag.rules import load_rules
from tracediag.ruletests import run_rule_test
from tracediag.severity import CATEGORIES

if TYPE_CHECKING:
    from tracediag.rule import Rule, RuleTest

RULES = load_rules(check_all=True)
CASES = [pytest.param(rule, test, id=f"{rule.id}: {test.name}") for rule in RULES for test in rule.tests]


@pytest.mark.parametrize(("rule", "test"), CASES)
def test_rule_test(rule: Rule, test: RuleTest) -> None:
    assert run_rule_test(rule, test) is None


def test_ids_and_codes_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len({rule.code for rule in RULES}) == len(RULES) > 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_is_documented_and_tested(rule: Rule) -> None:
    assert {test.expect["fires"] for test in rule.tests} == {True, False}
    assert all((rule.title, rule.summary, rule.why, rule.fix, rule.message, rule.references, rule.since))
    assert not rule.title.endswith(".")
    assert rule.category == CATEGORIES[rule.code[0]]
    assert all(url.startswith("https://") for url in rule.references)


def test_vocabularies_are_the_closed_ones() -> None:
    assert vocabularies()["kind"] == set(KINDS)
    assert vocabularies()["phase"] == set(PHASES)


def test_without_its_tests_a_rule_is_the_same() -> None:
    for whole, bare in zip(load_rules(), load_rules(tests=False), strict=True):
        assert bare.tests == ()
        assert all(getattr(whole, field.name) == getattr(bare, field.name) for field in fields(whole) if field.name != "tests")
