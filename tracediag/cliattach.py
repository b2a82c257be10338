"""The command `attach`, and what `explain --attach` shares with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tracediag.cliargs import Choice, DebugOption, QuietOption, RulesOption, YesOption
from tracediag.console import print_text, say, working
from tracediag.errors import InputError

if TYPE_CHECKING:
    from tracediag.comparison import Comparison
    from tracediag.findings import Report

__all__ = ["attach", "post"]

ENDS = {"created": "posted", "updated": "updated", "unchanged": "already says so", "declined": "not posted"}


def attach(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="A report in JSON; or a run directory or trace, which is explained.")],
    target: Annotated[str, typer.Argument(metavar="OWNER/REPO#NUMBER", help="The issue or pull request.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be posted; nothing leaves this machine.")] = False,
    yes: YesOption = False,
    rules: RulesOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Post a report to a GitHub issue or pull request, or update the one that is there.

    The token comes from GITHUB_TOKEN, GH_TOKEN or `gh auth token`; GITHUB_API_URL names an Enterprise server. Paths, users and hosts
    are left out of what is posted.
    """
    from tracediag import api
    from tracediag.attach import comment_of, read_report
    from tracediag.github import parse_target

    place = parse_target(target)
    told: Report | Comparison | None = read_report(report)
    if told is None:
        with working("reading the trace", quiet):
            told = api.explain([report], **Choice(rules, None, None, None, None).of_rules(), cache=True)
    if dry_run:
        print_text(comment_of(told).body)
        if not quiet:
            say(f"this would be posted to {place}")
        return 0
    post(told, target, yes=yes, quiet=quiet)
    return 0


def post(told: Report | Comparison, target: str | None, *, yes: bool, quiet: bool) -> None:
    """Post a report, if it has a target, and say what became of it. yes: do not ask. Raises InputError and PostError, one line each."""
    if target is None:
        return
    from tracediag.attach import attach as send
    from tracediag.github import parse_target

    place = parse_target(target)

    def confirm(login: str) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise InputError(f"the first post to {place} wants a yes: give --yes (or look with --dry-run)")
        return typer.confirm(f"Post this report to {place} as {login}?", err=True)

    with working("posting to GitHub", quiet or not yes):  # a question would run into the progress
        posted = send(told, place, confirm)
    if not quiet:
        say(f"{place}: {ENDS[posted.how]}{f': {posted.url}' if posted.url else ''}")
