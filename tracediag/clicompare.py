"""The command `compare`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from tracediag.cliargs import Choice, DebugOption, NoCacheOption, OutputOption, QuietOption, RulesOption
from tracediag.console import emit_comparison, working

__all__ = ["ComparisonFormat", "compare"]


class ComparisonFormat(str, Enum):
    """Formats of a comparison."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"


RegressionOption = Annotated[
    float | None,
    typer.Option(
        "--fail-on-regression", metavar="PERCENT", min=0.0, help="Exit with 1 when a step of B is this much longer than one of A."
    ),
]


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A trace, a run directory or a report.json; several runs of one side with commas between.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The same for the other side.")],
    form: Annotated[ComparisonFormat, typer.Option("--format", help="How to say it.")] = ComparisonFormat.text,
    output: OutputOption = None,
    fail_on_regression: RegressionOption = None,
    rules: RulesOption = None,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Why is A slower than B? Two frameworks, two versions, before and after a change.

    A is the baseline, B what is compared with it. With two runs a side or more (A1,A2,A3) the noise between runs decides what is a change.
    """
    from tracediag import api
    from tracediag.baseline import regression, runs_of

    choice = Choice(rules, None, None, None, None).of_rules()
    choice.pop("min_saving")
    with working("reading the traces", quiet):
        if form is ComparisonFormat.html:
            comparison, drawn = api.illustrate_comparison(runs_of(a), runs_of(b), **choice)
        else:
            comparison, drawn = api.compare(runs_of(a), runs_of(b), cache=not no_cache, **choice), None
    emit_comparison(comparison, form.value, output, drawn)
    return int(fail_on_regression is not None and regression(comparison, fail_on_regression))
