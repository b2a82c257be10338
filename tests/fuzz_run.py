"""Give spoilt inputs to tracediag in worker processes and say which it did not take well: traceback, hang, memory, files outside."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzz_inputs import Input, make_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MOST_BYTES", "MOST_SECONDS", "Outcome", "run_inputs", "try_input"]

MOST_SECONDS = 10.0
"""CPU seconds that one input may take: of other processes on the machine they know nothing."""
MOST_BYTES = 1 << 30
KILL_SECONDS, KILL_WALL = 30.0, 600.0
"""CPU seconds, and seconds of a machine that may be busy with other things, after which a worker that does not answer is ended."""
EXPLAINED = 50
"""One input in so many goes through the rules and all reports; the others are loaded and their health is checked."""
_ADDRESS_SPACE = 8 << 30
_CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod", "os.system",
            "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.connect",
            "socket.bind", "shutil.rmtree", "shutil.unpack_archive")  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of one input. ended: name of the error, or 'read' or 'explained'. problem: None, or what is wrong and a traceback."""

    number: int
    what: str
    ended: str
    problem: str | None
    seconds: float
    peak: int


class _Watch:
    """Sees every file that Python opens for writing, and other changes outside the process, while `active`."""

    def __init__(self) -> None:
        self.active = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        writing = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writing or event in _CHANGES:
            self.seen.append(f"{event} {args!r}"[:300])


def try_input(made: Input, folder: Path, explained: bool) -> str:
    """Write the files of an input into `folder` and give its paths to tracediag; returns how it ended. Any error but ours is raised."""
    from tracediag import api, reports
    from tracediag.errors import TracediagError

    for name, data in made.files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    paths = [str(folder / path) for path in made.paths]
    _WATCHES[0].active = bool(_WATCHES)
    try:
        trace = api.load(*paths)
        assert all(item.message and "\n" not in item.message for item in trace.health)
        if not explained:
            return "read"
        report = api.explain(trace)
        for form in reports.FORMATS:
            reports.render(report, form).encode()
        json.loads(report.to_json(), parse_constant=_refuse)
    except TracediagError as error:
        assert str(error).strip() and "\n" not in str(error), f"message of {error!r}"
        return type(error).__name__
    finally:
        _WATCHES[0].active = False
    return "explained"


def _refuse(text: str) -> None:
    raise AssertionError(f"{text} in the JSON of a report")


_WATCHES: list[_Watch] = []


def _judge(seed: int, number: int, folder: Path) -> Outcome:
    made = make_input(seed, number)
    watch = _WATCHES[0]
    watch.seen.clear()
    _forget_peak()
    begin = time.process_time()
    problem = None
    ended = "failed"
    try:
        ended = try_input(made, folder, number % EXPLAINED == 0)
    except BaseException:  # whatever it is, it is the finding
        problem = traceback.format_exc(limit=-12)[-6000:]
    seconds, peak = time.process_time() - begin, _peak()
    if peak > MOST_BYTES // 4 or number % 16 == 0:
        gc.collect()
    extra = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - set(made.files)
    if problem is None and (extra or watch.seen):
        problem = f"wrote: {sorted(extra)} {watch.seen[:5]}"
    if problem is None and seconds > MOST_SECONDS:
        problem = f"took {seconds:.1f} s"
    if problem is None and peak > MOST_BYTES:
        problem = f"took {peak >> 20} MiB"
    _empty(folder)
    return Outcome(number, made.what, ended, problem, seconds, peak)


def _empty(folder: Path) -> None:
    for place in folder.iterdir():
        shutil.rmtree(place) if place.is_dir() else place.unlink()


def _forget_peak() -> None:
    with suppress(OSError):  # not Linux, or not allowed: the peak of the whole process counts
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Most bytes that the process held since `_forget_peak`."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _worker(pipe: Any, seed: int, folder: Path) -> None:
    sys.dont_write_bytecode = True
    home = folder.parent / "home"
    os.environ.update(HOME=str(home), TMPDIR=str(home), XDG_CACHE_HOME=str(home), TRACEDIAG_CACHE_DIR=str(home))
    tempfile.tempdir = str(home)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    warnings.simplefilter("error", RuntimeWarning)  # numpy's overflows: wrong numbers, and noise on the terminal
    _WATCHES.append(_Watch())
    from tracediag import api, engine, readers, reports, trace  # noqa: F401 - read now, so that no input pays for it

    gc.freeze()  # collecting what is loaded takes longer than most inputs
    while (number := pipe.recv()) is not None:
        pipe.send(_judge(seed, number, folder))


class _Process:
    """One worker and the input it is at."""

    def __init__(self, seed: int, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.number, self.since = folder, -1, 0.0
        self.process = context.Process(target=_worker, args=(other, seed, folder), daemon=True)
        self.process.start()
        other.close()

    def give(self, number: int | None) -> None:
        self.number, self.since, self.spent = -1 if number is None else number, time.monotonic(), self._cpu()
        with suppress(OSError):  # it has died: `receive` tells
            self.pipe.send(number)

    def receive(self) -> Outcome | None:
        """What became of the input; None while it is worked on."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            self.process.join()
            return Outcome(self.number, "", "died", f"the process died (exit code {self.process.exitcode})", 0.0, 0)
        taken, waited = self._cpu() - self.spent, time.monotonic() - self.since
        if taken < KILL_SECONDS and waited < KILL_WALL:
            return None
        self.process.kill()
        return Outcome(self.number, "", "hung", f"no answer within {taken:.0f} CPU s, {waited:.0f} s", taken, 0)

    def _cpu(self) -> float:
        """CPU seconds of the worker so far; 0 where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_inputs(seed: int, numbers: Iterable[int], jobs: int, folder: Path) -> Iterator[Outcome]:
    """Outcomes of the inputs `numbers` of `seed`, as they come. folder: an empty one, for the inputs."""
    (folder / "home").mkdir(parents=True)
    left = iter(numbers)
    workers: list[_Process] = []
    for job, number in zip(range(jobs), left, strict=False):
        workers.append(_Process(seed, folder / f"w{job}"))
        workers[-1].give(number)
    started = jobs
    while workers:
        wait([worker.pipe for worker in workers], timeout=1.0)
        for worker in list(workers):
            outcome = worker.receive()
            if outcome is None:
                continue
            yield outcome
            number = next(left, None)
            if outcome.ended in ("died", "hung"):
                workers.remove(worker)
                started += 1
                worker = _Process(seed, folder / f"w{started}")
                workers.append(worker)
            worker.give(number)
            if number is None:
                workers.remove(worker)
                worker.process.join(5)
    strange = [path.name for path in (folder / "home").iterdir()]
    if strange:
        yield Outcome(-1, "", "wrote", f"left in the home folder: {strange}", 0.0, 0)
