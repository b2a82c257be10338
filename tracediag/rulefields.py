"""Turn the text of one rule file into a Rule, collecting everything that is wrong with its fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from tracediag.findings import CONFIDENCES, SEVERITIES, Fix
from tracediag.rule import Param, Rule, RuleTest, Saving
from tracediag.schema import TABLES
from tracediag.severity import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["DEVICES", "FRAMEWORKS", "parse_rule"]

FRAMEWORKS = ("torch", "tensorflow", "jax")
DEVICES = ("any", "cpu", "gpu", "tpu")
FIX_FRAMEWORKS = (*FRAMEWORKS, "keras", "any")
TRANSFORMS = ("drop", "keep", "at_least", "scale", "scale_bytes", "merge_launches", "none")
KEEPING = ("keep", "at_least", "scale", "merge_launches")
"""Transforms of which a fraction may stay."""
BUILDING_KEYS = {"launch", "repeat", "every_ns", "step_num"}
"""Keys of op rows in tests that are no columns: see `Trace.from_rows`."""
EXPECTATIONS = ("fires", "confidence", "severity", "share", "group", "message_contains", "line")

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CODE = re.compile(r"[A-Z]\d\d")
_TESTS = re.compile(r"^tests:.*\n?(?:(?:[ #-].*)?(?:\n|\Z))*", re.MULTILINE)
"""The field `tests` with all that belongs to it: lines that are indented, empty, or begin with a hyphen."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C loader is there in most builds
    """Safe YAML in which a key given twice is an error, not the last one silently winning."""


def _unique_mapping(loader: Any, node: Any) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    twice = sorted({str(key) for key in keys if keys.count(key) > 1})
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"key given twice: {', '.join(twice)}", node.start_mark)
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


class _Fields:
    """A mapping read field by field: wrong types and unknown names become lines in `errors`, and a harmless value is returned."""

    def __init__(self, data: Mapping[str, Any], errors: list[str], where: str = "") -> None:
        self.data, self.errors, self.where = data, errors, where
        self.seen: set[str] = set()

    def fail(self, name: str, what: str) -> None:
        self.errors.append(f"{self.where}{name}: {what}")

    def get(self, name: str, kind: type | tuple[type, ...], default: Any, *, required: bool = False, what: str = "") -> Any:
        self.seen.add(name)
        value = self.data.get(name)
        if value is None:
            if required:
                self.fail(name, "is missing")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(name, f"must be {what or getattr(kind, '__name__', kind)}, not {value!r}")
            return default
        return value

    def text(self, name: str, default: str = "", *, required: bool = True) -> str:
        value = str(self.get(name, str, default, required=required, what="a text")).strip()
        if required and not value and self.data.get(name) is not None:
            self.fail(name, "is empty")
        return value

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.get(name, bool, default, what="true or false"))

    def choice(self, name: str, allowed: Sequence[str], default: str, *, required: bool = True) -> str:
        value = self.text(name, default, required=required)
        if value not in allowed:
            self.fail(name, f"{value!r} is none of {', '.join(allowed)}")
            return default
        return value

    def texts(self, name: str, allowed: Sequence[str] | None = None, *, required: bool = False) -> tuple[str, ...]:
        values = self.get(name, list, [], required=required, what="a list")
        wrong = [v for v in values if not isinstance(v, str) or (allowed is not None and v not in allowed)]
        for value in wrong:
            self.fail(name, f"{value!r} is none of {', '.join(allowed)}" if allowed else f"{value!r} is not a text")
        if required and not values and self.data.get(name) is not None:
            self.fail(name, "is empty")
        return tuple(v for v in values if v not in wrong)

    def rows(self, name: str, *, required: bool = False) -> list[Mapping[str, Any]]:
        values = self.get(name, list, [], required=required, what="a list")
        for value in values:
            if not isinstance(value, dict):
                self.fail(name, f"{value!r} is not a mapping")
        return [value for value in values if isinstance(value, dict)]

    def close(self) -> None:
        for name in self.data:
            if name not in self.seen:
                self.fail(str(name), f"unknown field (known: {', '.join(sorted(self.seen))})")


def parse_rule(text: str, path: Path, *, tests: bool = True) -> tuple[Rule | None, list[str]]:
    """The rule in `text` and what is wrong with it; the rule is None when the text is no YAML mapping.

    tests: False leaves its tests out, unread: they are most of the text.
    """
    if not tests:
        text = _TESTS.sub("", text)
    try:
        data = yaml.load(text, Loader=_Loader)  # a subclass of the safe loader
    except yaml.YAMLError as error:
        return None, ["not YAML: " + " ".join(str(error).split())]
    if not isinstance(data, dict):
        return None, ["not a mapping of fields"]
    errors: list[str] = []
    fields = _Fields(data, errors)
    rule = _rule(fields, path, tests)
    fields.close()
    _check_names(rule, path, fields)
    if tests:
        _check_tests(rule, fields)
    return rule, errors


