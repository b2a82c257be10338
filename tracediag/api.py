"""The pipeline: load a trace, explain it, profile a script; each readable on one screen."""

from __future__ import annotations

import re
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
    from tracediag.comparison import Comparison
    from tracediag.engine import EngineResult
    from tracediag.findings import Report
    from tracediag.rule import Param, Rule
    from tracediag.trace import Trace

__all__ = [
    "compare",
    "default_export",
    "default_folder",
    "explain",
    "export",
    "illustrate",
    "illustrate_comparison",
    "load",
    "profile",
    "record",
]

Paths = str | PathLike[str]
Runs = list[tuple["Trace | None", "Report"]]
HALF_PAGE = 500_000
"""Bytes of each of two excerpts on one page."""


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
    cache: bool = False,
) -> Report:
    """Name the causes of slowness in a Trace or in the file or files that `load` reads.

    rules: folders of more rules. select, ignore: ids or codes. min_saving: percent of the step that a predicted fix must save.
    params: rule id -> parameter -> value. cache: take the report of the same files, rules and options from the user's cache folder, and
    leave it there. Raises what `load` raises, and RuleError for wrong rules or unknown names.
    """
    folders = [str(folder) for folder in rules]
    choice = {"select": sorted(select), "ignore": sorted(ignore), "min_saving": min_saving, "params": params}
    return _report(_paths(trace) if cache else [], trace, folders, choice)


def _report(paths: list[str], trace: Trace | Paths | Sequence[Paths], folders: Sequence[str], choice: dict[str, Any]) -> Report:
    """The report of a trace. paths: where it came from, so that its report can be found among those kept, and be kept itself."""
    from tracediag import reportcache

    key = reportcache.key_of(paths, folders, choice) if paths else None
    report = reportcache.find(key)
    if report is None:
        report, _, _ = _examined(trace, folders, choice)
        if key is not None and reportcache.key_of(paths, folders, choice) == key:  # else a file has changed while it was read
            reportcache.keep(key, report)
    return report


def compare(a: Any, b: Any, *, cache: bool = False, **choice: Any) -> Comparison:
    """Why is a slower than b: two frameworks, two versions, before and after a change.

    a, b: a Trace, a Report, the path of what `load` reads or of a report.json; or a list of those, which are runs of one side and tell
    the noise between runs. choice: rules, select, ignore, params as in `explain`. Raises what `explain` raises.
    """
    return _compared(a, b, cache, choice)[0]


def illustrate_comparison(a: Any, b: Any, **choice: Any) -> tuple[Comparison, tuple[dict[str, Any], dict[str, Any]] | None]:
    """The comparison of `compare`, and the excerpts of one trace of each side that an HTML page draws; None where one has no trace."""
    from tracediag.excerpt import excerpt

    comparison, *sides = _compared(a, b, False, choice)
    traces = [next((trace for trace, _ in side if trace is not None), None) for side in sides]
    one, two = (None if trace is None else excerpt(trace, (), size=HALF_PAGE, alone=True) for trace in traces)
    return comparison, None if one is None or two is None else (one, two)


def _compared(a: Any, b: Any, cache: bool, choice: dict[str, Any]) -> tuple[Comparison, Runs, Runs]:
    """The comparison, and the runs of both sides with their reports."""
    from tracediag.baseline import names
    from tracediag.comparing.compare import compare_runs
    from tracediag.comparing.pairrulefiles import load_pair_rules

    choice["rules"] = list(choice.get("rules", ()))
    pair_rules = load_pair_rules(choice["rules"])
    one, two = ([_read_run(run, cache, **choice) for run in (side if isinstance(side, list | tuple) else [side])] for side in (a, b))
    return compare_runs(one, two, names(a, b), pair_rules), one, two


def _read_run(
    given: Any, cache: bool, rules: Iterable[Paths] = (), select: Iterable[str] = (), ignore: Iterable[str] = (), **choice: Any
) -> tuple[Trace | None, Report]:
    """One run with its report; a report alone has no Trace."""
    from tracediag.baseline import report_of

    told = report_of(given)
    if told is not None:
        return None, told
    trace = _loaded(given)
    chosen = {"select": sorted(select), "ignore": sorted(ignore), "min_saving": 0.0, "params": choice.get("params")}
    return trace, _report(_paths(given) if cache else [], trace, [str(folder) for folder in rules], chosen)


def illustrate(trace: Trace | Paths | Sequence[Paths], *, rules: Iterable[Paths] = (), **choice: Any) -> tuple[Report, dict[str, Any]]:
    """The report of `explain`, and the excerpt of the trace that an HTML report draws. choice: the other options of `explain`.

    A kept report has no trace, so that there is no cache here.
    """
    from tracediag.excerpt import excerpt

    report, seen, result = _examined(trace, [str(folder) for folder in rules], choice)
    return report, excerpt(seen, [claim for _, claim in result.pairs])


def _examined(trace: Trace | Paths | Sequence[Paths], rules: Sequence[str], choice: dict[str, Any]) -> tuple[Report, Trace, EngineResult]:
    from tracediag import summary
    from tracediag.rules import load_rules

    known = load_rules(rules, tests=False)
    seen = _loaded(trace)
    result = _run(seen, known, **choice)
    return summary.summarize(seen, result, len(known)), seen, result


def _run(trace: Trace, rules: Sequence[Rule], **choice: Any) -> EngineResult:
    """Apply rules, with severities as high as the health of the trace allows."""
    from tracediag import engine, summary
    from tracediag.problems import severity_cap

    cap = severity_cap(item.id for item in trace.health)
    return engine.run(trace, rules, script=summary.script_of(trace), cap=cap, **choice)


def export(trace: Trace | Paths | Sequence[Paths], to: str, output: Paths, *, rules: Iterable[Paths] = ()) -> list[Path]:
    """Write the tables of a Trace for other tools; returns the files written, in order.

    to: parquet or csv (`output`: folder, one file a table) or perfetto (`output`: file, or folder where there are several ranks; the
    findings of the rules are a track of their own). Raises what `load` raises, and InputError when a file cannot be written.
    """
    from tracediag import export as forms

    seen = _loaded(trace)
    if to != "perfetto":
        return forms.write_tables(seen, to, Path(output))
    from tracediag.rules import load_rules

    result = _run(seen, load_rules([str(folder) for folder in rules], tests=False))
    return forms.write_perfetto(seen, [(finding, claim.spans) for finding, claim in result.pairs], Path(output))


def _paths(trace: Any) -> list[str]:
    """The paths given; empty for a Trace."""
    if isinstance(trace, (str, PathLike)):
        return [str(trace)]
    return [str(path) for path in trace] if isinstance(trace, list | tuple) else []


def _loaded(trace: Any) -> Trace:
    return trace if not isinstance(trace, str | PathLike | list | tuple) else load(*_paths(trace))


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


def default_export(source: str, to: str) -> Path:
    """Where `export` writes when nothing is said: <name of the trace>-<form>, for perfetto <name>.perfetto.json.gz."""
    name = re.split(r"[/\\\\]", source.rstrip("/\\"))[-1]
    name = re.sub(r"(\.(gz|zst|zip|tar|json|pb|trace|pt|xplane))+$", "", name) or "trace"
    return Path(f"{name}.perfetto.json.gz" if to == "perfetto" else f"{name}-{to}")
