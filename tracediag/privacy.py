"""Take out of a report what should not leave the machine: absolute paths, names of users and hosts, addresses.

A trace may come from another machine, so that what looks like a private name goes too, not only the names of this one.
"""

from __future__ import annotations

import getpass
import re
import socket
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from dataclasses import Field
    from typing import ClassVar, Protocol

    class Record(Protocol):
        """Any dataclass."""

        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    Told = TypeVar("Told", bound=Record)

__all__ = ["names_here", "plain", "redacted", "scrub"]

LONGEST = 10_000
"""Characters of a text that are looked through; the rest is left out, as every report would."""
OWN_WORDS = {"why", "fix", "references", "changes_training", "title", "versions", "tool", "fingerprint", "rule", "also"}
"""Keys of what rules and packages say of themselves."""
COMMON = {
    "root", "user", "users", "admin", "runner", "ubuntu", "debian", "docker", "jovyan", "localhost", "host", "nobody", "main", "app",
    "node", "worker", "server", "master", "test", "dev", "data", "train", "trainer", "model", "python", "torch", "pytorch", "tensorflow",
    "keras", "jax", "cuda", "gpu", "cpu",
}  # fmt: skip
"""Names that other things have as well, and that tell nothing."""
_END = r"\s\"'`<>|:;,()\[\]{}"
_FILE = re.compile(r"\bfile:/{2,}", re.IGNORECASE)
_WINDOWS = re.compile(rf"(?<![\w\\])(?:[A-Za-z]:[\\/]|\\\\)(?:[^\\/{_END}]+(?: [^\\/{_END}]+)*[\\/]+)*[^\\/{_END}]*")
_POSIX = re.compile(rf"(?<![\w/.)\]}}>~-])~?(?!//)/(?:[^/{_END}]+(?: [^/{_END}]+)?/+)+[^/{_END}]*")
_HOME = re.compile(rf"(?<![\w./])/+(?:root\b|(?:home|users)/+(?:[^/{_END}]+(?: [^/{_END}]+)?(?=/)|[^/{_END}]+))", re.IGNORECASE)
_PACKAGES = re.compile(r".*[\\/](?:site|dist)-packages[\\/]+")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(r"\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b")
_TRACE = re.compile(r"(?<![^/\\\s])[^/\\\s]{1,255}?(?=_\d+\.\d+\.pt\.trace\.json|\.xplane\.pb)")
"""PyTorch and TensorFlow name their files after the host."""


def redacted(told: Told, names: Iterable[str] | None = None) -> Told:
    """A report, or another dataclass of plain values, without private names. names: those of this machine (see `names_here`)."""
    words = _words(names_here() if names is None else names)
    return msgspec.convert(_walk(asdict(told), words), type(told))


def plain(value: Any, names: Iterable[str] | None = None) -> Any:
    """JSON data without private names."""
    return _walk(value, _words(names_here() if names is None else names))


def scrub(text: str, names: Iterable[str] | None = None) -> str:
    """One text without private names: of an absolute path the file's name stays, of one into an installed package the part inside it."""
    return _scrubbed(text, _words(names_here() if names is None else names))


def names_here() -> list[str]:
    """The names of this user and this machine that tell something."""
    found = [socket.gethostname(), socket.getfqdn()]
    found += [name.split(".")[0] for name in found]
    with suppress(OSError, KeyError):  # no entry for this user id, as in some containers
        found.append(getpass.getuser())
    return sorted({name for name in found if len(name) > 2 and name.lower() not in COMMON}, key=lambda name: (-len(name), name))


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    known = "|".join(map(re.escape, names))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{known})(?![A-Za-z0-9])", re.IGNORECASE) if known else None


def _walk(value: Any, words: re.Pattern[str] | None) -> Any:
    if isinstance(value, dict):
        return {key: item if key in OWN_WORDS else _walk(item, words) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, words) for item in value]
    return _scrubbed(value, words) if isinstance(value, str) else value


def _scrubbed(text: str, words: re.Pattern[str] | None) -> str:
    text = _FILE.sub("/", text[:LONGEST])
    text = _POSIX.sub(_last, _HOME.sub("~", _WINDOWS.sub(_last, text)))
    text = _ADDRESS.sub("host", _MAIL.sub("someone", _TRACE.sub("host", text)))
    return words.sub("private", text) if words else text


def _last(found: re.Match[str]) -> str:
    """The end of a path that tells nothing of where it lies; a folder's path keeps nothing."""
    path = found[0]
    if _PACKAGES.match(path):
        return _PACKAGES.sub("", path).replace("\\", "/")
    return re.split(r"[\\/]", path)[-1] or "(folder)"
