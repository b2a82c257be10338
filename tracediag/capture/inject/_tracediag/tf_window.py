"""The profiler window of TensorFlow: start, stop, and make the file it wrote nameless (no host name, no path of the machine)."""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

from . import guard
from .ranges import RANGES
from .tf_quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOSTNAMES = 4  # field number of XSpace.hostnames in xplane.proto
MARKER = "tracediag_step"


class Window:
    """One recording at a time. out: run directory, where TensorBoard finds plugins/profile/<time>/<stem>.xplane.pb."""

    def __init__(self, tensorflow: Any, out: str) -> None:
        self._start, self._stop, self._trace = (getattr(tensorflow.profiler.experimental, name) for name in ("start", "stop", "Trace"))
        self.out = out
        self.stem = "rank0"
        self.running = False
        self.wanted = True  # False: what is being recorded will be discarded, writing it would be in vain
        self._marker: Any = None
        self._before: set[str] = set()
        self._files: list[str] = []

    def prime(self) -> None:
        """Start and stop the profiler once: the first start loads CUPTI, which takes seconds on a GPU (well under 1 ms without)."""
        with tempfile.TemporaryDirectory() as folder, quiet():
            self._start(folder)
            self._stop(save=False)

    def start(self, stem: str, stacks: bool = False, memory: bool = False) -> None:
        """Start a recording whose file is named after `stem`. Raises what the profiler raises (another one is running)."""
        self.stem = stem
        self._before = set(self._written())
        with quiet():
            self._start(self.out)
        self.running = True
        RANGES.trace = self._trace

    def stop(self) -> None:
        """Stop, write the file, rename it and take names out of it."""
        if not self.running:
            return
        self.running = False
        RANGES.trace = None
        with quiet():
            self._stop(save=self.wanted)
        self._files = []
        for path in sorted(set(self._written()) - self._before):
            target = os.path.join(os.path.dirname(path), self.stem + ".xplane.pb")
            with open(path, "rb") as stream:
                data = stream.read()
            with open(path, "wb") as stream:
                stream.write(nameless(data, self.out))
            os.replace(path, target)
            self._files.append(os.path.relpath(target, self.out).replace(os.sep, "/"))

    def discard(self) -> None:
        """Remove what was written of the stopped recording."""
        for file in self.save():
            path = os.path.join(self.out, file)
            os.remove(path)
            folder = os.path.dirname(path)
            if not os.listdir(folder):
                os.rmdir(folder)

    def save(self) -> list[str]:
        """The files of the stopped recording, relative to the run directory."""
        files, self._files = self._files, []
        return files

    def mark(self, step: int | None) -> None:
        """Close the open step marker and open that of `step`."""
        if self._marker is not None:
            self._marker.__exit__(None, None, None)
            self._marker = None
        if step is not None:
            self._marker = self._trace(MARKER, step_num=step, _r=1)

    def _written(self) -> Iterator[str]:
        root = os.path.join(self.out, "plugins", "profile")
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith(".xplane.pb"):
                    yield os.path.join(folder, name)


def yield_to_own(tensorflow: Any, yields: Callable[[], None]) -> Callable[[], bool]:
    """A profiler of the script's own goes first: `yields` is called before it starts. Returns: is one on?"""
    try:
        module: Any = importlib.import_module("tensorflow.python.profiler.profiler_v2")
    except ImportError:
        guard.note("tf-private-profiler", "info", "this TensorFlow has no profiler_v2", "The script cannot start its own profiler.")
        return lambda: False
    original = module.start

    def start(*args: Any, **kwds: Any) -> Any:
        yields()
        return original(*args, **kwds)

    module.start = start
    if tensorflow.profiler.experimental.start is original:
        tensorflow.profiler.experimental.start = start
    return lambda: getattr(module, "_profiler", None) is not None


def nameless(data: bytes, out: str) -> bytes:
    """An XSpace message without host names, with paths made relative: the run directory's blanked where the profiler's options repeat it,
    the working directory and the home folder replaced by "./" and "~/", padded with slashes to the same length (XLA's modules carry
    source files, and lengths are part of the format).

    Only the top level is parsed: (tag, length, bytes) records, all of wire type 2. What does not look like that stays as it is.
    """
    parts = []
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        if tag & 7 != 2:
            return data
        size, at = _varint(data, at)
        if at + size > len(data):
            return data
        if tag >> 3 != HOSTNAMES:
            parts.append(data[start : at + size])
        at += size
    path = out.encode()
    kept = b"".join(part.replace(path, b"." * len(path)) if len(part) < 100_000 else part for part in parts)
    for folder, short in ((os.getcwd(), b"./"), (os.path.expanduser("~"), b"~/")):
        long = folder.rstrip("/").encode() + b"/"
        if len(long) > len(short):
            kept = kept.replace(long, short.ljust(len(long), b"/"))
    return kept


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, at
