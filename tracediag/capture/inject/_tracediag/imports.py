"""Act when a module has been executed (not when it is looked for: frameworks probe for each other), and change nothing else."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], Any]

_after: dict[str, list[Action]] = {}
_before: dict[str, list[Action]] = {}


def after(name: str, action: Action) -> None:
    """Run `action(module)` once, right after the module `name` has been executed (now, when it already has been)."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        _after.setdefault(name, []).append(action)


def before(name: str, action: Action) -> None:
    """Run `action(module)` once, right before the module `name` is executed (never, when it already has been)."""
    _before.setdefault(name, []).append(action)


def activate() -> None:
    """Put the finder in front of the others, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: asks the finders behind it, and arms the loader of a watched module."""

    def __init__(self) -> None:
        self._busy: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if (fullname not in _after and fullname not in _before) or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = self._search(fullname, path, target)
        finally:
            self._busy.discard(fullname)
        if spec is not None and spec.loader is not None:
            _arm(spec.loader, fullname)
        return spec

    def _search(self, fullname: str, path: Any, target: Any) -> importlib.machinery.ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None


def _arm(loader: Any, name: str) -> None:
    """Shadow `exec_module` on this loader object until the module is executed; the loader is then as it was."""
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        try:
            del loader.exec_module
        except AttributeError:  # a loader that is armed twice: looked for, then imported
            pass
        for action in _before.pop(name, ()):
            action(module)
        original(module)
        for action in _after.pop(name, ()):
            action(module)

    try:
        loader.exec_module = exec_module
    except (AttributeError, TypeError):  # a loader that takes no attributes: this module cannot be watched
        pass
