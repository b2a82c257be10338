"""Run the user's command as a child process that records itself, and pass on how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tracediag._version import __version__
from tracediag.capture.finish import complete
from tracediag.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LaunchRequest", "LaunchResult", "find_python", "launch", "make_folder"]

VARIABLE = "TRACEDIAG_CAPTURE"
INJECT = Path(__file__).parent / "inject"
GRACE = 10.0  # seconds between TERM and KILL


@dataclass(frozen=True)
class LaunchRequest:
    """What to run and how to record it.

    kind: script (argv[0] is a file), module (argv[0] is a module name) or command (argv is run as it is).
    python: interpreter for a script or module; None: `find_python`. timeout: seconds, None: no limit.
    """

    argv: tuple[str, ...]
    out: Path
    kind: Literal["script", "module", "command"] = "script"
    framework: str = "auto"
    warmup: int = 5
    steps: int = 10
    stop_after_window: bool = False
    stacks: bool = True
    memory: bool = True
    python: str | None = None
    timeout: float | None = None


@dataclass(frozen=True)
class LaunchResult:
    """How it ended. exit_code: the command's own, 128 + signal when a signal ended it. run: content of run.json."""

    exit_code: int
    out: Path
    run: dict[str, Any]
    message: str


def find_python(asked: str | None = None) -> str:
    """The user's Python: the one asked for, else the active virtual environment's, else `python` or `python3` on PATH, else ours.

    Raises CaptureError when the one asked for does not exist.
    """
    if asked is not None:
        found = shutil.which(asked)
        if found is None:
            raise CaptureError(f"--python {asked}: no such program; give the path of the Python that has your framework")
        return found
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        for place in ("bin/python", "Scripts/python.exe"):
            if Path(active, place).exists():
                return str(Path(active, place))
    return shutil.which("python") or shutil.which("python3") or sys.executable


def launch(command: LaunchRequest) -> LaunchResult:
    """Run the command under its framework's profiler; blocks until it has ended. The run directory then holds run.json and traces.

    Raises CaptureError when it cannot be started at all, or the run directory is in use or cannot be made.
    """
    argv = _argv(command)
    out = make_folder(command.out)
    _say(f"recording into {command.out}")
    code, timed_out = _run(argv, _environment(command, out), command.timeout)
    run, message = complete(out, command.argv, command.kind, code, timed_out, argv[0])
    return LaunchResult(128 - code if code < 0 else code, command.out, run, message)


def _argv(command: LaunchRequest) -> list[str]:
    if not command.argv:
        raise CaptureError("nothing to run: give a script, -m MODULE or -- COMMAND")
    if command.kind == "command":
        if shutil.which(command.argv[0]) is None:
            raise CaptureError(f"{command.argv[0]}: no such command on PATH")
        return list(command.argv)
    python = find_python(command.python)
    if command.kind == "module":
        return [python, "-m", *command.argv]
    if not Path(command.argv[0]).exists():
        raise CaptureError(f"{command.argv[0]}: no such script in {Path.cwd().name}/; give the path of the training script")
    return [python, *command.argv]


def make_folder(out: Path) -> Path:
    """The run directory, made where it is not there. Raises CaptureError when it holds a run already or cannot be made."""
    if (out / "run.json").exists():
        raise CaptureError(f"{out}: holds a recorded run already; give another --out, or remove it")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".child.json").unlink(missing_ok=True)
    except OSError as error:
        raise CaptureError(f"{out}: the run directory cannot be made: {error.strerror}") from error
    return out.resolve()


def _environment(command: LaunchRequest, out: Path) -> dict[str, str]:
    """The child's environment: ours, plus the folder of the hooks and what to record."""
    script = command.argv[0]
    config = {
        "out": str(out), "cwd": str(Path.cwd()), "version": __version__, "framework": command.framework, "warmup": command.warmup,
        "steps": command.steps, "stop_after_window": command.stop_after_window, "stacks": command.stacks, "memory": command.memory,
        "script": Path(script).name if command.kind == "script" else script, "command": list(command.argv),
        "script_dir": str(Path(script).resolve().parent) if command.kind == "script" else "",
    }  # fmt: skip
    old = os.environ.get("PYTHONPATH")
    path = str(INJECT) if old is None else str(INJECT) + os.pathsep + old
    return {**os.environ, "PYTHONPATH": path, VARIABLE: json.dumps(config)}


def _run(argv: list[str], environment: dict[str, str], timeout: float | None) -> tuple[int, bool]:
    """Start the child and wait for it. Returns its return code (negative: signal) and whether the time was up."""
    try:
        child = subprocess.Popen(argv, env=environment)
    except OSError as error:
        raise CaptureError(f"{argv[0]}: cannot be started: {error.strerror}") from error
    with _signals_to(child):
        try:
            return child.wait(timeout), False
        except subprocess.TimeoutExpired:
            child.terminate()
        try:
            return child.wait(GRACE), True
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait(), True


@contextlib.contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """While the child runs, signals that end us go to it: we stay until it is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    old = {number: signal.getsignal(number) for number in names}

    def forward(number: int, _: Any) -> None:
        if number == signal.SIGINT and _terminal_delivers():
            return  # Ctrl-C: the terminal has given it to the child already
        child.send_signal(number)

    try:
        for number in names:
            if old[number] is not signal.SIG_IGN:
                signal.signal(number, forward)
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _terminal_delivers() -> bool:
    """We are in the foreground of a terminal, which sends Ctrl-C to the child as well."""
    try:
        handle = os.open("/dev/tty", os.O_RDONLY)
    except OSError:  # no terminal
        return False
    try:
        return os.tcgetpgrp(handle) == os.getpgrp()
    except OSError:  # a terminal that is not ours
        return False
    finally:
        os.close(handle)


def _say(text: str) -> None:
    """Progress: only where a person looks."""
    if sys.stderr.isatty():
        print(f"tracediag: {text}", file=sys.stderr, flush=True)
