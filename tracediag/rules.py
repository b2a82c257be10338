"""Rule files: where they lie, how they are loaded with every error collected, chosen and given other parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracediag.errors import RuleError
from tracediag.places import rules_folder
from tracediag.rule import Param, Rule, RuleTest, Saving
from tracediag.rulecheck import check_queries
from tracediag.rulefields import parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Param", "Rule", "RuleTest", "Saving", "load_rules", "override_params", "rules_folder", "select_rules"]


def load_rules(extra: Iterable[str | Path] = (), *, check_all: bool = False, tests: bool = True) -> tuple[Rule, ...]:
    """The bundled rules and those of other folders or files, in order of code and id. tests: False for bundled rules without theirs.

    Queries are checked against the schema for the extra rules; for the bundled ones only with `check_all`, since the test-suite
    has done it. Raises RuleError that lists every error of every file, one a line.
    """
    bundled = sorted(rules_folder().glob("*.yaml"))
    mine = [path for folder in extra for path in _rule_files(Path(folder))]
    rules: list[Rule] = []
    problems: list[str] = []
    for path in [*bundled, *mine]:
        rule, errors = parse_rule(path.read_text(encoding="utf-8"), path, tests=True) if path in mine else _bundled(path, tests)
        problems += [f"{path.name}: {error}" for error in errors]
        rules += [rule] if rule is not None else []
    problems += _clashes(rules)
    unchecked = {str(path) for path in mine}
    problems += check_queries([rule for rule in rules if check_all or rule.path in unchecked])
    if problems:
        raise RuleError("rules: " + "\n".join(problems))
    return tuple(sorted(rules, key=lambda rule: (rule.code, rule.id)))


@cache
def _bundled(path: Path, tests: bool) -> tuple[Rule | None, list[str]]:
    """A rule file that comes with tracediag: it does not change while a process runs."""
    return parse_rule(path.read_text(encoding="utf-8"), path, tests=tests)


def _rule_files(place: Path) -> list[Path]:
    """The rule files of a folder, or the one file named. Raises RuleError when there are none, not even rules about pairs."""
    files = sorted(place.glob("*.yaml")) if place.is_dir() else [place] if place.is_file() else []
    if not files and not any(place.glob("pairs/*.yaml")):
        raise RuleError(f"rules: {place}: no such rule file or folder of *.yaml files")
    return files


def _clashes(rules: Sequence[Rule]) -> list[str]:
    """Ids and codes used twice, and rules named in `excludes` that do not exist."""
    problems: list[str] = []
    for field in ("id", "code"):
        first: dict[str, Rule] = {}
        for rule in rules:
            other = first.setdefault(getattr(rule, field), rule)
            if other is not rule:
                problems.append(f"{Path(rule.path).name}: {field} {getattr(rule, field)!r} is taken by {other.path}")
    ids = {rule.id for rule in rules}
    return problems + [f"{Path(rule.path).name}: excludes: no rule {name!r}" for rule in rules for name in rule.excludes if name not in ids]


def override_params(rules: Iterable[Rule], overrides: Mapping[str, Mapping[str, Param]]) -> tuple[Rule, ...]:
    """The rules with some parameters set anew. Raises RuleError for a rule or parameter that does not exist or has another type."""
    rules = tuple(rules)
    problems = [f"no rule {name!r}" for name in overrides if name not in {rule.id for rule in rules}]
    result = []
    for rule in rules:
        changes = overrides.get(rule.id, {})
        for name, value in changes.items():
            if name != "min_share" and name not in rule.params:
                problems.append(f"rule {rule.id} has no parameter {name!r} (it has: {', '.join(rule.params) or 'none'})")
            elif isinstance(rule.params.get(name, 0.0), str) != isinstance(value, str):
                problems.append(f"parameter {rule.id}.{name} is a {'text' if isinstance(rule.params[name], str) else 'number'}")
        result.append(replace(rule, params={**rule.params, **changes}) if changes else rule)
    if problems:
        raise RuleError("rule parameters: " + "; ".join(problems))
    return tuple(result)


def select_rules(rules: Iterable[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules named by id or code in `select` (all when empty) and not in `ignore`. Raises RuleError for an unknown name."""
    rules, select, ignore = tuple(rules), set(select), set(ignore)
    known = {name for rule in rules for name in (rule.id, rule.code)}
    unknown = sorted((select | ignore) - known)
    if unknown:
        raise RuleError(f"no rule {', '.join(unknown)}; `tracediag rules list` shows the ids and codes")
    chosen = (rule for rule in rules if not select or {rule.id, rule.code} & select)
    return tuple(rule for rule in chosen if not {rule.id, rule.code} & ignore)
