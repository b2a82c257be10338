"""What a command costs: CPU seconds and wall seconds of its process and all below it, and peak memory; Linux only."""

from __future__ import annotations

import fcntl
import os
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAUSE_S = 0.05
SLOW_S = 20.0
HELD_S = 60.0
"""No run starts under a lock that has been held so long: others wait for it."""


@dataclass(frozen=True)
class Cost:
    """One run. cpu_s: user and system time, wall_s: elapsed, peak_mib: most memory held at a time; output: what it
    printed; quiet: nothing else ran."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    output: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Figure:
    """Several runs of one command, in the order in which they were made."""

    runs: tuple[Cost, ...]

    def median(self, name: str) -> float:
        """Median of `cpu_s`, `wall_s` or `peak_mib`."""
        return statistics.median(getattr(run, name) for run in self.runs)

    def spread(self, name: str) -> tuple[float, float]:
        """Least and most."""
        values = [getattr(run, name) for run in self.runs]
        return min(values), max(values)

    @property
    def output(self) -> str:
        """What the last run printed."""
        return self.runs[-1].output


class CommandError(RuntimeError):
    """A measured command failed; the message ends with what it wrote last."""


@dataclass(frozen=True)
class Lock:
    """A lock file that other work on the machine takes shared. patience_s: how long to wait for it before measuring without."""

    path: Path
    patience_s: float = 60.0


@contextmanager
def alone(lock: Lock | None) -> Iterator[bool]:
    """Hold a lock file exclusively, so that other work stands still; yields whether that came about (False without a lock)."""
    if lock is None:
        yield False
        return
    with lock.path.open("a") as file:
        end = time.monotonic() + lock.patience_s
        held = _taken(file.fileno())
        while not held and time.monotonic() < end:
            time.sleep(PAUSE_S)
            held = _taken(file.fileno())
        yield held


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        for task in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            todo += map(int, task.read_text().split())
    return found


def _shared_out_mib(pids: Sequence[int]) -> float:
    """Memory of several processes, a page that they share counted once."""
    total = 0
    for pid in pids:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total / 1024


def _family_mib(pid: int) -> float:
    """Memory of a process tree now; 0 for a single process, whose peak the kernel knows better."""
    try:
        pids = _tree(pid)
        return _shared_out_mib(pids) if len(pids) > 1 else 0.0
    except (OSError, ValueError, IndexError):  # a process ended while it was looked at
        return 0.0


def run(argv: Sequence[str], env: dict[str, str] | None = None) -> Cost:
    """Run a command to its end. Raises CommandError when it fails."""
    peak, code = 0.0, None
    with tempfile.TemporaryFile() as told:
        start = time.perf_counter()
        process = subprocess.Popen(argv, stdout=told, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        while code is None:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            wall = time.perf_counter() - start
            if pid:
                process.returncode = code = os.waitstatus_to_exitcode(status)
            else:
                peak = max(peak, _family_mib(process.pid))
                time.sleep(PAUSE_S if wall > 1 else PAUSE_S / 25)
        told.seek(0)
        text = told.read().decode(errors="replace")
    if code:
        raise CommandError(f"{Path(argv[0]).name} {' '.join(argv[1:3])} ... ended with {code}: {text[-800:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, max(peak, usage.ru_maxrss / 1024), text)


def repeat(
    argv: Sequence[str], runs: int, lock: Lock | None = None, env: dict[str, str] | None = None, before: Callable[[], object] | None = None
) -> Figure:
    """Run a command `runs` times, `before` (not counted) ahead of each. A negative number: so many, but once if that took over 20 s."""
    done: list[Cost] = []
    wanted = abs(runs)
    while len(done) < wanted:
        with alone(lock) as quiet:
            start = time.perf_counter()
            while len(done) < wanted and time.perf_counter() - start < HELD_S:
                if before is not None:
                    before()
                done.append(replace(run(argv, env), quiet=quiet))
                if runs < 0 and done[0].wall_s > SLOW_S:
                    wanted = 1
    return Figure(tuple(done))


def available_mib() -> float:
    """Memory that a new process could take without swapping."""
    rows = Path("/proc/meminfo").read_text().splitlines()
    return next(int(row.split()[1]) / 1024 for row in rows if row.startswith("MemAvailable"))
