"""Turn paths into named byte streams: plain files, gzip, zstandard, zip, tar, run directories and URLs; knows no trace format.

Nothing is written to disk. Decompression is bounded (`MAX_BYTES`, `MAX_RATIO`), so that a hostile archive ends in an InputError.
"""

from __future__ import annotations

import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracediag.download import download
from tracediag.errors import InputError
from tracediag.streams import LAYERS, Held, seekable, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["HEAD", "MAX_BYTES", "MAX_RATIO", "Source", "local_files", "open_sources"]

MAX_BYTES = 4 << 30
"""Most bytes that one compressed input may unpack to."""
MAX_RATIO = 150
"""Largest ratio of unpacked to packed bytes (looked at past 64 MiB only: small files may repeat themselves)."""
HEAD = 1 << 16
"""Bytes that a format is recognised by."""
BLOCK = 1 << 20
RUN_FILE = re.compile(r"run(\.rank\d+)?\.json")

_BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, OverflowError, struct.error, zlib.error)
"""What reading a broken archive raises; numbers in its headers that are none end in ValueError."""
_ZIP = b"PK\x03\x04"
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.zst")
_TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".pb", ".pb.gz", ".pb.zst", ".pbtxt", ".trace", ".gz")
_NOT_TRACES = ("report.json", "overview_page.pb", "input_pipeline.pb", "kernel_stats.pb", "tensorflow_stats.pb", "memory_profile.json.gz")


@dataclass
class Source:
    """One named stream of bytes, already unpacked.

    name: relative display name. size: packed size in bytes. truncated: set while reading when a compressed stream ends early.
    """

    name: str
    size: int
    opener: Callable[[], IO[bytes]] = field(repr=False)
    listed: bool = False  # found in a directory or archive rather than named by the user
    truncated: bool = False
    _head: bytes | None = field(default=None, repr=False)

    def head(self) -> bytes:
        """The first 64 KiB, unpacked; kept for later calls."""
        if self._head is None:
            self._head = b"".join(self._read(HEAD, HEAD))
        return self._head

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """The whole stream in pieces of at most `size` bytes. Raises InputError when it unpacks to more than is allowed."""
        total = 0
        for block in self._read(size, None):
            total += len(block)
            if total > MAX_BYTES and total > self.size:
                raise InputError(f"{self.name}: unpacks to more than {MAX_BYTES >> 30} GiB; unpack it and cut it to fewer steps")
            if total > (64 << 20) and total > MAX_RATIO * max(self.size, 1):
                raise InputError(f"{self.name}: unpacks to more than {MAX_RATIO} times its size; this does not look like a trace")
            yield block

    def read(self) -> bytes:
        """The whole stream. Raises InputError as `blocks` does."""
        return b"".join(self.blocks())

    def sought(self) -> Any:
        """A stream of it that can be sought in, for archives. The caller closes it."""
        return seekable(self.opener(), self.read)

    def _read(self, size: int, limit: int | None) -> Iterator[bytes]:
        left = limit
        try:
            with unpacked(self.opener(), self.name) as stream:
                while left is None or left > 0:
                    block = stream.read(size if left is None else min(size, left))
                    if not block:
                        return
                    if left is not None:
                        left -= len(block)
                    yield block
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError):
            self.truncated = True
        except (RuntimeError, NotImplementedError) as error:  # zipfile: a password or an unknown method
            raise InputError(f"{self.name}: cannot be unpacked ({error})") from error
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error})") from error


def open_sources(paths: Sequence[str]) -> tuple[list[Source], list[Source]]:
    """The byte sources behind `paths` as (possible traces, run.json files), each in a fixed order.

    Directories and archives are listed for files that can be traces; a plain file is taken whatever its name.
    Raises InputError for a path that does not exist, cannot be read, or holds nothing.
    """
    found: list[Source] = []
    for path in paths:
        found += _expand(str(path))
    runs = [source for source in found if _is_run(source)]
    return [source for source in found if not _is_run(source)], sorted(runs, key=_number)


def _is_run(source: Source) -> bool:
    return RUN_FILE.fullmatch(source.name.rsplit("/", 1)[-1]) is not None


def _number(source: Source) -> int:
    """The rank in the name of a run.json: that of the first rank has none."""
    return int(re.sub(r"\D", "", source.name.rsplit("/", 1)[-1]) or 0)


def _expand(path: str) -> list[Source]:
    if "://" in path:
        return _container(_url_source(path))
    place = Path(path)
    if place.is_dir():
        return _directory(place)
    if not place.exists():
        raise InputError(f"{path}: no such file or directory")
    return _container(_file_source(place, place.name))


def _file_source(place: Path, name: str, listed: bool = False) -> Source:
    try:
        return Source(name, place.stat().st_size, lambda: place.open("rb"), listed)
    except OSError as error:
        raise InputError(f"{place}: cannot be read ({error.strerror})") from error


def _url_source(url: str) -> Source:
    if url.lower().startswith(("http://", "https://")):
        named, data = download(url)
        return Source(named, len(data), lambda: BytesIO(data))
    import fsspec  # takes longer to import than a small file to read

    name = url.rstrip("/").rsplit("/", 1)[-1]
    try:
        file = fsspec.open(url, "rb")
        size = int(file.fs.size(file.path) or 0)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{url}: cannot be opened ({error})") from error
    return Source(name, size, lambda: file.open())


