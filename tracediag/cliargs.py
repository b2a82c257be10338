"""Options that commands share, and the split of `profile`'s arguments into tracediag's own and the script's."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tracediag.errors import InputError

__all__ = ["LAUNCHER", "Export", "FailOn", "Format", "Framework", "ProfileCommand", "Session", "names", "session", "split_target"]

LAUNCHER = "tracediag.launcher"
"""Key in the context's meta: True when the target came after `--`."""


class Format(str, Enum):
    """Formats of a report."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"
    sarif = "sarif"


class Export(str, Enum):
    """Forms of `export`."""

    parquet = "parquet"
    csv = "csv"
    perfetto = "perfetto"


class Framework(str, Enum):
    """Frameworks whose profiler can be used."""

    auto = "auto"
    torch = "torch"
    tensorflow = "tensorflow"


class FailOn(str, Enum):
    """Severity from which on findings make the exit code 1."""

    high = "high"
    medium = "medium"
    low = "low"
    never = "never"


class Session:
    """What the outermost error handler must know of the options."""

    debug = False


session = Session()


def _debug(value: bool) -> bool:
    session.debug = session.debug or value
    return value


def _target(value: str | None) -> str | None:
    """Refuse what is no issue before the work begins."""
    if value is not None:
        from tracediag.github import parse_target

        parse_target(value)
    return value


FormatOption = Annotated[Format, typer.Option("--format", help="How to say it.")]
OutputOption = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write the report to FILE instead of the terminal.")]
RulesOption = Annotated[list[Path] | None, typer.Option("--rules", metavar="DIR", help="A folder of more rules; may be given again.")]
SelectOption = Annotated[list[str] | None, typer.Option("--select", metavar="RULES", help="Only these rules (ids or codes, with commas).")]
IgnoreOption = Annotated[list[str] | None, typer.Option("--ignore", metavar="RULES", help="All rules but these (ids or codes).")]
SavingOption = Annotated[
    float | None, typer.Option("--min-saving", metavar="PERCENT", help="Leave out findings predicted to save less of the step than this.")
]
FailOnOption = Annotated[FailOn | None, typer.Option("--fail-on", help="Exit with 1 when a finding is this severe  [default: never].")]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Read the trace anew; keep no report for the next time.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Post to GitHub without asking first.")]
AttachOption = Annotated[
    str | None,
    typer.Option("--attach", metavar="OWNER/REPO#N", callback=_target, help="Post the report to a GitHub issue or pull request as well."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")]
DebugOption = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show the traceback of an unexpected error.")]


class Choice:
    """Which rules to apply and what to make of the findings: the options given, else the project's settings (see `settings`)."""

    def __init__(
        self, rules: list[Path] | None, select: list[str] | None, ignore: list[str] | None, min_saving: float | None, fail_on: FailOn | None
    ) -> None:
        from tracediag.settings import find

        own = find()
        self.rules = [*own.rules, *map(str, rules or ())]
        self.select = names(select) or own.select
        self.ignore = names(ignore) or own.ignore
        self.min_saving = own.min_saving if min_saving is None else min_saving
        self.params = own.params or None
        self.fail_on = FailOn(own.fail_on) if fail_on is None else fail_on

    def of_rules(self) -> dict[str, Any]:
        """The arguments of `api.explain`."""
        return {
            "rules": self.rules, "select": self.select, "ignore": self.ignore, "min_saving": self.min_saving, "params": self.params,
        }  # fmt: skip


def names(values: list[str] | None) -> tuple[str, ...]:
    """Rule names given once or more, each perhaps several with commas between."""
    return tuple(name.strip() for value in values or () for name in value.split(",") if name.strip())


class ProfileCommand(TyperCommand):
    """`profile`: everything after the script, the module or `--` belongs to the script, untouched."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line: what may stand for the script."""
        return ["[OPTIONS]", "SCRIPT | -m MODULE | -- COMMAND", "[ARGS]..."]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse only tracediag's own options; hand the rest on as it is, `--` included."""
        taking = {
            opt for param in self.params if not getattr(param, "is_flag", False) for opt in getattr(param, "opts", ()) if opt[:1] == "-"
        }
        own, target, launcher = split_target(args, taking)
        ctx.meta[LAUNCHER] = launcher
        module = target[0] if target and not launcher else ""
        if module.startswith("-m"):
            named = [module[2:]] if module[2:] else target[1:2]
            if not named:
                raise InputError("profile: -m wants the name of a module: tracediag profile -m package.train")
            own, target = [*own, "-m", *named], target[1 if module[2:] else 2 :]
        return super().parse_args(ctx, [*own, "--", *target])


def split_target(args: list[str], taking: set[str]) -> tuple[list[str], list[str], bool]:
    """Split raw arguments into (tracediag's options, target with its arguments, whether `--` announced a launcher).

    taking: options followed by a value. The target starts at the first argument that is no option, at `-m`, or after `--`.
    """
    i = 0
    while i < len(args):
        arg = args[i]
        if arg == "--":
            return args[:i], args[i + 1 :], True
        if not arg.startswith("-") or arg == "-" or (arg.startswith("-m") and not arg.startswith("--")):
            break
        i += 2 if arg in taking else 1
    return args[:i], args[i:], False
