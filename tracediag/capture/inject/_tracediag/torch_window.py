"""torch's profiler: prime it, start it, mark the steps, stop it and write the raw trace."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import guard
from .config import Config
from .ranges import RANGES

SUFFIX = ".pt.trace.json"
IDLE_CPU_SECONDS, IDLE_SECONDS = 3.0, 10.0  # stopping costs about 0.1 ms an op: three seconds of small ops are enough


class Profiler:
    """One recording at a time. Never initialises a device: device activity is recorded only where the script already uses one."""

    def __init__(self, torch: Any, config: Config) -> None:
        self.torch = torch
        self.config = config
        self.stem = ""
        self.device_seen = False
        self.starting = False  # a start of ours is under way
        self._profile: Any = None
        self._step: Any = None
        self._device_primed = False

    @property
    def running(self) -> bool:
        """A recording of ours is on."""
        return self._profile is not None

    def prime(self) -> None:
        """The first start in a process takes seconds: take them at import, on the CPU part only. Kineto's log lines are switched off, and
        the allocator's one warning about memory from before a recording is provoked while nobody listens."""
        quiet = "KINETO_LOG_LEVEL" not in os.environ
        if quiet:
            os.environ["KINETO_LOG_LEVEL"] = "99"  # read once, at the first start
        older = self.torch.empty(1)
        self.starting = True
        try:
            with _nobody_listens(), self.torch.profiler.profile(activities=self._activities(), profile_memory=self.config.memory):
                del older
        finally:
            self.starting = False
            if quiet:
                os.environ.pop("KINETO_LOG_LEVEL", None)

    def prime_device(self) -> None:
        """The same for the device part, at the first boundary after the script has initialised a device."""
        if self._device_primed or not self.device():
            return
        self._device_primed = self.starting = True
        try:
            with self.torch.profiler.profile(activities=self._activities()):
                pass
        finally:
            self.starting = False

    def device(self) -> str | None:
        """cuda | xpu when the script has initialised it."""
        for name in ("cuda", "xpu"):
            module = getattr(self.torch, name, None)
            if module is not None and module.is_initialized():
                return name
        return None

    def _activities(self) -> list[Any]:
        kinds = self.torch.profiler.ProfilerActivity
        device = self.device()
        return [kinds.CPU] + ([getattr(kinds, device.upper())] if device else [])

    def start(self, stem: str, stacks: bool, memory: bool, shapes: bool = True) -> None:
        """Start a recording. Raises RuntimeError when a profiler of the script's own is on."""
        if getattr(self.torch.autograd.profiler, "_is_profiler_enabled", False):
            raise RuntimeError("the script runs a profiler of its own")
        activities = self._activities()
        self.device_seen = self.device_seen or len(activities) > 1
        profile = self.torch.profiler.profile(
            activities=activities, record_shapes=shapes, profile_memory=memory, with_flops=shapes, with_stack=stacks
        )
        self.starting = True
        try:
            profile.start()
        finally:
            self.starting = False
        self._profile, self.stem = profile, stem
        RANGES.trace = self._range

    def _range(self, name: str) -> Any:
        """A range that begins now: for what torch does not name itself, the optimizers of Keras."""
        opened = self.torch.autograd.profiler.record_function(name)
        opened.__enter__()
        return opened

    def yield_to_own(self, closing: Callable[[], Any]) -> None:
        """A profiler of the script's own goes first: `closing` closes ours before it starts."""
        module = self.torch.autograd.profiler
        original = getattr(module, "_prepare_profiler", None)
        if original is None:
            return

        def prepare(*args: Any, **kwargs: Any) -> Any:
            if not self.starting:
                closing()
            return original(*args, **kwargs)

        module._prepare_profiler = prepare

    def mark(self, step: int | None) -> None:
        """Close the open step annotation; open the one of `step`."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None
        if step is not None and self.running:
            self._step = self.torch.autograd.profiler.record_function(f"ProfilerStep#{step}")
            self._step.__enter__()

    def stop(self) -> None:
        """Stop recording and keep the events in memory."""
        RANGES.trace = None
        if self.running:
            self._profile.stop()

    def discard(self) -> None:
        """Forget what was recorded."""
        self._profile = None

    def save(self) -> list[str]:
        """Write the stopped recording as plain JSON; the parent compresses it. Returns the name of the file that it will then be."""
        profile, self._profile = self._profile, None
        if profile is None:
            return []
        profile.export_chrome_trace(os.path.join(self.config.out, self.stem + SUFFIX))
        return [self.stem + SUFFIX + ".gz"]


@contextlib.contextmanager
def _nobody_listens() -> Iterator[None]:
    """The process's standard error goes nowhere for a moment (native code writes to the descriptor)."""
    try:
        saved = os.dup(2)
    except OSError:  # closed: there is nobody anyway
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


class IdleWindow:
    """A recording from import on, for scripts in which no step is ever found. The first sign of training discards it; after some
    seconds of work a timer has it stopped, in the main thread, which owns it. The timer's thread is gone before any fork."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self.state = "off"  # off | on | stopped | discarded
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tracediag-idle", daemon=True)
        self._callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._pending)

    def start(self, stem: str) -> None:
        """Start recording, without memory events (a script may make millions). Raises RuntimeError."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._profiler.start(stem, stacks=False, memory=False)
        self.state = "on"
        self._thread.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.stop)

    def _watch(self) -> None:
        """Until the process has worked for `IDLE_CPU_SECONDS` (or waited for `IDLE_SECONDS`)."""
        begin_cpu, begin = time.process_time(), time.monotonic()
        while not self._wake.wait(0.25):
            if time.process_time() - begin_cpu > IDLE_CPU_SECONDS or time.monotonic() - begin > IDLE_SECONDS:
                ctypes.pythonapi.Py_AddPendingCall(self._callback, None)
                return

    def _pending(self, _: Any) -> int:
        self.stop()
        return 0

    @guard.quiet
    def stop(self) -> None:
        """Stop, keep the events."""
        if self.state == "on":
            self.state = "stopped"
            self._wake.set()
            self._thread.join(timeout=5)
            self._profiler.stop()

    @guard.quiet
    def discard(self) -> None:
        """Training was seen: forget the recording."""
        if self.state in ("on", "stopped"):
            self.stop()
            self._profiler.discard()
        self.state = "discarded"

    def save(self) -> list[str]:
        """Write what was kept; empty when there is nothing."""
        self.stop()
        return self._profiler.save() if self.state == "stopped" else []
