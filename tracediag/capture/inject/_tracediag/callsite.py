"""Find the user's line: the first frame outside the standard library, installed packages and our own files."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType

_cwd = ""
_script_dir = ""
_ours = ""
_library: tuple[str, ...] = ()
_known: dict[str, str | None] = {}


def configure(cwd: str, script_dir: str, ours: str) -> None:
    """Set the working directory of the run, the folder of the script and our own folder (absolute paths)."""
    global _cwd, _script_dir, _ours, _library
    _cwd, _script_dir, _ours = cwd, script_dir, ours
    names = ("stdlib", "platstdlib")
    folders = {sysconfig.get_path(name) for name in names}
    _library = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders if folder)
    _known.clear()


def relative(path: str) -> str:
    """`path` relative to the working directory or the script's folder when inside, else its last two parts."""
    absolute = os.path.abspath(path)
    for base in (_cwd, _script_dir):
        if base and absolute.startswith(os.path.join(base, "")):
            return absolute[len(os.path.join(base, "")) :].replace(os.sep, "/")
    return "/".join(absolute.split(os.sep)[-2:])


def user_file(filename: str) -> str | None:
    """Relative name of a file of the user's; None for library code and generated code."""
    if filename not in _known:
        _known[filename] = _classify(filename)
    return _known[filename]


def _classify(filename: str) -> str | None:
    if not filename or filename.startswith("<"):
        return None
    path = os.path.abspath(filename)
    inside = os.path.join(os.sep, "")
    if "site-packages" + inside in path or "dist-packages" + inside in path or path.startswith(os.path.join(_ours, "")):
        return None
    if os.path.realpath(path).startswith(_library) or "torchinductor_" in path or "__autograph_generated_file" in path:
        return None
    return relative(filename)


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame in user code, from the caller's caller outwards."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return frame


def here() -> str | None:
    """'train.py:12', or None when no user code is on the stack."""
    frame = user_frame(2)
    if frame is None:
        return None
    return f"{user_file(frame.f_code.co_filename)}:{frame.f_lineno}"


def key() -> tuple[CodeType, int] | None:
    """Identity of the user's call: code object and line."""
    frame = user_frame(2)
    return None if frame is None else (frame.f_code, frame.f_lineno)


def of_code(function: object) -> str | None:
    """'train.py:5': where a Python function is defined, None when it is not the user's."""
    code: CodeType | None = getattr(function, "__code__", None)
    name = None if code is None else user_file(code.co_filename)
    return None if name is None or code is None else f"{name}:{code.co_firstlineno}"
