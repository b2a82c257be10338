"""The commands `rules list`, `rules show` and `rules test`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracediag.cliargs import DebugOption, RulesOption  # noqa: TC001  # typer reads the annotations
from tracediag.console import print_text
from tracediag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.comparing.pairrulefiles import PairRule
    from tracediag.rule import Rule

__all__ = ["rules_app"]

rules_app = typer.Typer(help="The rules: list them, show one rule's page, run the tests inside rule files.", rich_markup_mode=None)


@rules_app.command("list")
def rules_list(rules: RulesOption = None, debug: DebugOption = False) -> int:
    """One line a rule: code, id, highest severity, title; at the end the rules that `compare` asks of two traces."""
    known, pairs = _known(rules)
    width = max(len(name) for name in [*(rule.id for rule in known), *(rule.id for rule in pairs)])
    print_text("".join(_line(rule, width) for rule in known))
    print_text("\nOf two traces, for compare:\n\n" + "".join(_line(rule, width) for rule in pairs))
    return 0


def _line(rule: Rule | PairRule, width: int) -> str:
    return f"{rule.code}  {rule.id:<{width}}  {rule.severity:<6}  {rule.title}\n"


@rules_app.command("show")
def rules_show(
    rule: Annotated[str, typer.Argument(metavar="ID", help="Id or code of a rule.")], rules: RulesOption = None, debug: DebugOption = False
) -> int:
    """The page of one rule: what it means, how it is seen, what to do."""
    from tracediag.docgen import pair_rule_page, rule_page
    from tracediag.rules import select_rules

    known, pairs = _known(rules)
    about_two = next((pair for pair in pairs if rule in (pair.id, pair.code)), None)
    print_text(rule_page(select_rules(known, select=[rule])[0]) if about_two is None else pair_rule_page(about_two))
    return 0


@rules_app.command("test")
def rules_test(
    path: Annotated[list[Path] | None, typer.Argument(metavar="PATH", help="Rule files or folders of them; default: all rules.")] = None,
    debug: DebugOption = False,
) -> int:
    """Run the tests inside rule files; exit code 1 when one fails."""
    from tracediag.comparing.pairrules import run_pair_rule_tests
    from tracediag.ruletests import run_rule_tests

    known, pairs = _named([place.resolve() for place in path or ()])
    if not known and not pairs:
        raise InputError(f"rules test: no rule in {', '.join(map(str, path or ()))}")
    results = [(result.rule, result.name, result.problem) for result in run_rule_tests(known)] + list(run_pair_rule_tests(pairs))
    failed = [result for result in results if result[2]]
    print_text("".join(f"FAILED {rule}: {name}: {problem}\n" for rule, name, problem in failed))
    print_text(f"{len(results) - len(failed)} passed, {len(failed)} failed\n")
    return int(bool(failed))


def _known(rules: Sequence[Path] | None) -> tuple[tuple[Rule, ...], tuple[PairRule, ...]]:
    """The rules of one trace and those of two: bundled, of the project's settings, and of the folders given."""
    from tracediag.comparing.pairrulefiles import load_pair_rules
    from tracediag.rules import load_rules
    from tracediag.settings import find

    folders: list[str | Path] = [*find().rules, *(rules or ())]
    return load_rules(folders), load_pair_rules(folders)


def _named(places: Sequence[Path]) -> tuple[list[Rule], list[PairRule]]:
    """The rules in these files and folders (all the bundled ones when none is named), their queries checked."""
    from tracediag.comparing.pairrulefiles import load_pair_rules
    from tracediag.comparing.pairrules import check_pair_queries
    from tracediag.rules import load_rules, rules_folder

    own = [place for place in places if not place.is_relative_to(rules_folder().resolve())]
    pairs = load_pair_rules(dict.fromkeys(_folder_of_pairs(place) for place in own))  # each folder once
    check_pair_queries(pairs)
    of_pairs = {Path(rule.path).resolve() for rule in pairs}
    known = load_rules([place for place in own if place.name != "pairs" and place.resolve() not in of_pairs], check_all=True)
    return [rule for rule in known if _among(rule.path, places)], [rule for rule in pairs if _among(rule.path, places)]


def _folder_of_pairs(place: Path) -> Path:
    """The folder of rules to which this file or folder belongs, if it is one of rules about pairs; else itself."""
    folder = place.parent if place.is_file() else place
    return folder.parent if folder.name == "pairs" else folder


def _among(path: str, places: Sequence[Path]) -> bool:
    return not places or any(Path(path).resolve().is_relative_to(place) for place in places)
