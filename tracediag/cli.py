"""The command line: turn arguments into one `api` call, one report and one exit code."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tracediag import __version__
from tracediag.cliargs import (
    LAUNCHER,
    AttachOption,
    Choice,
    DebugOption,
    Export,
    FailOn,
    FailOnOption,
    Format,
    FormatOption,
    Framework,
    IgnoreOption,
    NoCacheOption,
    OutputOption,
    ProfileCommand,
    QuietOption,
    RulesOption,
    SavingOption,
    SelectOption,
    YesOption,
    session,
)
from tracediag.cliattach import attach, post
from tracediag.clicompare import compare
from tracediag.clirules import rules_app
from tracediag.console import emit, print_text, report_bug, say, working
from tracediag.errors import InputError, TracediagError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.findings import Report

__all__ = ["app", "main"]

USAGE, BUG, INTERRUPTED = 2, 70, 130
UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""Base of typer's own complaints about arguments; typer exports it under no name that all its versions know."""

app = typer.Typer(
    name="tracediag",
    help="Why is my training slow? Name the cause, the line and the fix.",
    rich_markup_mode=None,  # plain help: importing rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(rules_app, name="rules")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: sys.argv[1:]); returns the exit code."""
    session.debug = False
    command = typer.main.get_command(app)
    try:
        code = command.main(args=None if argv is None else list(argv), prog_name="tracediag", standalone_mode=False)
    except TracediagError as error:
        say(str(error))
        return USAGE
    except UsageError as error:
        say(_usage(error))
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # the last resort: a bug of ours must not look like a verdict on the user's trace
        report_bug(error, session.debug)
        return BUG
    return code if isinstance(code, int) else 0


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: DebugOption = False,
) -> None:
    if version:
        typer.echo(f"tracediag {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


@app.command()
def explain(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH", help="A trace, a run directory, an archive of one, or the ranks of one job.")
    ],
    form: FormatOption = Format.text,
    output: OutputOption = None,
    rules: RulesOption = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    min_saving: SavingOption = None,
    fail_on: FailOnOption = None,
    no_cache: NoCacheOption = False,
    to_issue: AttachOption = None,
    yes: YesOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Name the causes in a trace, a run directory, an archive, several ranks."""
    choice = Choice(rules, select, ignore, min_saving, fail_on)
    with working("reading the trace", quiet):
        report, drawn = _explained(path, form, choice, cache=not no_cache)
    emit(report, form.value, output, drawn)
    post(report, to_issue, yes=yes, quiet=quiet)
    return _failing(report, choice.fail_on)


def _explained(path: Any, form: Format, choice: Choice, *, cache: bool = False) -> tuple[Report, dict[str, Any] | None]:
    """The report, and what its form draws of the trace."""
    from tracediag import api

    if form is Format.html:
        return api.illustrate(path, **choice.of_rules())
    return api.explain(path, **choice.of_rules(), cache=cache), None


@app.command(cls=ProfileCommand)
def profile(
    context: typer.Context,
    target: Annotated[list[str] | None, typer.Argument(metavar="SCRIPT", help="The script; all that follows is its own.")] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script, like python -m.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run directory [default: tracediag-runs/<script>-<time>].")
    ] = None,
    framework: Annotated[Framework, typer.Option("--framework", help="Which profiler to use.")] = Framework.auto,
    warmup: Annotated[int, typer.Option("--warmup", min=0, metavar="N", help="Steps before the recorded window.")] = 5,
    steps: Annotated[int, typer.Option("--steps", min=1, metavar="N", help="Steps to record.")] = 10,
    stop: Annotated[bool, typer.Option("--stop-after-window", help="End the script once the window is recorded.")] = False,
    stacks: Annotated[bool, typer.Option("--stacks/--no-stacks", help="Record a second short window with the lines of the script.")] = True,
    memory: Annotated[bool, typer.Option("--memory/--no-memory", help="Record allocations.")] = True,
    python: Annotated[str | None, typer.Option("--python", metavar="PATH", help="Interpreter that runs the script.")] = None,
    no_explain: Annotated[bool, typer.Option("--no-explain", help="Record only.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", min=0.0, metavar="S", help="End the script after S seconds.")] = None,
    form: FormatOption = Format.text,
    output: OutputOption = None,
    rules: RulesOption = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    min_saving: SavingOption = None,
    fail_on: FailOnOption = None,
    to_issue: AttachOption = None,
    yes: YesOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Run a training script under its framework's own profiler, then explain.

    tracediag's options stand before SCRIPT; all that follows belongs to the script. The exit code is the script's.
    """
    from tracediag import api
    from tracediag.capture.launcher import LaunchRequest

    argv = (*([module] if module else []), *(target or []))
    if not argv:
        raise InputError("profile: no script given: tracediag profile train.py")
    kind: Literal["script", "module", "command"] = "module" if module else "command" if context.meta.get(LAUNCHER) else "script"
    choice = Choice(rules, select, ignore, min_saving, fail_on)
    request = LaunchRequest(
        argv=argv,
        out=out or api.default_folder(argv[0]),
        kind=kind,
        framework=framework.value,
        warmup=warmup,
        steps=steps,
        stop_after_window=stop,
        stacks=stacks,
        memory=memory,
        python=python,
        timeout=timeout,
    )
    done = api.record(request)
    if done.message and not quiet:
        say(done.message)
    if no_explain or not done.run.get("windows"):
        return done.exit_code  # nothing recorded: the message has said so
    report, drawn = _explain_run(request.out, form, choice, quiet, done.exit_code)
    if report is not None:
        emit(report, form.value, output, drawn)
        post(report, to_issue, yes=yes, quiet=quiet)
    return done.exit_code or _failing(report, choice.fail_on)


def _explain_run(folder: Path, form: Format, choice: Choice, quiet: bool, code: int) -> tuple[Report | None, dict[str, Any] | None]:
    """Explain a run directory and leave the report in it; no report when a script that failed left nothing to explain: its code says so."""
    try:
        with working("reading the trace", quiet):
            report, drawn = _explained(folder, form, choice, cache=True)
    except TracediagError as error:
        if not code:
            raise
        say(str(error))
        return None, None
    for name, kind in (("report.json", "json"), ("report.md", "markdown")):
        emit(report, kind, folder / name)
    return report, drawn


app.command()(compare)


@app.command()
def export(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH", help="A trace, a run directory, an archive of one, or the ranks of one job.")
    ],
    to: Annotated[Export, typer.Option("--to", help="parquet, csv: one file a table; perfetto: a timeline with the findings.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="PLACE", help="Folder (perfetto: file) to write [default: <trace>-<format>].")
    ] = None,
    rules: RulesOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Write the op-level tables for other tools, or a timeline for Perfetto."""
    from tracediag import api
    from tracediag.settings import find

    place = output or api.default_export(path[0], to.value)
    with working("reading the trace", quiet):
        written = api.export(path, to.value, place, rules=[*find().rules, *(rules or ())])
    print_text("".join(f"{file}\n" for file in written))
    return 0


app.command()(attach)


def _failing(report: Report | None, fail_on: FailOn) -> int:
    """1 when a finding is at or above `fail_on`, else 0."""
    from tracediag.findings import SEVERITIES

    loud = SEVERITIES[: SEVERITIES.index(fail_on.value) + 1] if fail_on is not FailOn.never else ()
    return int(any(finding.severity in loud for finding in (report.findings if report else ())))


def _usage(error: Exception) -> str:
    """typer's complaint on one line, with where to look."""
    context = getattr(error, "ctx", None)
    told = " ".join(error.format_message().split()).rstrip(".") if hasattr(error, "format_message") else str(error)
    return f"{told}; see '{context.command_path if context else 'tracediag'} --help'"
