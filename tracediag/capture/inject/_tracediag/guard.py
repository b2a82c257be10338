"""Keep our own errors out of the user's script: catch them at the outer edge of a hook, note them, and go on without it."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

NOTES: list[dict[str, str]] = []
"""Health notes of the capture itself, in order, one per id."""

EFFECT = "Facts that this hook would have given are missing."


def note(ident: str, level: str, message: str, effect: str = EFFECT) -> None:
    """Add a health note once per `ident`. level: info|warning|error."""
    if all(known["id"] != ident for known in NOTES):
        NOTES.append({"id": ident, "level": level, "message": message, "effect": effect})


def failed(where: str) -> None:
    """Note the exception that is being handled as a failure of the hook `where` (no paths: the last frame's file name only)."""
    lines = traceback.format_exc(limit=-1).strip().splitlines()
    frame = lines[1].strip().rsplit("/", 1)[-1] if len(lines) > 2 else ""
    note("hook-failed-" + where, "warning", f"the hook {where} failed and was switched off: {lines[-1][:300]} ({frame[:120]})")


def quiet(function: F) -> F:
    """Decorator: an exception (not an exit) inside becomes a note, the result None, and the function does nothing from then on."""
    dead = False

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        nonlocal dead
        if dead:
            return None
        try:
            return function(*args, **kwargs)
        except Exception:  # the outer edge of a hook: nothing of ours may reach the user's script
            dead = True
            failed(function.__qualname__)
            return None

    return guarded  # type: ignore[return-value]
