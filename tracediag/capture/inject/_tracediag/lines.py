"""Mark the user's source lines in a short recording, so that each op lies inside the line that ran it.

torch's own stacks name functions by their first line only; a trace function that opens one range per executed line gives the exact one.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from . import callsite

PREFIX = "tracediag_line#"


class LineMarks:
    """Ranges named `tracediag_line#train.py:12` on the calling thread, between `start` and `stop`."""

    def __init__(self, torch: Any) -> None:
        # the fast range is native code: dynamo, which looks at every Python frame below a compiled one, does not see it
        self._range = getattr(torch._C._profiler, "_RecordFunctionFast", torch.autograd.profiler.record_function)
        self._open: list[tuple[FrameType, Any]] = []
        self._frames: list[FrameType] = []
        self.on = False

    def start(self) -> None:
        """Begin, unless a debugger or a coverage tool traces already. Frames that run already are included."""
        if sys.gettrace() is not None or self.on:
            return
        self.on = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if callsite.user_file(frame.f_code.co_filename) is not None:
                frame.f_trace = self._local
                self._frames.append(frame)
            frame = frame.f_back
        sys.settrace(self._global)

    def stop(self) -> None:
        """End; nothing is traced any more."""
        if not self.on:
            return
        self.on = False
        sys.settrace(None)
        for frame in self._frames:
            frame.f_trace = None
        self._frames.clear()
        self.close()

    def close(self) -> None:
        """Close all open ranges: a step ends here."""
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)

    def _global(self, frame: FrameType, event: str, arg: Any) -> Any:
        return None if callsite.user_file(frame.f_code.co_filename) is None else self._local

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not self.on:
            return None
        if event in ("line", "return"):
            self._leave(frame)
        if event == "line":
            self._enter(frame)
        return self._local

    def _leave(self, frame: FrameType) -> None:
        """Close the range of this frame, and those of frames called from it that ended unseen."""
        depth = len(self._open)
        while depth and self._open[depth - 1][0] is not frame:
            depth -= 1
        if depth:
            for _ in range(len(self._open) - depth + 1):
                self._open.pop()[1].__exit__(None, None, None)

    def _enter(self, frame: FrameType) -> None:
        mark = self._range(f"{PREFIX}{callsite.user_file(frame.f_code.co_filename)}:{frame.f_lineno}")
        mark.__enter__()
        self._open.append((frame, mark))
