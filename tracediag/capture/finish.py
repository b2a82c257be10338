"""After the child has ended: complete run.json, compress the traces and take private names out of both."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracediag._version import __version__
from tracediag.capture.linecalls import add_calls, add_step_functions
from tracediag.capture.redact import Redactor
from tracediag.capture.scan import scan
from tracediag.capture.sourcelines import map_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["complete"]

REPORTED = ".child.json"
RUN = "run.json"
RAW = ".pt.trace.json"
CHUNK = 1 << 22


def complete(out: Path, argv: tuple[str, ...], kind: str, code: int, timed_out: bool, python: str) -> tuple[dict[str, Any], str]:
    """Finish the run directory `out`. code: the child's return code, negative for a signal. Returns run.json and a line on what came."""
    child = _child(out)
    runs = _runs(out)
    if not runs:
        runs = {out / RUN: _empty(argv)}
        _note(runs[out / RUN], *_why_nothing(child, kind))
    script = _script(argv, kind)
    folders = [Path.cwd(), *([script.resolve().parent] if script else [])]
    redact = Redactor([*folders, *(child or {}).get("prefixes", [])])
    clocks = scan(script) if script else []
    _drop_stray(out, runs.values())
    for path, run in runs.items():
        run["exit_code"] = 128 - code if code < 0 else code
        run["ended"] = _ended(run.get("ended"), code, timed_out)
        if script and kind == "command":
            run["script"] = script.name  # not the launcher
        _finish_traces(out, run, redact)
        run["clocks"] = clocks
        add_calls(run.get("lines") or [], folders)
        add_step_functions(run.get("optimizers") or [], folders)
        _explain_absence(run, child, python)
        _write(path, redact(json.dumps(run, separators=(",", ":"), ensure_ascii=False).encode()))
    return json.loads((out / RUN).read_bytes()), _message(list(runs.values()), out)


def _child(out: Path) -> dict[str, Any] | None:
    """What the recorded process told of itself; of several, the lowest rank."""
    ranked = sorted(out.glob(".child.rank*.json"), key=_rank)
    told = [_read(path) for path in (*ranked, out / REPORTED)]
    for path in (*ranked, out / REPORTED):
        path.unlink(missing_ok=True)
    return next((content for content in told if content), None)


def _runs(out: Path) -> dict[Path, dict[str, Any]]:
    """The facts of each recorded process, lowest rank first and called run.json."""
    places = [out / RUN, *sorted(out.glob("run.rank*.json"), key=_rank)]
    found = {path: run for path in places if (run := _read(path)) is not None}
    if found and out / RUN not in found:
        first = next(iter(found))
        first.unlink()
        found = {out / RUN if path == first else path: run for path, run in found.items()}
    return found


def _rank(path: Path) -> int:
    return int(re.sub(r"\D", "", path.name) or 0)


def _write(path: Path, data: bytes) -> None:
    scratch = path.with_name(path.name + ".tmp")
    scratch.write_bytes(data)
    scratch.replace(path)
    for left in path.parent.glob(path.name + ".*.tmp"):
        left.unlink()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):  # never written, or cut off by a kill: there is nothing to keep
        return None
    return content if isinstance(content, dict) else None


def _empty(argv: tuple[str, ...]) -> dict[str, Any]:
    return {
        "schema": "tracediag.run/1", "tracediag": __version__, "framework": None, "versions": {}, "command": list(argv),
        "script": Path(argv[0]).name, "ended": "running", "environment": {}, "host": {}, "devices": [], "windows": [],
        "step_series": None, "batches": [], "flags": {}, "notes": [],
    }  # fmt: skip


def _note(run: dict[str, Any], ident: str, message: str, effect: str) -> None:
    if all(note["id"] != ident for note in run["notes"]):
        run["notes"].append({"id": ident, "level": "warning", "message": message, "effect": effect})


def _why_nothing(child: dict[str, Any] | None, kind: str) -> tuple[str, str, str]:
    if child is not None:
        return "ended-unwritten", "the process ended before anything was written", "Nothing was recorded."
    reason = "the command runs no Python, or one started with -I, -S or -E" if kind == "command" else "this Python ignores PYTHONPATH"
    return "not-reported", f"no process reported in: {reason}", "Nothing was recorded; start the script without these options."


def _ended(told: str | None, code: int, timed_out: bool) -> str:
    """exit | exception | signal | interrupt | killed."""
    if timed_out:
        return "killed"
    if code in (-2, 130):
        return "interrupt"
    if code < 0:
        return "killed" if code == -9 else "signal"
    return told if told in ("exception", "interrupt") else "exit"


