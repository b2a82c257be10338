"""Record a loop of this very process, for code that says itself where a step ends."""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracediag._version import __version__
from tracediag.capture.finish import complete
from tracediag.capture.launcher import INJECT, VARIABLE, make_folder
from tracediag.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Run", "profile"]


class Run:
    """A recording under way. out: the run directory, complete when the `with` block has been left."""

    def __init__(self, out: Path, recorder: Any) -> None:
        self.out = out
        self._recorder = recorder

    def step(self) -> None:
        """A training step has just ended. Costs microseconds outside the recorded window."""
        framework = next(iter(self._recorder.adapters), "torch")
        self._recorder.boundary("step", framework)


@contextmanager
def profile(out: Path, *, warmup: int, steps: int, stacks: bool, memory: bool) -> Iterator[Run]:
    """Record the block under the profiler of the framework that it uses.

    Once a process. Raises CaptureError for a second time and for a run directory that holds a run or cannot be made.
    """
    folder = make_folder(out)
    recorder = _start(folder, warmup=warmup, steps=steps, stacks=stacks, memory=memory)
    ended, code = "exit", 0
    try:
        recorder.activity()
        yield Run(out, recorder)
    except BaseException:  # whatever ends the block (Ctrl-C too) is noted and goes on
        ended, code = "exception", 1
        raise
    finally:
        recorder.finish(ended)
        complete(folder, (sys.argv[0] or "-", *sys.argv[1:]), "script", code, False, sys.executable)


def _start(folder: Path, **options: Any) -> Any:
    """Start the recorder that `tracediag profile` puts into a script's process, in ours."""
    if "_tracediag.start" in sys.modules:
        raise CaptureError("profile: this process is recorded already; run the second recording in a process of its own")
    script = Path(sys.argv[0])
    place = str(script.resolve().parent) if script.is_file() else ""
    run = {"out": str(folder), "cwd": str(Path.cwd()), "script": script.name, "script_dir": place, "command": sys.argv}
    config = {**run, "version": __version__, **options}
    os.environ[VARIABLE] = json.dumps(config)
    sys.path.insert(0, str(INJECT))
    try:
        return importlib.import_module("_tracediag.start").run(str(INJECT))
    finally:
        sys.path.remove(str(INJECT))
        os.environ.pop(VARIABLE, None)