def _directory(place: Path) -> list[Source]:
    found = [source for name, file in local_files(str(place)) for source in _container(_file_source(file, name, True))]
    if not found:
        raise InputError(f"{place}: no trace in this directory (looked for *.pt.trace.json, *.json.gz, *.xplane.pb)")
    return found


def local_files(path: str) -> list[tuple[str, Path]]:
    """(name, file) of the files behind a local path that are looked into: itself, or what can be a trace or facts in a directory."""
    place = Path(path)
    if not place.is_dir():
        return [(place.name, place)]
    files = {file.relative_to(place).as_posix(): file for file in sorted(place.rglob("*")) if file.is_file()}
    return [(name, files[name]) for name in _wanted(list(files))]


def _wanted(names: Sequence[str]) -> Iterator[str]:
    """Names that can be traces or run.json; TensorFlow's trace.json.gz beside an xplane.pb holds the same events, cut to a million."""
    folders = {name.rsplit("/", 1)[0] for name in names if name.endswith(".xplane.pb")}
    for name in names:
        if any(part.startswith((".", "__MACOSX")) for part in name.split("/") if part not in (".", "..")):
            continue
        derived = name.endswith((".trace.json.gz", ".trace.json")) and name.rsplit("/", 1)[0] in folders and "/profile/" in name
        if name.endswith(_TRACE_SUFFIXES + _ARCHIVES) and not name.endswith(_NOT_TRACES) and not derived:
            yield name


def _container(source: Source, depth: int = 0) -> list[Source]:
    """The members of an archive (also of those in it), or the source itself."""
    if depth < LAYERS:
        head = source.head()
        if head.startswith(_ZIP):
            return _zip_members(source, depth)
        if head[257:262] == b"ustar":
            return _tar_members(source, depth)
    return [source]


def _members(source: Source, found: list[Source], depth: int) -> list[Source]:
    """The members of an archive, those that are archives opened too; names tell the way where there is more than one."""
    if not found and not source.listed:
        raise InputError(f"{source.name}: no trace in this archive (looked for *.pt.trace.json, *.json.gz, *.xplane.pb)")
    if source.listed:
        for member in found:
            member.name = f"{source.name}/{member.name}"
    return [inner for member in found for inner in _container(member, depth + 1)]


class _Zip:
    """An open zip archive, closed when the last of its members is let go: its directory is read once, not once a member."""

    def __init__(self, source: Source) -> None:
        self.stream = source.sought()
        try:
            self.archive = zipfile.ZipFile(self.stream)
        except BaseException:  # only to close what was opened; the error goes on
            self.stream.close()
            raise

    def close(self) -> None:
        self.archive.close()
        self.stream.close()

    def __del__(self) -> None:
        if hasattr(self, "archive"):
            self.close()

    def member(self, name: str) -> Any:
        """The stream of one member."""
        return Held(self.archive.open(name), keep=self)


def _zip_members(source: Source, depth: int) -> list[Source]:
    try:
        opened = _Zip(source)
        infos = {info.filename: info for info in opened.archive.infolist() if not info.is_dir()}
    except _BROKEN as error:
        raise InputError(f"{source.name}: broken zip archive ({error}); make it again") from error
    names = sorted(_wanted(sorted(infos)))
    if sum(infos[name].file_size for name in names) > MAX_BYTES:
        raise InputError(f"{source.name}: unpacks to more than {MAX_BYTES >> 30} GiB; give fewer ranks at a time")
    found = [Source(name, infos[name].compress_size, lambda n=name: opened.member(n), True) for name in names]  # type: ignore[misc]
    return _members(source, found, depth)


class _Tar:
    """An open tar archive, closed when the last of its members is let go: unpacking it anew for each would be quadratic."""

    def __init__(self, source: Source) -> None:
        self.stream = source.sought()
        try:
            self.archive = tarfile.open(fileobj=self.stream, mode="r:")  # noqa: SIM115 - members are read later
        except BaseException:  # only to close what was opened; the error goes on
            self.stream.close()
            raise

    def close(self) -> None:
        self.archive.close()
        self.stream.close()

    def __del__(self) -> None:
        if hasattr(self, "archive"):
            self.close()

    def member(self, info: tarfile.TarInfo) -> Any:
        """The stream of one member."""
        stream = self.archive.extractfile(info)
        assert stream is not None  # only files are listed
        return Held(stream, keep=self)


def _tar_members(source: Source, depth: int) -> list[Source]:
    """Members of a tar, heads read in one pass, so that reading them in order unpacks the archive twice, not once a member."""
    try:
        tar = _Tar(source)
        members = _tar_table(tar.archive, source.name)
    except _BROKEN as error:
        raise InputError(f"{source.name}: broken tar archive ({error}); make it again") from error
    found = [Source(name, members[name].size, lambda m=members[name]: tar.member(m), True) for name in _wanted(list(members))]  # type: ignore[misc]
    for member in found:
        member.head()
    return _members(source, found, depth)


def _tar_table(archive: tarfile.TarFile, name: str) -> dict[str, tarfile.TarInfo]:
    """Files of the archive by name. A broken end costs only the members behind it; the size is checked before more is unpacked."""
    members: dict[str, tarfile.TarInfo] = {}
    try:
        for member in archive:
            if archive.offset > MAX_BYTES:
                raise InputError(f"{name}: unpacks to more than {MAX_BYTES >> 30} GiB; give fewer ranks at a time")
            if member.isfile():
                members[member.name.removeprefix("./")] = member
    except (tarfile.TarError, EOFError, zlib.error, ValueError):
        if not members:
            raise
    return members
