"""Loading and checking rule files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tracediag.errors import RuleError
from tracediag.rules import load_rules, override_params, rules_folder, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULE: dict[str, Any] = {
    "id": "my-rule",
    "code": "L90",
    "title": "Many casts",
    "category": "launch",
    "frameworks": ["torch"],
    "severity": "medium",
    "confidence": "likely",
    "needs": ["ops.kind"],
    "summary": "Casts.",
    "why": "Because.",
    "fix": [{"framework": "torch", "text": "Do not cast."}],
    "params": {"least_ns": 10},
    "query": "SELECT op_id, 'casts' AS group_key, name FROM ops WHERE kind = 'cast' AND dur_ns >= $least_ns",
    "saving": {"transform": "drop"},
    "message": "{name} takes {percent} %",
    "references": ["https://example.org"],
    "since": "0.1",
    "tests": [
        {"name": "yes", "given": {"ops": [{"name": "aten::to", "kind": "cast"}]}, "expect": {"fires": True}},
        {"name": "no", "given": {"ops": [{"name": "aten::mm", "kind": "matmul"}]}, "expect": {"fires": False}},
    ],
}


def write(folder: Path, changes: dict[str, Any] | None = None, name: str = "my-rule") -> Path:
    rule = {**RULE, **(changes or {})}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in rule.items() if value != "absent"}), encoding="utf-8")
    return path


def errors(folder: Path, changes: dict[str, Any]) -> str:
    with pytest.raises(RuleError) as caught:
        load_rules([write(folder, changes)])
    return str(caught.value)


def test_loads_bundled_and_own_rules(tmp_path: Path) -> None:
    write(tmp_path)
    rules = load_rules([tmp_path])
    assert {"my-rule", "opt-step-dominant"} <= {rule.id for rule in rules}
    assert [rule.code for rule in rules] == sorted(rule.code for rule in rules)
    mine = next(rule for rule in rules if rule.id == "my-rule")
    assert mine.owns and not mine.umbrella and mine.devices == ("any",) and mine.min_share == 0.03


def test_rules_are_found_in_the_source_tree() -> None:
    assert (rules_folder() / "opt-step-dominant.yaml").is_file()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "other"}, "must be the file's name"),
        ({"code": "X1"}, "code"),
        ({"category": "input"}, "belongs to category launch"),
        ({"category": "nonsense"}, "is none of"),
        ({"title": "absent"}, "title: is missing"),
        ({"colour": "red"}, "colour: unknown field"),
        ({"frameworks": ["caffe"]}, "'caffe' is none of torch"),
        ({"severity": "huge"}, "severity"),
        ({"umbrella": True, "owns": True}, "an umbrella rule owns no time"),
        ({"query": "SELECT 1; SELECT 2"}, "exactly one SELECT"),
        ({"query": "DROP TABLE ops"}, "exactly one SELECT"),
        ({"query": "SELEC op_id"}, "query: Parser Error"),
        ({"query": RULE["query"].replace("dur_ns", "durr_ns")}, 'Referenced column "durr_ns" not found'),
        ({"query": RULE["query"].replace("FROM ops", "FROM opps")}, "opps"),
        ({"query": RULE["query"].replace("'cast'", "'castt'")}, "kind is never 'castt'"),
        ({"query": RULE["query"].replace("= 'cast'", "IN ('cast', 'matmull')")}, "kind is never 'matmull'"),
        ({"query": RULE["query"].replace("kind = 'cast'", "phase <> 'forwards'")}, "phase is never 'forwards'"),
        ({"query": RULE["query"].replace("name", "any_value(name)")}, "any_value() is not the same in every run"),
        ({"query": RULE["query"].replace("group_key", "key")}, "must return group_key"),
        ({"query": RULE["query"].replace("op_id", "dur_ns AS d")}, "must return op_id, gap_id or series_step"),
        ({"query": RULE["query"].replace("op_id", "op_id, 0.5 AS share")}, "share may only be returned"),
        ({"params": {}}, "$least_ns is used but not declared"),
        ({"params": {"least_ns": 1, "more": 2}}, "more is declared but not used"),
        ({"params": {"least_ns": [1]}}, "neither a number nor a text"),
        ({"needs": ["ops.colour"]}, "no table or column 'ops.colour'"),
        ({"message": "{colour}"}, "no column 'colour'"),
        ({"message": "{name!r}"}, "only plain {name}"),
        ({"message": "{name.__class__}"}, "only plain {name}"),
        ({"saving": {"transform": "magic"}}, "'magic' is none of"),
        ({"saving": {"transform": "keep"}}, "keep needs keep_low"),
        ({"saving": {"transform": "merge_launches"}}, "merge_launches needs keep_low"),
        ({"saving": {"transform": "scale_bytes"}}, "scale_bytes needs the columns bytes_now and bytes_after"),
        ({"saving": {"transform": "drop", "keep_low": 0.1, "keep_high": 0.2}}, "belong to the transforms keep, at_least, scale"),
        ({"saving": {"transform": "keep", "keep_low": 0.5, "keep_high": 0.1}}, "0 <= keep_low <= keep_high"),
        ({"excludes": ["nobody"]}, "no rule 'nobody'"),
        ({"tests": RULE["tests"][:1]}, "one that stays silent"),
        ({"tests": [{**RULE["tests"][0], "given": {"opps": []}}, RULE["tests"][1]]}, "'opps' is no table"),
        ({"tests": [{**RULE["tests"][0], "given": {"ops": [{"nam": "x"}]}}, RULE["tests"][1]]}, "no column nam"),
        ({"tests": [{**RULE["tests"][0], "expect": {"fires": True, "colour": 1}}, RULE["tests"][1]]}, "'colour' is none of"),
        ({"fix": [{"framework": "torch", "words": "x"}]}, "fix 1: words: unknown field"),
    ],
)
def test_wrong_fields_are_said(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    text = errors(tmp_path, changes)
    assert said in text
    assert "my-rule.yaml: " in text


def test_all_errors_of_all_files_are_collected(tmp_path: Path) -> None:
    write(tmp_path, {"severity": "huge", "title": "absent"})
    write(tmp_path, {"id": "second", "code": "L91", "needs": ["nothing"]}, "second")
    with pytest.raises(RuleError) as caught:
        load_rules([tmp_path])
    text = str(caught.value)
    assert all(part in text for part in ("severity", "title: is missing", "second.yaml: needs"))


def test_clashes_and_bad_yaml(tmp_path: Path) -> None:
    write(tmp_path, {"code": "O03"})
    (tmp_path / "twice.yaml").write_text("id: twice\nid: again\n", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("a: [", encoding="utf-8")
    (tmp_path / "list.yaml").write_text("- a", encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        load_rules([tmp_path])
    text = str(caught.value)
    assert all(part in text for part in ("code 'O03' is taken", "key given twice: id", "broken.yaml: not YAML", "not a mapping"))


def test_folder_without_rules_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such rule file"):
        load_rules([tmp_path])


def test_queries_cannot_reach_files(tmp_path: Path) -> None:
    text = errors(
        tmp_path, {"query": "SELECT 1::BIGINT AS op_id, 'x' AS group_key, * FROM read_csv('/etc/hostname')", "params": {}, "message": "x"}
    )
    assert "disabled" in text or "Permission" in text


def test_parameters_are_overridden_or_refused() -> None:
    rules = load_rules()
    changed = override_params(rules, {"opt-step-dominant": {"min_share": 0.5}})
    assert next(rule for rule in changed if rule.id == "opt-step-dominant").min_share == 0.5
    with pytest.raises(RuleError, match="no parameter 'nothing'"):
        override_params(rules, {"opt-step-dominant": {"nothing": 1}})
    with pytest.raises(RuleError, match="no rule 'nobody'"):
        override_params(rules, {"nobody": {}})
    with pytest.raises(RuleError, match="is a number"):
        override_params(rules, {"opt-step-dominant": {"min_share": "large"}})


def test_select_and_ignore_by_id_or_code() -> None:
    rules = load_rules()
    assert [rule.id for rule in select_rules(rules, ["O03"])] == ["opt-step-dominant"]
    assert "O03" not in {rule.code for rule in select_rules(rules, (), ["opt-step-dominant"])}
    with pytest.raises(RuleError, match="no rule Z99"):
        select_rules(rules, ["Z99"])
