"""Byte streams that unpack themselves: gzip and zstandard by their first bytes, members of archives that close what they come from."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from typing import IO, TYPE_CHECKING, Any

from tracediag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LAYERS", "Held", "seekable", "unpacked"]

LAYERS = 2
"""Archives within archives, and compressions within compressions, that are opened."""


def _fast_zlib() -> Any:
    """isal's zlib, which is three times as fast but not built for every platform, else Python's."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


_INFLATE = _fast_zlib()
_BROKEN: tuple[type[Exception], ...] = (zlib.error, _INFLATE.error)
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class _Gzip(io.RawIOBase):
    """Unpack gzip of several members, giving out what is whole before a break (`gzip.open` drops the last block)."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._unpacker = _INFLATE.decompressobj(31)
        self._pending = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._packed.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end. Raises EOFError or zlib.error where the stream is broken."""
        while not self._ended:
            packed = self._pending or self._packed.read(1 << 18)
            try:
                data: bytes = self._unpacker.decompress(packed, max(size, 0))
            except _BROKEN as error:
                raise zlib.error(str(error)) from error
            self._pending = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                self._next_member()
            if data:
                return data
            if not packed and not self._ended:  # without input it gives what it still holds
                raise EOFError
        return b""

    def _next_member(self) -> None:
        rest = self._unpacker.unused_data or self._packed.read(1 << 16)
        self._unpacker = _INFLATE.decompressobj(31)
        self._pending = rest
        self._ended = not rest.startswith(_GZIP)  # padding or garbage behind the last member is ignored, as gzip does


class _Again(io.RawIOBase):
    """A stream with bytes that were read from it put back in front."""

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._rest.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        """What was put back, then what follows."""
        first, self._first = self._first, b""
        if not first:
            return bytes(self._rest.read(size))
        self._first = first[size:] if 0 <= size < len(first) else b""
        return first[:size] if size >= 0 else first + bytes(self._rest.read())


class Held(io.RawIOBase):
    """A stream that closes what it comes from along with itself. keep: what must live as long as it does."""

    def __init__(self, stream: IO[bytes], *below: Any, keep: Any = None) -> None:
        self._stream, self._below, self._keep = stream, below, keep

    def readable(self) -> bool:
        """As every stream here."""
        return True

    def seekable(self) -> bool:
        """Whether `seek` works."""
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place; returns it."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        return self._stream.read(size)

    def close(self) -> None:
        """Close all of them."""
        for stream in (self._stream, *self._below):
            stream.close()
        super().close()


def unpacked(stream: Any, name: str) -> Any:
    """The stream with up to LAYERS layers of compression taken off, each known by its first bytes."""
    for _ in range(LAYERS):
        magic = stream.read(4)
        if stream.seekable():
            stream.seek(0)
        else:
            stream = _Again(magic, stream)
        if magic.startswith(_GZIP):
            stream = _Gzip(stream)
        elif magic == _ZSTD:
            stream = _zstd(stream, name)
        else:
            break
    return stream


def seekable(stream: IO[bytes], read_all: Callable[[], bytes]) -> Any:
    """The stream with one layer of compression taken off, for readers that go back and forth. read_all: its unpacked bytes, bounded."""
    magic = stream.read(4)
    stream.seek(0)
    if magic.startswith(_GZIP):
        packed: Any = gzip.GzipFile(fileobj=stream)
        return Held(packed, stream)
    if magic == _ZSTD:
        stream.close()
        return io.BytesIO(read_all())
    return stream


class _Zstd(io.RawIOBase):
    """Unpack zstandard of several frames with whichever module is there; broken data end in zlib.error as they do for gzip."""

    def __init__(self, stream: Any, packed: IO[bytes], errors: tuple[type[Exception], ...]) -> None:
        self._stream, self._packed, self._errors = stream, packed, errors

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty at the end. Raises EOFError or zlib.error where the stream is broken."""
        try:
            return bytes(self._stream.read(size))
        except self._errors as error:
            raise zlib.error(str(error)) from error

    def close(self) -> None:
        self._stream.close()
        self._packed.close()
        super().close()


def _zstd(stream: IO[bytes], name: str) -> Any:
    for module in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            found: Any = importlib.import_module(module)
        except ImportError:
            continue
        if module == "zstandard":
            return _Zstd(found.ZstdDecompressor().stream_reader(stream, read_across_frames=True), stream, (found.ZstdError,))
        return _Zstd(found.open(stream, "rb"), stream, (found.ZstdError,))
    stream.close()
    raise InputError(f"{name}: zstandard needs Python 3.14 or the package 'zstandard'; install it or unpack the file with `zstd -d`")
