"""Calls that a script makes once and that every step pays for (a debugging mode, the number of threads): the user's line of each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import callsite, guard

LINES: dict[str, str] = {}
"""Name of the setting -> "train.py:12"."""


def flags() -> dict[str, str]:
    """Rows of `flags`: `<setting>.source`."""
    return {f"{name}.source": line for name, line in LINES.items()}


def always(*_: Any, **__: Any) -> bool:
    """Every call switches the setting on."""
    return True


def watch_function(owner: Any, name: str, setting: str, is_on: Callable[..., Any] = always) -> None:
    """Replace a function of a module or class by one that notes where it was called last with arguments for which `is_on` holds; nothing
    where there is no such function."""
    original = getattr(owner, name, None)
    if original is None:
        return
    note = _noting(setting, is_on)

    @functools.wraps(original)
    def switch(*args: Any, **kwds: Any) -> Any:
        note(*args, **kwds)
        return original(*args, **kwds)

    if not isinstance(owner, type):
        switch.__module__ = owner.__name__  # pools of processes get it by this name
    setattr(owner, name, switch)


def watch_class(cls: Any, setting: str, is_on: Callable[..., Any] = always) -> None:
    """Note where an object of `cls` was first made with such arguments: those that stand for a mode are made again in every step, which
    must cost nothing. `__new__`, because a warning that `__init__` gives names the line of its caller."""
    note = _noting(setting, is_on)

    def __new__(kind: Any, *args: Any, **kwds: Any) -> Any:  # noqa: N807 (stands in for the class attribute of this name)
        if setting not in LINES:
            note(*args, **kwds)
        return object.__new__(kind)

    if cls.__new__ is object.__new__:
        cls.__new__ = staticmethod(__new__)


def _noting(setting: str, is_on: Callable[..., Any]) -> Callable[..., None]:
    @guard.quiet
    def note(*args: Any, **kwds: Any) -> None:
        line = callsite.here() if is_on(*args, **kwds) else None
        if line is not None:
            LINES[setting] = line

    return note
