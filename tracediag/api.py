"""The pipeline: load a trace, explain it, profile a script; each readable on one screen."""

from __future__ import annotations

import sys
from datetime import datetime
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tracediag.capture.inprocess import Run
    from tracediag.capture.launcher import LaunchRequest, LaunchResult
    from tracediag.findings import Report
    from tracediag.rule import Param
    from tracediag.trace import Trace

__all__ = ["default_folder", "explain", "load", "profile", "record"]

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
    from tracediag.problems import severity_cap
    from tracediag.rules import load_rules

    known = load_rules([str(folder) for folder in rules])
    seen = _loaded(trace)
    cap = severity_cap(item.id for item in seen.health)
    script = summary.script_of(seen)
    result = engine.run(seen, known, select=select, ignore=ignore, min_saving=min_saving, params=params, script=script, cap=cap)
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


def profile(
    out: Paths | None = None, *, warmup: int = 5, steps: int = 10, stacks: bool = True, memory: bool = True
) -> AbstractContextManager[Run]:
    """Record a loop of this process: `with tracediag.profile(out="run") as run: ...; run.step()` after each step.

    out: run directory, for `explain` afterwards; default tracediag-runs/<script>-<time>. warmup, steps: steps before and inside the
    recorded window. Raises CaptureError as `capture.inprocess.profile` does.
    """
    from tracediag.capture import inprocess

    folder = Path(out) if out is not None else default_folder(sys.argv[0])
    return inprocess.profile(folder, warmup=warmup, steps=steps, stacks=stacks, memory=memory)


def default_folder(target: str) -> Path:
    """A run directory that does not exist yet: tracediag-runs/<script>-<time>."""
    name = Path(target).stem.rsplit(".", 1)[-1] or "run"
    first = Path("tracediag-runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = (first if i == 1 else first.with_name(f"{first.name}-{i}") for i in count(1))
    return next(folder for folder in candidates if not folder.exists())
