"""Keep finished reports, so that explaining the same files again takes no reading: found by what was read, by which code and rules.

What is kept is the report, not the Trace: reading and the rules take nearly all of the time, a report is small, and rendering it needs
neither pandas nor DuckDB. Whatever goes wrong with the cache, the report is made anew; nothing is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag._version import __version__
from tracediag.errors import TracediagError
from tracediag.findings import Report
from tracediag.places import rules_folder
from tracediag.sources import local_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["MAX_TOTAL", "find", "folder", "keep", "key_of"]

FORMAT = "tracediag.cache/1"
MAX_TOTAL = 64 << 20
"""Bytes of all reports that are kept; the least recently used go first."""
MAX_ENTRY = 8 << 20
MAX_FILES = 2000
"""A directory of more files is read anew each time."""
WHOLE = 16 << 20
"""Bytes up to which all input is hashed; of more, BLOCKS blocks are, beside what the file system says of each file."""
BLOCKS, BLOCK = 64, 1 << 16
SETTLED_S = 0.1
"""A larger file that changed later than this before it was looked at may change again under the same time stamp."""


def key_of(paths: Sequence[str], rules: Sequence[str], options: dict[str, Any]) -> str | None:
    """What a report depends on as one hash, None where that cannot be told cheaply (URLs, huge directories, files just written).

    paths: as given by the user. rules: folders of more rules. options: whatever else changes the report, fit for JSON.
    """
    digest = hashlib.blake2b(digest_size=32)
    try:
        told = [FORMAT, __version__, sys.version_info[:3], [(path, str(Path(path).absolute())) for path in paths], options]
        digest.update(json.dumps(told, sort_keys=True).encode("utf-8", "surrogateescape"))
        for file in sorted(Path(__file__).parent.rglob("*")):  # the code: a checkout changes without its version
            if file.suffix in (".py", ".sql"):
                digest.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}\n".encode())
        for place in (rules_folder(), *map(Path, rules)):
            for file in sorted(place.glob("*.yaml")) if place.is_dir() else [place]:
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
        settled = all(_add_files(digest, path) for path in paths)
    except (OSError, TracediagError, TypeError, ValueError):
        return None
    return digest.hexdigest() if settled else None


def _add_files(digest: Any, path: str) -> bool:
    """Add the files behind a path; whether they are at rest. Raises ValueError for what has no files here."""
    if "://" in path:
        raise ValueError(path)
    files = local_files(path)
    if len(files) > MAX_FILES:
        raise ValueError(path)
    now = time.time()
    total = sum(file.stat().st_size for _, file in files)
    settled = True
    for name, file in files:
        seen = file.stat()
        facts = (name, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)
        digest.update(json.dumps(facts).encode())
        for block in _blocks(file, seen.st_size, total, len(files)):
            digest.update(block)
        settled &= total <= WHOLE or now - max(seen.st_ctime, seen.st_mtime) > SETTLED_S
    return settled


def _blocks(file: Path, size: int, total: int, files: int) -> Iterator[bytes]:
    """All of a file, or its first and last block and some between."""
    with file.open("rb") as stream:
        if total <= WHOLE:
            yield from iter(lambda: stream.read(BLOCK), b"")
            return
        count = max(2, BLOCKS // files)
        for i in range(count):
            stream.seek(max(size - BLOCK, 0) * i // (count - 1))
            yield stream.read(BLOCK)


def folder() -> Path:
    """Where reports are kept: TRACEDIAG_CACHE_DIR, else `tracediag` in the user's cache folder."""
    named = os.environ.get("TRACEDIAG_CACHE_DIR")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME", "")
    usual = Path("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    return (Path(home) if Path(home).is_absolute() else usual.expanduser()) / "tracediag"


def find(key: str | None) -> Report | None:
    """The report kept under `key`; None when there is none that is whole."""
    if key is None:
        return None
    try:
        file = folder() / f"{key}.json"
        if not _private(file.parent):
            return None
        check, _, text = file.read_bytes().partition(b"\n")
        if check.decode() != _sum(text):
            return None
        report = _restored(text)
        os.utime(file)
    except (OSError, ValueError, RuntimeError, RecursionError):  # RuntimeError: no home folder
        return None
    return report


def keep(key: str | None, report: Report) -> None:
    """Keep a report under `key`, if it can be read back exactly and there is a place for it."""
    if key is None:
        return
    with contextlib.suppress(OSError, TypeError, ValueError, RuntimeError, RecursionError):
        text = json.dumps(asdict(report))
        data = text.encode()
        if len(data) > MAX_ENTRY or json.dumps(asdict(_restored(data))) != text:
            return
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _private(place):
            _write(place, f"{key}.json", _sum(data).encode() + b"\n" + data)
            _bound(place)


def _restored(text: bytes) -> Report:
    """The report in JSON text. Raises ValueError when it is none."""
    return msgspec.convert(json.loads(text), Report)


def _sum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _private(place: Path) -> bool:
    """Whether nobody else can put reports there."""
    seen = place.stat()
    return not hasattr(os, "getuid") or (seen.st_uid == os.getuid() and not seen.st_mode & 0o022)


def _write(place: Path, name: str, data: bytes) -> None:
    """Write a file that is there whole or not at all; the name of the temporary one is its own, so that writers do not meet."""
    number, temporary = tempfile.mkstemp(prefix=".new-", dir=place)  # readable by its owner only
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
        Path(temporary).replace(place / name)
    except BaseException:  # only to leave nothing behind; the error goes on
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _bound(place: Path) -> None:
    """Remove the least recently used reports beyond MAX_TOTAL, and what writers that died left."""
    left = MAX_TOTAL
    for used, size, file in sorted(_entries(place.iterdir()), reverse=True):
        left -= size
        if left < 0 or (file.name.startswith(".new-") and time.time() - used > 3600):
            file.unlink(missing_ok=True)


def _entries(files: Iterable[Path]) -> Iterator[tuple[float, int, Path]]:
    for file in files:
        if file.name.startswith(".new-") or (file.suffix == ".json" and len(file.stem) == 64):
            seen = file.stat()
            yield seen.st_mtime, seen.st_size, file
