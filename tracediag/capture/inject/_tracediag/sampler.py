"""Where the main thread is while steps run without the profiler: its user line and the library frames below, looked at now and then.

A profiler of operators sees nothing of the time between them. Every few milliseconds a thread looks at the main thread's stack; what has
passed since the last look is given to the line that runs. It stops after some hundred looks.
"""

from __future__ import annotations

import os
import sys
import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import callsite

if TYPE_CHECKING:
    from types import CodeType, FrameType

PERIOD_S = 0.02
LATER_S, LATER = 0.06, 100  # less often after so many looks: each takes the main thread some 0.1 ms
MOST_LOOKS = 300
SWITCH_S = 0.00005
"""How long a thread waits for another to let go of the interpreter. With the usual 5 ms a look would nearly always see the calls that let
go of it by themselves, and never the plain Python between them."""
AT_ONCE_S = 0.000001
"""The same where the kernel's timers of this thread are exact: even in 50 us a function of some 100 us has mostly come to such a call. For
other threads the kernel makes some 50 us of it, as it does with any wait."""
TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of Linux's prctl: how much later than asked the waits of the calling thread may end, ns."""
GOLDEN = 0.618034
"""Multiples of it, without their whole part, fill 0..1 evenly (the script's random numbers are not ours to draw)."""
MOST_ROWS = 60
LONGEST_NS = 2 * 10**9  # a longer silence is no single line: the machine slept
DEPTH = 60
WITHIN = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
"""Code objects that are part of a statement, not functions that somebody wrote."""
TELLING = (
    "torch/serialization", "torch/utils/data", "torch/utils/tensorboard", "keras/src/saving", "keras/src/callbacks",
    "keras/src/trainers/data", "tensorboard", "summary_ops", "checkpoint/checkpoint", "h5py", "zarr", "pyarrow", "pandas", "tarfile",
    "zipfile", "gzip", "json/", "pickle", "logging/", "tqdm", "wandb", "mlflow", "matplotlib", "PIL/",
)  # fmt: skip
"""Parts of module paths that say what a call is about, better than the outermost function of the library."""


def _timers() -> Any:
    """The C library, which has prctl on Linux; None elsewhere. Loaded by the main thread: in another each file read costs a turn's wait."""
    try:
        import ctypes

        return ctypes.CDLL(None)
    except (ImportError, OSError, TypeError):  # no ctypes, or no C library of this kind
        return None


def _waits_exactly(library: Any) -> bool:
    """Ask the kernel for exact timers in this thread; False where that cannot be had."""
    try:
        return library is not None and library.prctl(TIMER_SLACK, 1, 0, 0, 0) == 0
    except AttributeError:  # another system
        return False


