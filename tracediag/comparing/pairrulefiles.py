"""Rules about pairs: one YAML file each in the folder `pairs` of a folder of rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from tracediag.errors import RuleError
from tracediag.findings import Fix  # noqa: TC001  # msgspec reads the annotations of PairRule
from tracediag.places import rules_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PairRule", "PairTest", "load_pair_rules"]

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class PairTest:
    """One test in a rule file. given: rows of the tables; expect: fires, message_contains."""

    name: str
    given: Rows
    expect: dict[str, Any]


@dataclass(frozen=True)
class PairRule:
    """A rule about two sides. path: its file."""

    id: str
    code: str
    title: str
    severity: str
    confidence: str
    summary: str
    why: str
    fix: tuple[Fix, ...]
    query: str
    message: str
    references: tuple[str, ...]
    since: str
    tests: tuple[PairTest, ...]
    params: dict[str, float] = field(default_factory=dict)
    path: str = ""


def load_pair_rules(extra: Iterable[str | Path] = ()) -> tuple[PairRule, ...]:
    """The bundled rules and those in `pairs` of other folders, in order of code. Raises RuleError that lists every file in error."""
    folders = [rules_folder(), *(Path(folder) for folder in extra)]
    rules: list[PairRule] = []
    problems: list[str] = []
    for file in [file for folder in folders for file in sorted(folder.glob("pairs/*.yaml"))]:
        try:
            rule = msgspec.convert(yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER), PairRule)
        except (OSError, ValueError, yaml.YAMLError) as error:  # msgspec's ValidationError is a ValueError, as bad UTF-8 is
            problems.append(f"{file.name}: {' '.join(str(error).split())}")
            continue
        taken = [f"{file.name}: {key} {value!r} is taken" for key, value in (("id", rule.id), ("code", rule.code)) if _taken(rules, value)]
        problems += taken
        rules += [] if taken else [replace(rule, path=str(file))]
    if problems:
        raise RuleError("rules: " + "\n".join(problems))
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _taken(rules: list[PairRule], name: str) -> bool:
    return any(name in (rule.id, rule.code) for rule in rules)
