"""Start the recording of this process: read the request, hook the imports, and see that the end of the process is noticed."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import importlib
import json
import os
import signal
import sys
from types import FrameType
from typing import Any

from . import callsite, guard, imports, ranks
from .config import VARIABLE, Config, from_environment
from .recorder import Recorder

ADAPTERS = {"torch": "torch_adapter", "tensorflow": "tf_adapter", "keras": "keras_adapter", "tf_keras": "keras_adapter"}

RECORDER: Recorder | None = None
NAMED: list[int] = []
"""The rank of this process, when it is known to have one."""


def run(folder: str) -> Recorder | None:
    """Start recording when this is the process that the parent meant: the first Python that reads the request, or a rank of a job that it
    starts. Any other records from when it joins a process group on."""
    config = from_environment()
    request = os.environ.pop(VARIABLE, None)  # its children are not the training process
    if config is None or request is None:
        return None
    rank = ranks.told()
    if not _claim(config, rank):
        if rank is None:
            ranks.joined(functools.partial(_join, folder, config))
            imports.activate()
        return None
    recorder = _record(folder, config if rank is None else dataclasses.replace(config, rank=rank))
    if rank is None:
        ranks.joined(functools.partial(_name, recorder))
        ranks.hand_on(folder, request, functools.partial(_hand_over, recorder))
    else:
        NAMED.append(rank)
    return recorder


def _record(folder: str, config: Config) -> Recorder:
    """Hook the frameworks, and see that the end of the process is noticed."""
    global RECORDER
    sys.modules.pop("_tracediag.start.run", None)
    callsite.configure(config.cwd, config.script_dir, folder)
    recorder = RECORDER = Recorder(config)
    for name, module in ADAPTERS.items():
        if name in ("keras", "tf_keras") or config.wants(name):
            imports.after(name, functools.partial(_install, module, recorder))
    imports.activate()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forked(recorder))
    atexit.register(_at_exit, recorder)
    return recorder


def _join(folder: str, config: Config, rank: int) -> None:
    """This process, which nobody recorded so far, has joined a process group."""
    if RECORDER is None and _claim(config, rank):
        NAMED.append(rank)
        _record(folder, dataclasses.replace(config, rank=rank))


def _name(recorder: Recorder, rank: int) -> None:
    """The process that is recorded anyway has joined a process group."""
    if not NAMED and _claim(recorder.config, rank):
        NAMED.append(rank)
        recorder.config = recorder.runfile.config = dataclasses.replace(recorder.config, rank=rank)  # files from now on name it


def _hand_over(recorder: Recorder) -> None:
    """A rank of the job has been started: this process is its launcher, of which nothing is wanted. A profiler that is left on at the end
    of a process may crash it."""
    recorder.discard_idle()
    recorder.abandon()


def _claim(config: Config, rank: int | None) -> bool:
    """Report in, once per run and rank: a file that only the first process can create. False in every later process."""
    try:
        handle = os.open(os.path.join(config.out, ranks.file_of(rank)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump({"pid": os.getpid(), "executable": sys.executable, "prefixes": sorted({sys.prefix, sys.base_prefix})}, stream)
    return True


@guard.quiet
def _install(adapter: str, recorder: Recorder, module: Any) -> None:
    """Install the adapter of a framework that has just been imported."""
    try:
        code = importlib.import_module("_tracediag." + adapter)
    except ModuleNotFoundError as error:
        if error.name != "_tracediag." + adapter:
            raise
        return
    _watch_sigterm(recorder)
    try:
        code.install(recorder, module)
    except Exception:  # the script must run, recorded or not
        guard.failed(adapter + ".install")


def _watch_sigterm(recorder: Recorder) -> None:
    """Flush on SIGTERM when the script has no handler of its own, then die of it as before."""
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda number, frame: _on_sigterm(recorder, number, frame))
    except ValueError:  # not the main thread: no handler can be set
        pass


def _on_sigterm(recorder: Recorder, number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    _finish(recorder, "signal")
    os.kill(os.getpid(), number)


def _forked(recorder: Recorder) -> None:
    """A forked child records nothing, writes nothing and dies of SIGTERM at once."""
    recorder.abandon()
    atexit.unregister(_at_exit)
    try:
        if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN, None) and _ours(signal.getsignal(signal.SIGTERM)):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except ValueError:  # forked from another thread
        pass


def _ours(handler: Any) -> bool:
    return getattr(handler, "__module__", None) == __name__


def _at_exit(recorder: Recorder) -> None:
    kind = getattr(sys, "last_type", None)
    if kind is None:
        _finish(recorder, "exit")
    else:
        _finish(recorder, "interrupt" if issubclass(kind, KeyboardInterrupt) else "exception")


def _finish(recorder: Recorder, ended: str) -> None:
    """Write what was recorded; nothing where others turned out to be the ranks of the job and this process none of them."""
    if not NAMED and not recorder.series.started and ranks.recorded(recorder.config.out):
        _hand_over(recorder)
    recorder.finish(ended)
