"""Ends of steps put aside while nothing is to be decided about them, and told to the recorder some at a time.

Between two training steps the caches hold the script's own data, not ours, and every call costs microseconds there. Most steps need
none: no window is near. Only their times and values are kept then; those of a fifth of a second are told in one go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recorder import Recorder
    from .steps import Track

MOST = 32
LONGEST_NS = 200_000_000


class Aside:
    """Steps that end at one call and at nothing else. `owner`: the id of the optimizer whose `step` it is, None while every step is told
    at once."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.owner: int | None = None
        self.thread = 0
        self.rows: list[tuple[int, int, Any]] = []  # start and end in perf_counter_ns, what the adapter keeps of the step
        self._start = self._until = 0
        self._track: Track | None = None
        self._recall: Callable[[Any], Any] | None = None

    def open(self, track: Track, owner: int, recall: Callable[[Any], Any]) -> None:
        """A step has just been told. If nothing is to be decided soon, the next ends of `owner` are put aside. `recall` gives the adapter
        back what it kept of a step, just before that is told."""
        recorder = self.recorder
        alone = len(recorder.tracks) == 1 and track.kind == "optimizer" and track.thread == threading.get_ident()
        if alone and recorder.live and recorder.window is None and not recorder.series.paused and track.undisturbed(MOST):
            self.owner, self.thread, self._track, self._recall = owner, track.thread, track, recall
            self._start = recorder.series.start_ns
            self._until = self._start + LONGEST_NS

    def put(self, end_ns: int, kept: Any) -> None:
        """A step has ended by `owner` on `thread`. Those put aside are told when there are many, or it is long since the first; the last
        is decided about."""
        self.rows.append((self._start, end_ns, kept))
        if end_ns < self._until and len(self.rows) < MOST:
            self._start = perf_counter_ns()
        else:
            self._tell_all(decide=True)

    def settle(self) -> None:
        """Tell what was put aside: something else than the end of a step comes now. The open step goes on, less the time this takes."""
        if self.rows:
            start, now = self._start, perf_counter_ns()
            self._tell_all(decide=False)
            self.recorder.series.resume(start + perf_counter_ns() - now)
        self.owner = None

    def _tell_all(self, decide: bool) -> None:
        rows, self.rows, self.owner = self.rows, [], None
        for place, (start, end, kept) in enumerate(rows, 1):
            self.recorder.series.resume(start)
            self._recall(kept)  # type: ignore[misc]
            self.recorder.told(self._track, end, decide and place == len(rows))  # type: ignore[arg-type]
