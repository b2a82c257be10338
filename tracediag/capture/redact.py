"""Make paths relative and drop the home folder, user and host names from what is written."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Redactor"]

_PLAIN_HOST = re.compile(r"^[a-z]{1,7}$")  # "host", "train": a word that other things are called too
_HOST_NAME = re.compile(rb'("host_?name"\s*:\s*)"[^"]*"')
_TRACE_NAME = re.compile(rb'("traceName"\s*:\s*)"[^"]*/([^"/]*)"')
_SOURCE = re.compile(rb"(?<=[\"\s#:])/(?:[^\"/\s]+/)+([^\"/\s]+/[^\"/\s()]+\.py)(?=[\"(:])")


class Redactor:
    """Replaces text in UTF-8 bytes. relative: folders that are cut off the front of paths, most wanted first."""

    def __init__(self, relative: Iterable[str | Path], home: str | None = None, user: str | None = None, host: str | None = None) -> None:
        home = str(Path.home()) if home is None else home
        folders = sorted({str(folder).rstrip("/") for folder in relative} - {"", "/"}, key=lambda folder: (-len(folder), folder))
        pairs = [(folder + "/", "") for folder in folders]
        pairs += [(home.rstrip("/") + "/", "~/")] if home.rstrip("/") else []
        self._pairs = [(form.encode(), new.encode()) for old, new in pairs for form in (old, old.replace("/", "\\/"))]
        self._words = [_word(name) for name in (_user(user), _host(host)) if name]

    def __call__(self, data: bytes) -> bytes:
        """The bytes without private names. An absolute path of a source file keeps its last two parts."""
        for old, new in self._pairs:
            data = data.replace(old, new)
        for pattern, new in self._words:
            data = pattern.sub(new, data)
        data = _HOST_NAME.sub(rb'\1"host"', data)
        data = _TRACE_NAME.sub(rb'\1"\2"', data)
        return _SOURCE.sub(rb"\1", data)


def _word(name: tuple[str, bytes]) -> tuple[re.Pattern[bytes], bytes]:
    text, new = name
    if new == b"host":
        return re.compile(rb"(?<![\w.-])" + re.escape(text.encode()) + rb"(?![\w-])"), new
    return re.compile(rb"(?<=/)" + re.escape(text.encode()) + rb"(?=/)"), new


def _user(user: str | None) -> tuple[str, bytes] | None:
    """The user's name is replaced only as a part of a path: as a word it may be anything (root)."""
    try:
        name = getpass.getuser() if user is None else user
    except (OSError, KeyError):  # no entry for this user id, as in some containers
        return None
    return (name, b"user") if name else None


def _host(host: str | None) -> tuple[str, bytes] | None:
    name = socket.gethostname() if host is None else host
    return None if not name or _PLAIN_HOST.match(name) else (name, b"host")