class Sampler:
    """Time of the main thread by user line; started at the end of the first step, off in windows and evaluation phases."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.looks = 0
        self._step = -1
        self._open: list[tuple[tuple[Any, ...], int]] = []  # looks in the step that is open
        self.rows: dict[tuple[Any, ...], list[Any]] = {}  # key -> [looks, ns, set of steps]
        self._gate = threading.Lock()  # open: the thread ends
        self._thread: threading.Thread | None = None
        self._names: dict[CodeType, str] = {}
        if hasattr(os, "register_at_fork"):  # threads and forks do not mix: it is gone before any fork
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork)
        self._again = False

    def start(self) -> None:
        """Begin to look; nothing when it runs already or has seen enough."""
        if self._thread is not None or self.looks >= MOST_LOOKS:
            return
        self._gate = threading.Lock()
        self._gate.acquire()
        self._thread = threading.Thread(target=self._watch, args=(self._gate, _timers()), name="tracediag-lines", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; what was seen stays."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._gate.release()
        if thread is not threading.current_thread():
            thread.join(timeout=1)

    def _before_fork(self) -> None:
        self._again = self._thread is not None
        self.stop()

    def _after_fork(self) -> None:
        if self._again and self.recorder.live:
            self.start()

    def _watch(self, gate: threading.Lock, library: Any) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(AT_ONCE_S if _waits_exactly(library) else SWITCH_S, usual))
        try:
            self._look_on(gate)
        finally:
            if sys.getswitchinterval() < usual:
                sys.setswitchinterval(usual)

    def _look_on(self, gate: threading.Lock) -> None:
        """Look at the main thread until the gate opens. Next to nothing runs between waking up and the look, or the other would go on."""
        main, last, frames = threading.main_thread().ident, 0, sys._current_frames
        while self.looks < MOST_LOOKS and not gate.acquire(True, self._pause()):
            frame = frames().get(main or 0)
            now = perf_counter_ns()
            recorder = self.recorder
            if frame is None or not recorder.live or recorder.window is not None or recorder.series.paused:
                last = 0
                continue
            passed, last = now - last if last else 0, now
            if 0 < passed < LONGEST_NS and not self._look(frame, passed, recorder.open_step):
                last = 0
            del frame

    def _pause(self) -> float:
        """Seconds until the next look: never twice the same, or all looks would meet steps of that length at the same place."""
        return (PERIOD_S if self.looks < LATER else LATER_S) * (0.5 + self.looks * GOLDEN % 1)

    def _look(self, frame: FrameType, passed: int, step: int) -> bool:
        """Give the time that has passed to the line that runs; False when it was our own work."""
        names: list[str] = []
        at: FrameType | None = frame
        for _ in range(DEPTH):
            if at is None:
                break
            code = at.f_code
            if code.co_name == "boundary" and self._name(code) == "_tracediag":
                return False
            if callsite.user_file(code.co_filename) is not None:
                break
            if self._name(code) != "_tracediag":
                names.append(self._name(code))
            at = at.f_back
        else:
            at = None  # deeper than we look: no line
        if step != self._step:
            self._keep()
            self._step = step
        self._open.append((self._key(at, names), passed))
        self.looks += 1
        return True

    def _keep(self) -> None:
        """The step of the last looks has ended: they count. What follows the last step of a script never does."""
        for key, passed in self._open:
            row = self.rows.setdefault(key, [0, 0, set()])
            row[0] += 1
            row[1] += passed
            row[2].add(self._step)
        self._open.clear()

    def _key(self, user: FrameType | None, below: list[str]) -> tuple[Any, ...]:
        leaf = below[0] if below else None
        library = next((name for name in reversed(below) if any(part in name for part in TELLING)), below[-1] if below else None)
        if user is None:
            return None, None, None, library, leaf
        while user.f_code.co_name in WITHIN and user.f_back is not None and user.f_back.f_code.co_filename == user.f_code.co_filename:
            user = user.f_back
        name = callsite.user_file(user.f_code.co_filename)
        return f"{name}:{user.f_lineno}", user.f_code.co_name, self._above(user), library, leaf

    def _above(self, user: FrameType) -> str | None:
        """The library function that called the user's code, however many functions of it are between; None: the script itself did."""
        caller = user.f_back
        for _ in range(DEPTH):
            if caller is None:
                return None
            name = self._name(caller.f_code)
            if callsite.user_file(caller.f_code.co_filename) is None and name != "_tracediag" and "runpy" not in name:
                return name
            caller = caller.f_back
        return None

    def _name(self, code: CodeType) -> str:
        """'torch/serialization.py:save' of a library's function; '_tracediag' of ours."""
        known = self._names.get(code)
        if known is None:
            path = code.co_filename.replace(os.sep, "/")
            inner = path.rsplit("-packages/", 1)[-1] if "-packages/" in path else "/".join(path.split("/")[-2:])
            known = "_tracediag" if "/_tracediag/" in path else f"{inner}:{code.co_name}"
            self._names[code] = known
        return known

    def facts(self) -> list[dict[str, Any]]:
        """Rows of the table `lines`, longest first."""
        known = dict(self.rows)  # the thread may add to it
        kept = sorted(known, key=lambda key: -known[key][1])[:MOST_ROWS]
        return [
            {
                "source": key[0], "function": key[1], "caller": key[2], "library": key[3], "leaf": key[4],
                "looks": known[key][0], "ns": known[key][1], "steps": len(known[key][2]),
            }
            for key in kept
        ]  # fmt: skip
