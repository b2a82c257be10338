"""The pipeline: load a trace, explain it, profile a script; each readable on one screen."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracediag.capture.launcher import LaunchRequest, LaunchResult
    from tracediag.findings import Report
    from tracediag.rule import Param
    from tracediag.trace import Trace

__all__ = ["explain", "load", "record"]

Paths = str | PathLike[str]


def load(*paths: Paths) -> Trace:
    """Read a trace, a run directory, an archive of one, or the ranks of one job, into one Trace.

    Needs neither torch nor TensorFlow. Raises InputError for a path that cannot be read, NotATraceError for a file that is no
    timeline, BrokenTraceError for one of which nothing is left.
    """
    from tracediag.readers import read_all
    from tracediag.trace import build_trace

    raws, run, inputs = read_all([str(path) for path in paths])
    return build_trace(raws, run, inputs)


def explain(
    trace: Trace | Paths | Sequence[Paths],
    *,
    rules: Iterable[Paths] = (),
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    min_saving: float = 0.0,
    params: Mapping[str, Mapping[str, Param]] | None = None,
) -> Report:
    """Name the causes of slowness in a Trace or in the file or files that `load` reads.

    rules: folders of more rules. select, ignore: ids or codes. min_saving: percent of the step that a predicted fix must save.
    params: rule id -> parameter -> value. Raises what `load` raises, and RuleError for wrong rules or unknown names.
    """
    from tracediag import engine, summary
    from tracediag.rules import load_rules

    known = load_rules([str(folder) for folder in rules])
    seen = _loaded(trace)
    result = engine.run(seen, known, select=select, ignore=ignore, min_saving=min_saving, params=params, script=summary.script_of(seen))
    return summary.summarize(seen, result, len(known))


def _loaded(trace: Any) -> Trace:
    if isinstance(trace, (str, PathLike)):
        return load(trace)
    return load(*trace) if isinstance(trace, list | tuple) else trace


def record(request: LaunchRequest) -> LaunchResult:
    """Run a command under its framework's profiler; the run directory then holds what `load` reads.

    Raises CaptureError when it cannot be started or the run directory cannot be made.
    """
    from tracediag.capture.launcher import launch

    return launch(request)