def _rule(f: _Fields, path: Path, tests: bool) -> Rule:
    umbrella = f.flag("umbrella", False)
    owns = f.flag("owns", not umbrella)
    if umbrella and owns:
        f.fail("owns", "an umbrella rule owns no time")
    return Rule(
        id=f.text("id"),
        code=f.text("code"),
        title=f.text("title"),
        category=f.choice("category", tuple(CATEGORIES.values()), ""),
        frameworks=f.texts("frameworks", FRAMEWORKS, required=True),
        severity=f.choice("severity", SEVERITIES, "low"),
        confidence=f.choice("confidence", CONFIDENCES, "possible"),
        needs=f.texts("needs"),
        devices=f.texts("devices", DEVICES) or ("any",),
        occurs=f.texts("occurs"),
        summary=f.text("summary"),
        why=f.text("why"),
        fix=_fixes(f),
        changes_training=f.text("changes_training", required=False) or None,
        params=_params(f),
        umbrella=umbrella,
        owns=owns,
        query=f.text("query").rstrip().rstrip(";"),
        saving=_saving(f),
        message=f.text("message"),
        excludes=f.texts("excludes"),
        references=f.texts("references"),
        since=f.text("since"),
        tests=_tests(f) if tests else (),
        path=str(path),
    )


def _fixes(f: _Fields) -> tuple[Fix, ...]:
    result = []
    for number, row in enumerate(f.rows("fix", required=True), 1):
        one = _Fields(row, f.errors, f"fix {number}: ")
        result.append(Fix(one.choice("framework", FIX_FRAMEWORKS, "any"), one.text("text"), one.text("code", required=False) or None))
        one.close()
    return tuple(result)


def _params(f: _Fields) -> dict[str, Param]:
    values = f.get("params", dict, {}, what="a mapping")
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            f.fail("params", f"{name}: {value!r} is neither a number nor a text")
    return {str(name): value for name, value in values.items()}


def _saving(f: _Fields) -> Saving:
    one = _Fields(f.get("saving", dict, {}, required=True, what="a mapping"), f.errors, "saving: ")
    transform = one.choice("transform", TRANSFORMS, "none", required=bool(one.data))
    low, high = (one.get(name, (int, float), None, what="a number") for name in ("keep_low", "keep_high"))
    one.close()
    if (low is None) != (high is None) or (low is not None and not 0 <= low <= high <= 1):
        f.fail("saving", "keep_low and keep_high go together, 0 <= keep_low <= keep_high <= 1")
    if transform not in KEEPING and low is not None:
        f.fail("saving", f"keep_low and keep_high belong to the transforms {', '.join(KEEPING)}")
    return Saving(transform, low, high)


def _tests(f: _Fields) -> tuple[RuleTest, ...]:
    result = []
    for number, row in enumerate(f.rows("tests", required=True), 1):
        one = _Fields(row, f.errors, f"test {row.get('name', number)!r}: ")
        name = one.text("name")
        given = one.get("given", dict, {}, required=True, what="a mapping of tables to rows")
        expect = one.get("expect", dict, {}, required=True, what="a mapping")
        one.close()
        result.append(RuleTest(name, given, expect))
    return tuple(result)


def _check_names(rule: Rule, path: Path, f: _Fields) -> None:
    if rule.id and (not _ID.fullmatch(rule.id) or rule.id != path.stem):
        f.fail("id", f"{rule.id!r} must be the file's name without .yaml: small letters, digits and hyphens")
    if rule.code and (not _CODE.fullmatch(rule.code) or rule.code[0] not in CATEGORIES):
        f.fail("code", f"{rule.code!r} must be a letter of {''.join(CATEGORIES)} and two digits")
    elif rule.code and rule.category and CATEGORIES[rule.code[0]] != rule.category:
        f.fail("category", f"code {rule.code} belongs to category {CATEGORIES[rule.code[0]]}, not {rule.category}")
    if rule.code[:1] == "M" and rule.owns:
        f.fail("owns", "a measurement rule owns no time: owns must be false")
    for name in ("min_share",):
        if isinstance(rule.params.get(name, 0), str):
            f.fail("params", f"{name} must be a number")


def _check_tests(rule: Rule, f: _Fields) -> None:
    """Each test must build real tables and expect known things, and there must be one that fires and one that does not."""
    for test in rule.tests:
        where = f"test {test.name!r}"
        for name in test.expect:
            if name not in EXPECTATIONS:
                f.fail(where, f"expect: {name!r} is none of {', '.join(EXPECTATIONS)}")
        if not isinstance(test.expect.get("fires"), bool):
            f.fail(where, "expect: fires must be true or false")
        for name, rows in test.given.items():
            problem = _given_problem(name, rows)
            if problem:
                f.fail(where, f"given: {problem}")
    if {test.expect.get("fires") for test in rule.tests} < {True, False}:
        f.fail("tests", "needs one test that fires and one that stays silent")


def _given_problem(name: str, rows: Any) -> str | None:
    """What is wrong with one entry of `given`: rows of a table, `run` (more of run.json) or `framework`."""
    if name in ("framework", "run"):
        return None if isinstance(rows, str if name == "framework" else dict) else f"{name} has the wrong type"
    columns = {table.name: set(table.names) for table in TABLES}
    if name not in columns or not isinstance(rows, list) or any(not isinstance(row, dict) for row in rows):
        return f"{name!r} is no table with a list of rows"
    known = columns[name] | (BUILDING_KEYS if name == "ops" else set())
    unknown = sorted({str(column) for row in rows for column in row} - known)
    return f"table {name} has no column {', '.join(unknown)}" if unknown else None
