"""The recorder: told where steps end, it times them, opens and closes the windows, and keeps run.json up to date.

    recorder.register(adapter)                       an adapter a framework, see `Adapter`
    recorder.activity()                              training work begins (starts the clock of step 0)
    recorder.expect("optimizer", "torch")            no window on weaker boundaries: a stronger kind should come
    recorder.boundary("optimizer", "torch")          a training step has just ended
    recorder.pause(); recorder.resume()              an evaluation phase begins, ends
    recorder.finish("exit")                          close everything and write run.json

Ranks of boundaries: forward < backward < optimizer, function. A stronger kind restarts the series.
"""

from __future__ import annotations

import os
import sys
import threading
from time import perf_counter_ns
from typing import Any, Protocol

from . import guard
from .aside import Aside
from .config import Config
from .runfile import RunFile
from .sampler import Sampler
from .steps import RANK, Series, Track


class Adapter(Protocol):
    """What a framework's adapter provides. Exceptions are caught by the recorder and noted."""

    framework: str  # torch | tensorflow
    # wants_stacks: bool = True                      False: no second window with call stacks
    # ready() -> bool                                optional: False: not now (the script runs a profiler of its own)
    # events() -> int                                optional: estimate of the events in the open window
    # finish() -> None                               optional: the script is over; the last boundary may be told

    def start_window(self, stem: str, stacks: bool) -> None:
        """Start the framework's profiler; `stem` names the files (rank0, rank0.stacks, rank0.late)."""

    def stop_window(self) -> list[str]:
        """Stop it and write the trace; returns the files, relative to the run directory."""

    def mark(self, step: int | None) -> None:
        """Close the open step marker and open that of `step` (None: only close)."""

    def sample(self) -> dict[str, Any]:
        """Cheap values at the end of a step: tracings, compiles, compile_ns (of this step), allocated, batch (JSON text), loader_ns."""

    def facts(self) -> dict[str, Any]:
        """Its parts of run.json: params, optimizers, loaders, variables, functions, graphs, strings, sources, flags, devices, versions,
        warnings, notes, host."""


