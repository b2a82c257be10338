"""What the command line writes: reports to stdout or a file, messages and progress to stderr."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import traceback
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, TextIO, cast

from tracediag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TypeVar

    from tracediag.comparison import Comparison
    from tracediag.findings import Report

    Told = TypeVar("Told", Report, Comparison)
    Drawn = TypeVar("Drawn")

__all__ = ["emit", "emit_comparison", "print_text", "report_bug", "say", "working", "write_file"]

WIDEST = 100
PATIENCE = 1.0
"""Seconds before work shows that it goes on."""


def say(message: str) -> None:
    """A message to stderr."""
    print(f"tracediag: {message}", file=sys.stderr)


def emit(report: Report, form: str, output: Path | None, excerpt: dict[str, Any] | None = None) -> None:
    """Write `report` in format `form` to `output`, or to stdout. excerpt: what html draws of the trace. Raises InputError when the file
    cannot be written."""
    from tracediag import reports

    if form == "sarif":
        from tracediag.privacy import redacted
        from tracediag.repository import rooted

        report = redacted(rooted(report))  # SARIF is made to be sent
    elif form == "html":
        report, excerpt = _to_be_sent(report, excerpt, output)
    if output is not None:
        write_file(output, reports.render(report, form, excerpt))
    elif form == "text" and _is_terminal(sys.stdout):
        from tracediag.reports import text

        width = min(shutil.get_terminal_size().columns, WIDEST)
        print_text(text.render(report, width=width, color=_wants_color()))
    else:
        print_text(reports.render(report, form, excerpt))


def _to_be_sent(told: Told, drawn: Drawn, output: Path | None) -> tuple[Told, Drawn]:
    """A page goes to other people: its words and its drawings without private names. Raises InputError for a page on a terminal."""
    from tracediag.privacy import plain, redacted

    if output is None and _is_terminal(sys.stdout):
        raise InputError("a page of HTML is nothing to read on a terminal; name a file: --output report.html")
    return redacted(told), cast("Drawn", plain(drawn))


def emit_comparison(
    comparison: Comparison, form: str, output: Path | None, excerpts: tuple[dict[str, Any], dict[str, Any]] | None = None
) -> None:
    """Write `comparison` in format `form` to `output`, or to stdout. excerpts: what html draws of both sides. Raises
    InputError when the file cannot be written."""
    from tracediag import reports

    if form == "html":
        comparison, excerpts = _to_be_sent(comparison, excerpts, output)
    if output is not None:
        write_file(output, reports.render_comparison(comparison, form, excerpts))
    elif form == "text" and _is_terminal(sys.stdout):
        from tracediag.reports import comparetext

        width = min(shutil.get_terminal_size().columns, WIDEST)
        print_text(comparetext.render(comparison, width=width, color=_wants_color()))
    else:
        print_text(reports.render_comparison(comparison, form, excerpts))


def print_text(text: str) -> None:
    """Write to stdout; what its encoding lacks becomes '?', and a reader that has left (`| head`) is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains at exit


def write_file(path: Path, text: str) -> None:
    """Write `text` as UTF-8. Raises InputError when it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another place with --output") from error


@contextmanager
def working(what: str, quiet: bool) -> Iterator[None]:
    """Say on stderr that work goes on, when it takes over a second and stderr is a terminal."""
    if quiet or not _is_terminal(sys.stderr):
        yield
        return
    timer = Timer(PATIENCE, lambda: print(f"tracediag: {what} ...", end="", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def report_bug(error: Exception, debug: bool) -> None:
    """One line on stderr about a bug of ours; the traceback goes to a file in the temp folder, and to stderr if `debug`."""
    details = "".join(traceback.format_exception(error))
    if debug:
        print(details, file=sys.stderr, end="")
    with tempfile.NamedTemporaryFile("w", prefix="tracediag-bug-", suffix=".txt", delete=False, encoding="utf-8", errors="replace") as file:
        file.write(details)
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    say(f"a bug in tracediag, not in your script ({what}); details are in {file.name}, please report them")


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _wants_color() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
