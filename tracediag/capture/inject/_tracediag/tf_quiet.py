"""Keep the profiler's own log lines out of the script's stderr, and only those."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = re.compile(rb"^[IW]\d{4} \d\d:\d\d:[\d.:]+ +\d+ (profiler_session|save_profile|cupti_\w+|rocm_\w+)\.cc:\d+\].*\n?", re.MULTILINE)
STDERR = 2


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What is written to stderr inside comes out at the end, without log lines of the profiler."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") not in ("", "0"):
        yield  # such lines are not written
        return
    try:
        kept = os.dup(STDERR)
        scratch = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
    except OSError:  # no stderr, or nowhere to write
        yield
        return
    os.dup2(scratch.fileno(), STDERR)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
        scratch.seek(0)
        rest = LINE.sub(b"", scratch.read())
        scratch.close()
        if rest:
            os.write(STDERR, rest)