class Recorder:
    """One per process. All methods are cheap no-ops in forked children and after `finish`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.adapters: dict[str, Adapter] = {}
        self.tracks: dict[str, Track] = {}
        self.series = Series()
        self.runfile = RunFile(config)
        self.sampler = Sampler(self)
        self.aside = Aside(self)
        self._evaluation_ns = 0
        self.live = True
        self._finishing = False
        self.window: Track | None = None  # the track whose window is open: one profiler at a time in a process

    # -- interface of the adapters ---------------------------------------------------------------------------------------------

    def register(self, adapter: Adapter) -> None:
        """Add the adapter of a framework (a second one of the same framework replaces the first)."""
        self.adapters[adapter.framework] = adapter

    def activity(self) -> None:
        """Training work begins now: starts the clock of step 0, does nothing later."""
        if self.live and not self.series.started:
            self.discard_idle()
            self.series.start(perf_counter_ns())

    def discard_idle(self) -> None:
        """Forget what ran since import."""
        for adapter in self.adapters.values():
            self._call(adapter, "discard_idle")

    def expect(self, kind: str, framework: str) -> None:
        """A boundary of at least this kind should come: no window opens on weaker ones until 64 have come in a row."""
        self._track(framework).expected = RANK[kind]

    @guard.quiet
    def boundary(self, kind: str, framework: str, steps: int = 1, at_ns: int | None = None) -> None:
        """A training step has just ended. kind: optimizer | function | backward | forward. steps: training steps inside it (a loop
        inside one call). at_ns: `perf_counter_ns()` of its end when it is told late."""
        if not self.live:
            return
        now = perf_counter_ns()
        track = self._track(framework)
        if track.refuses(RANK[kind], threading.get_ident()):
            return
        self.aside.settle()
        if RANK[kind] > track.rank:
            self._upgrade(track, kind)
        self._end_step(track, at_ns or now, steps, decide=at_ns is None)
        self.series.resume(at_ns if at_ns is not None else perf_counter_ns())

    @guard.quiet
    def told(self, track: Track, end_ns: int, decide: bool) -> None:
        """A step that was put aside ended at `end_ns`. decide: a window may open now."""
        self._end_step(track, end_ns, 1, decide)
        self.series.resume(perf_counter_ns() if decide else end_ns)

    @guard.quiet
    def pause(self) -> None:
        """What follows is no part of a training step (an evaluation phase)."""
        if self.live and not self.series.paused and self.series.started:
            self.aside.settle()
            self.series.paused = True
            if self.window is not None:
                self._mark(self.window, None)

    @guard.quiet
    def resume(self) -> None:
        """Training goes on: the open step starts now."""
        if self.live and self.series.paused:
            if self.window is not None:
                self._mark(self.window, len(self.series))
            self.series.resume(perf_counter_ns())

    def evaluated(self, ns: int) -> None:
        """An evaluation or prediction of `ns` was part of the open step."""
        self.aside.settle()
        self._evaluation_ns += ns

    @guard.quiet
    def finish(self, ended: str) -> None:
        """Close an open window, gather facts and write run.json. Idempotent."""
        if not self.live or self._finishing:
            return
        self._finishing = True
        self.aside.settle()
        self.sampler.stop()
        for adapter in self.adapters.values():
            self._call(adapter, "finish")
        self.live = False
        if self.window is not None:
            self._close_window(self.window)
        self.runfile.ended = ended
        self._note_short_run()
        self._flush(facts=True)

    def abandon(self) -> None:
        """Stop recording without writing anything: a forked child."""
        self.live = False
        self.aside.owner = None

    @property
    def open_step(self) -> int:
        """Number of the step that is open."""
        return len(self.series) + len(self.aside.rows)

    # -- steps -----------------------------------------------------------------------------------------------------------------

    def _track(self, framework: str) -> Track:
        if framework not in self.tracks:
            self.tracks[framework] = Track(framework, self.config)
        return self.tracks[framework]

    def _end_step(self, track: Track, end_ns: int, steps: int, decide: bool) -> None:
        values = self._call(self.adapters.get(track.framework), "sample") or {}
        if not self.series.started:  # nothing told us when step 0 began: this boundary only starts the clock
            self.activity()
            return
        if self._evaluation_ns:
            values["evaluation_ns"], self._evaluation_ns = self._evaluation_ns, 0
        inside = self.window is not None
        wall = self.series.append(end_ns, values, profiled=inside or track.touched)
        track.count(wall, steps, unprofiled=not inside and not track.touched)
        track.touched = False
        if len(self.series) == 1 and self.config.lines:
            self.sampler.start()
        if decide:
            self._decide(track, end_ns)

    def _decide(self, track: Track, now: int) -> None:
        if self.window is track:
            if track.window_full(now, self._call(self.adapters.get(track.framework), "events") or 0):
                self._note_shortened(track)
                self._close_window(track)
            else:
                self._mark(track, len(self.series))
        if self.window is None:
            name = track.wants_window(now, self.adapters.get(track.framework))
            if name is not None and self._call(self.adapters.get(track.framework), "ready") is not False:
                self._open_window(track, name)
            elif self.config.stop_after_window and track.windows_done(self.adapters.get(track.framework)):
                self.stop_script()
            elif now >= self.runfile.next_ns:
                self._flush(facts=False)

    def _upgrade(self, track: Track, kind: str) -> None:
        """A stronger boundary: what was recorded before belongs to parts of steps, or to another phase."""
        if self.window is track:
            self._close_window(track)
        self.runfile.drop_windows(track.framework)
        if track.rank >= 0:
            self.series.restart(track.rows)
        track.restart(kind, threading.get_ident())

    def close_window(self, framework: str) -> None:
        """Close the window of a framework early."""
        if self.window is not None and self.window.framework == framework:
            self._close_window(self.window)

    def keep_idle(self, framework: str, files: list[str]) -> None:
        """No step was ever found: `files` hold what ran since import."""
        if not files:
            return
        guard.note(
            "no-steps-found",
            "warning",
            "no training step was found in the script; what ran was recorded as one window",
            "Times are of the whole window, not of a step.",
        )
        self.runfile.add_window(self._track(framework), files)

    # -- windows ---------------------------------------------------------------------------------------------------------------

    def _open_window(self, track: Track, name: str) -> None:
        adapter = self.adapters.get(track.framework)
        if adapter is None:
            return
        track.opened(name, len(self.series), perf_counter_ns())
        stem = f"rank{self.config.rank}" + ("" if name == "main" else "." + name)
        if self._call(adapter, "start_window", stem, name == "stacks", failed=True) is True:
            track.gave_up()
            return
        self.window = track
        self._mark(track, len(self.series))

    def _close_window(self, track: Track) -> None:
        adapter = self.adapters.get(track.framework)
        self._mark(track, None)
        self.window = None
        files = self._call(adapter, "stop_window") or []
        self.runfile.add_window(track, files)
        track.closed()
        if not self.live:
            return
        self._flush(facts=True)

    def _mark(self, track: Track, step: int | None) -> None:
        self._call(self.adapters.get(track.framework), "mark", step)

    def stop_script(self) -> None:
        """`--stop-after-window`: write everything and leave the process at once, with code 0."""
        self.finish("exit")
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # a closed or replaced stream: nothing left to flush
                pass
        os._exit(0)

    # -- run.json --------------------------------------------------------------------------------------------------------------

    def _flush(self, facts: bool) -> None:
        if facts:
            for adapter in self.adapters.values():
                self.runfile.add_facts(adapter.framework, self._call(adapter, "facts") or {})
        self.runfile.write(self.series, self.adapters, guard.NOTES, self.sampler.facts())

    def _note_short_run(self) -> None:
        steps = len(self.series)
        if steps and not self.runfile.windows:
            guard.note(
                "run-too-short",
                "warning",
                f"the script ended after {steps} steps, before the window opened (warm-up of {self.config.warmup} steps)",
                "No trace was recorded; profile again with a smaller --warmup or more steps.",
            )

    def _note_shortened(self, track: Track) -> None:
        if track.name == "main" and track.in_window < self.config.steps:
            guard.note(
                "window-shortened", "info", f"the window was closed after {track.in_window} of {self.config.steps} steps: they are long or "
                "run very many operations", "The findings stand; per-step values are means of fewer steps.",
            )  # fmt: skip

    def _call(self, adapter: Any, method: str, *args: Any, failed: Any = None) -> Any:
        """Call a method of an adapter (None when it has none); an exception becomes a note and the value `failed`."""
        function = getattr(adapter, method, None)
        if function is None:
            return None
        try:
            return function(*args)
        except Exception:  # an adapter's failure must not reach the user's script; what it would have given is missing
            guard.failed(f"{adapter.framework}.{method}")
            return failed