def _script(argv: tuple[str, ...], kind: str) -> Path | None:
    """The file whose source is scanned: the script, the module's file where it lies below the working directory, the first .py of a
    command."""
    if kind == "script":
        return Path(argv[0])
    if kind == "module":
        base = Path(*argv[0].split("."))
        return next((path for path in (base.with_suffix(".py"), base / "__main__.py") if path.exists()), None)
    return next((Path(word) for word in argv if word.endswith(".py") and Path(word).exists()), None)


# -- traces --------------------------------------------------------------------------------------------------------------------


def _drop_stray(out: Path, runs: Iterable[dict[str, Any]]) -> None:
    """Remove traces of windows that were dropped, or cut off while they were written."""
    kept = {window["file"] for run in runs for window in run["windows"]}
    for raw in out.glob("*" + RAW):
        if raw.name + ".gz" not in kept or raw.stat().st_size == 0:
            raw.unlink()


def _finish_traces(out: Path, run: dict[str, Any], redact: Redactor) -> None:
    sources = run.setdefault("sources", [])
    kernels = False
    windows = {window["file"]: window for window in run["windows"]}
    for raw in sorted(out.glob("*" + RAW)):
        window = windows.get(raw.name + ".gz")
        if window is None:
            continue
        if window["stacks"]:
            sources.extend(map_lines(raw))
        kernels = _compress(raw, redact) or kernels
    run["windows"] = [window for window in run["windows"] if (out / window["file"]).exists()]
    if run["flags"].get("torch.cuda_used") and run["windows"] and not kernels:
        _note(run, "no-kernels",
              "a GPU was used but the trace holds no kernels: the driver withholds its counters (CUPTI), or another tool holds them; run "
              "as root, or set the driver option NVreg_RestrictProfilingToAdminUsers=0, or start the container with --cap-add=SYS_ADMIN",
              "Rules that need device work are skipped.")  # fmt: skip


def _compress(raw: Path, redact: Redactor) -> bool:
    """raw.json -> raw.json.gz without private names; True when it holds kernels. No time stamp in it: same input, same file."""
    final, scratch = raw.with_name(raw.name + ".gz"), raw.with_name(raw.name + ".gz.tmp")
    kernels = False
    with scratch.open("wb") as plain, gzip.GzipFile("", "wb", compresslevel=5, fileobj=plain, mtime=0) as packed:
        for chunk in _chunks(raw):
            kernels = kernels or b'"cat": "kernel"' in chunk
            packed.write(redact(chunk))
    scratch.replace(final)
    raw.unlink()
    return kernels


def _chunks(path: Path) -> Iterator[bytes]:
    """Pieces of some megabytes that end at line ends, so that no name is cut in two."""
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK):
            yield piece + stream.readline()


# -- what to tell --------------------------------------------------------------------------------------------------------------


def _explain_absence(run: dict[str, Any], child: dict[str, Any] | None, python: str) -> None:
    if child is None or run["framework"] or run["windows"]:
        return
    known = _frameworks_of(child.get("executable", python))
    if known:
        _note(run, "no-training", "the script trained with no framework that is recorded", "There is no trace to explain.")
    else:
        _note(run, "no-framework", f"neither torch nor tensorflow is installed in {Path(python).name} of {Path(python).parent.parent.name}",
              "Nothing was recorded; activate the environment of the script, or give --python PATH.")  # fmt: skip


def _frameworks_of(python: str) -> list[str]:
    """Which of torch and tensorflow that interpreter could import."""
    code = "import importlib.util as u; print(*[n for n in ('torch', 'tensorflow') if u.find_spec(n)])"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    except (OSError, subprocess.SubprocessError):  # it cannot even be started any more: nothing is known
        return ["unknown"]


def _message(runs: Sequence[dict[str, Any]], out: Path) -> str:
    """One line: how many steps, how many of them in a trace, where; and how it ended, when not by itself."""
    run = runs[0]
    series = (run.get("step_series") or {}).get("wall_ns") or []
    recorded = sum(window["steps"] * window.get("steps_per_call", 1) for window in run["windows"] if not window["stacks"])
    text = f"{len(series)} steps timed, {recorded} recorded{f' on each of {len(runs)} ranks' if len(runs) > 1 else ''} in {_short(out)}"
    if run["windows"] and not series:
        text = f"no training step found: recorded as one window in {_short(out)}"
    how = {"exception": "; the script raised an exception", "signal": "; a signal ended the script", "killed": "; the script was killed",
           "interrupt": "; the script was interrupted"}.get(run["ended"], "")  # fmt: skip
    warnings = [note["message"] + ": " + note["effect"] for note in run["notes"] if not run["windows"]]
    return text + how + "".join(f"; {warning}" for warning in warnings)


def _short(out: Path) -> str:
    return str(out.relative_to(Path.cwd())) if out.is_relative_to(Path.cwd()) else str(out)
