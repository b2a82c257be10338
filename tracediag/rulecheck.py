"""Check rule queries against the schema before they ever run: one SELECT, real columns, declared parameters, known words."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tracediag.columns import ROLES
from tracediag.database import connect
from tracediag.findings import CONFIDENCES
from tracediag.kinds import KINDS, PHASES
from tracediag.occurs import pattern_problem
from tracediag.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracediag.rule import Rule

__all__ = ["CLAIM_COLUMNS", "ENGINE_FACTS", "PLACEHOLDER", "check_queries", "check_query", "vocabularies"]

CLAIM_COLUMNS = (
    "op_id",
    "gap_id",
    "series_step",
    "claim_ns",
    "after_ns",
    "from_ns",
    "to_ns",
    "step",
    "group_key",
    "confidence",
    "source",
    "keep_low",
    "keep_high",
    "bytes_now",
    "bytes_after",
    "share",
)
"""Columns of a query that the engine understands; all others are facts for the message."""

ENGINE_FACTS = ("percent", "ms_per_step", "whole")
"""Facts that the engine adds for the message: share of the step in percent, and milliseconds a step."""

TRACE_NEEDS = ("device",)
"""Needs that are neither table nor column: `device`, recorded work of a device."""

ENGINE_PARAMS = ("min_share",)
"""Parameters that the engine reads itself."""

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")

_WORD = re.compile(r"\w+")
_UNSTEADY = re.compile(r"\b(any_value|first|last|arbitrary|random|now|today|uuid|gen_random_uuid)\s*\(", re.IGNORECASE)
_STRING = re.compile(r"'((?:[^']|'')*)'")


@lru_cache
def vocabularies() -> Mapping[str, frozenset[str]]:
    """Column name -> the words it may hold, for every column with a closed vocabulary."""
    result: dict[str, frozenset[str]] = {}
    for table in TABLES:
        for column in table.columns:
            words = column.meaning.split(" | ")
            if len(words) > 1 and all(_WORD.fullmatch(word) for word in words):
                result[column.name] = result.get(column.name, frozenset()) | frozenset(words)
    fixed = {"kind": KINDS, "phase": PHASES, "role": ROLES, "confidence": CONFIDENCES}
    return {**result, **{name: frozenset(words) for name, words in fixed.items()}}


@lru_cache
def _comparison() -> re.Pattern[str]:
    names = "|".join(sorted(vocabularies()))
    return re.compile(rf"\b({names})\s*(?:=|<>|!=|(?:NOT\s+)?IN\b)\s*(\([^()]*\)|'(?:[^']|'')*')", re.IGNORECASE)


def check_queries(rules: Iterable[Rule]) -> list[str]:
    """What is wrong with the queries of these rules, one line each, with the file in front; empty when all is well."""
    rules = list(rules)
    if not rules:
        return []
    with connect({}) as connection:
        return [f"{Path(rule.path).name}: {problem}" for rule in rules for problem in check_query(rule, connection)]


def check_query(rule: Rule, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What is wrong with one rule's query, needs, parameters and message. connection: of the empty schema."""
    try:
        statements = connection.extract_statements(rule.query)
    except duckdb.Error as error:
        return [f"query: {_first_line(error)}"]
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        return ["query: must be exactly one SELECT"]
    problems = _check_params(rule, set(statements[0].named_parameters))
    problems += [f"needs: no table or column {name!r}" for name in rule.needs if name not in TRACE_NEEDS and not _exists(name, connection)]
    problems += [f"occurs: {problem}" for problem in map(pattern_problem, rule.occurs) if problem]
    problems += _check_words(rule.query)
    problems += [f"query: {word}() is not the same in every run" for word in sorted(set(_UNSTEADY.findall(rule.query)))]
    if problems and any(problem.startswith("params") for problem in problems):
        return problems
    try:
        names = output_columns(rule, connection)
    except duckdb.Error as error:
        return [*problems, f"query: {_first_line(error)}"]
    return problems + _check_output(rule, names) + _check_message(rule, names)


_outputs: dict[str, dict[str, str]] = {}
"""Query -> what it returns: the tables are the same for every trace, so that each query is asked once a process."""


def output_columns(rule: Rule, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Names and types of the columns that the query returns. Raises duckdb.Error."""
    if rule.query not in _outputs:
        used = {name: value for name, value in rule.params.items() if name not in ENGINE_PARAMS}
        cursor = connection.execute(f"SELECT * FROM (\n{rule.query}\n) AS claims LIMIT 0", used)
        _outputs[rule.query] = {str(column[0]): str(column[1]) for column in cursor.description or []}
    return _outputs[rule.query]


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _check_params(rule: Rule, used: set[str]) -> list[str]:
    declared = set(rule.params) - set(ENGINE_PARAMS)
    problems = [f"params: ${name} is used but not declared" for name in sorted(used - declared)]
    return problems + [f"params: {name} is declared but not used" for name in sorted(declared - used)]


def _exists(name: str, connection: duckdb.DuckDBPyConnection) -> bool:
    if "|" in name:
        return all(_exists(part, connection) for part in name.split("|"))
    table, _, column = name.partition(".")
    found = connection.execute("SELECT column_name FROM information_schema.columns WHERE table_name = ?", [table]).fetchall()
    return bool(found) and (not column or (column,) in found)


def _check_words(query: str) -> list[str]:
    problems = []
    for column, right in _comparison().findall(query):
        allowed = vocabularies()[column.lower()]
        problems += [f"query: {column} is never {word!r}" for word in _STRING.findall(right) if word not in allowed]
    return problems


def _check_output(rule: Rule, names: Mapping[str, str]) -> list[str]:
    problems = []
    if names.get("group_key") != "VARCHAR":
        problems.append("query: must return group_key as VARCHAR")
    if ("series_step" in names) != ("claim_ns" in names):
        problems.append("query: series_step and claim_ns go together")
    if rule.owns and not {"op_id", "gap_id", "series_step"} & set(names):
        problems.append("query: must return op_id, gap_id or series_step with claim_ns: the time that the rule claims")
    if rule.owns and "share" in names:
        problems.append("query: share may only be returned by rules with owns: false")
    if ("from_ns" in names) != ("to_ns" in names) or ("from_ns" in names and "op_id" not in names):
        problems.append("query: from_ns and to_ns go together, with op_id: the part of the op that is claimed")
    if ("keep_low" in names) != ("keep_high" in names):
        problems.append("query: keep_low and keep_high go together")
    how = rule.saving.transform
    if how in ("keep", "scale", "merge_launches") and rule.saving.keep_low is None and "keep_low" not in names:
        problems.append(f"saving: {how} needs keep_low and keep_high, here or as columns of the query")
    if (how == "scale_bytes") != bool({"bytes_now", "bytes_after"} & set(names)) or ("bytes_now" in names) != ("bytes_after" in names):
        problems.append("saving: scale_bytes needs the columns bytes_now and bytes_after of the query, and they need it")
    return problems


def _check_message(rule: Rule, names: Mapping[str, str]) -> list[str]:
    known = {*names, *rule.params, *ENGINE_FACTS}
    problems = [f"message: no column {name!r} in the query" for name in PLACEHOLDER.findall(rule.message) if name not in known]
    if set("{}") & set(PLACEHOLDER.sub("", rule.message)):
        problems.append("message: only plain {name} is allowed")
    return problems
