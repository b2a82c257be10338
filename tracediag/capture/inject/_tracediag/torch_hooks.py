"""Patches on torch's classes that see training happen: optimizer steps, backward passes, calls of root modules.

All are attributes of classes or modules, never of instances, so that pickling and copying see nothing of them, and they name the
original in `_torchdynamo_inline`, so that dynamo traces the original instead of them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Protocol

from . import guard, switches


class Listener(Protocol):
    """What the patches report to (the torch adapter)."""

    def optimizer_made(self) -> None:
        """An optimizer has been constructed."""

    def optimizer_stepped(self, optimizer: Any) -> None:
        """`optimizer.step()` has returned."""

    def backward_begins(self) -> None:
        """A backward pass starts."""

    def backward_ended(self, weak: bool) -> None:
        """A backward pass has ended. weak: it was `torch.autograd.grad`."""

    def root_called(self, module: Any, args: Any, kwargs: Any) -> None:
        """A module that lies in no other running module is called."""

    def root_returned(self, module: Any, result: Any) -> None:
        """It has returned `result`."""


def patch_optimizers(torch: Any, listener: Listener) -> None:
    """See the end of `step` of every optimizer, after torch's own profiler range has been closed (a post hook runs inside it)."""
    base = torch.optim.Optimizer
    original = base.profile_hook_step
    made, stepped = guard.quiet(listener.optimizer_made), guard.quiet(listener.optimizer_stepped)
    depth = 0

    def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
        inner = original(function)

        @functools.wraps(inner)
        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = inner(*args, **kwargs)
            finally:
                depth -= 1
            if not depth and args:
                stepped(args[0])
            return result

        step._torchdynamo_inline = inner  # type: ignore[attr-defined]
        return step

    base.profile_hook_step = staticmethod(profile_hook_step)
    _wrap(base, "_patch_step_function", lambda inner: _then(inner, made))


def _then(function: Callable[..., Any], action: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        action()
        return result

    return wrapped


def _wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    wrapper = make(original)
    wrapper._torchdynamo_inline = original  # type: ignore[attr-defined]
    setattr(owner, name, wrapper)


def patch_backward(torch: Any, listener: Listener) -> None:
    """See backward passes: `Tensor.backward` goes through `torch.autograd.backward`; `torch.autograd.grad` is told as a weak one."""
    begins, ended = guard.quiet(listener.backward_begins), guard.quiet(listener.backward_ended)
    depth = 0

    def make(original: Callable[..., Any], weak: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if depth:  # called again from inside: checkpointing
                return original(*args, **kwargs)
            begins()
            depth = 1
            try:
                result = original(*args, **kwargs)
            finally:
                depth = 0
            if not (weak and kwargs.get("create_graph")):
                ended(weak)
            return result

        return backward

    _wrap(torch.autograd, "backward", lambda original: make(original, False))
    _wrap(torch.autograd, "grad", lambda original: make(original, True))


def patch_switches(torch: Any, _: Listener) -> None:
    """Note the lines that switch anomaly detection on and that set the number of threads."""
    switches.watch_function(torch, "set_num_threads", "torch.num_threads")
    switches.watch_class(torch.autograd.detect_anomaly, "torch.anomaly_mode")
    switches.watch_class(torch.autograd.set_detect_anomaly, "torch.anomaly_mode", lambda mode, *_, **__: mode)


class ModuleCalls:
    """See calls of root modules. A patch of `Module.__call__`, in place only while no module runs, finds them; then their own
    classes carry the patch."""

    def __init__(self, torch: Any, listener: Listener) -> None:
        self._torch = torch
        self._base = torch.nn.Module
        self._original = self._base.__call__
        self._called, self._returned = guard.quiet(listener.root_called), guard.quiet(listener.root_returned)
        self._patched: dict[type, tuple[Any, Any]] = {}  # class -> (our wrapper, what its own dict held or None)
        self._running = False
        self._main = threading.get_ident()
        self._tracing: Callable[[], bool] = torch._C._is_tracing  # torch.jit.trace runs the module: it is to see the original only
        self.searching = False
        self._finder = self._make_finder()

    def search(self, on: bool) -> None:
        """Start or stop looking for further root modules."""
        self.searching = on
        self._arm(on)

    def _arm(self, on: bool) -> None:
        current = self._base.__dict__.get("__call__")
        if on and current is self._original:
            self._base.__call__ = self._finder
        elif not on and current is self._finder:
            self._base.__call__ = self._original

    def _make_finder(self) -> Callable[..., Any]:
        original = self._original

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 (stands in for the class attribute of this name)
            if self._running or threading.get_ident() != self._main or self._tracing():
                return original(module, *args, **kwargs)
            self._arm(False)
            try:
                self.patch(type(module))
                return module(*args, **kwargs)
            finally:
                if self.searching:
                    self._arm(True)

        __call__._torchdynamo_inline = original  # type: ignore[attr-defined]
        return __call__

    @guard.quiet
    def patch(self, cls: type) -> None:
        """Put the patch on one class (not on script modules, whose classes are generated)."""
        if cls in self._patched or issubclass(cls, self._torch.jit.ScriptModule):
            return
        own = cls.__dict__.get("__call__")
        wrapper = self._make_wrapper(cls, own)
        self._patched[cls] = (wrapper, own)
        cls.__call__ = wrapper  # type: ignore[method-assign]

    def _make_wrapper(self, cls: Any, own: Any) -> Callable[..., Any]:
        called, returned = self._called, self._returned

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            target = super(cls, module).__call__ if own is None else own.__get__(module, cls)  # type: ignore[misc]
            if self._running or threading.get_ident() != self._main or self._tracing():
                return target(*args, **kwargs)
            self._running = True
            called(module, args, kwargs)
            try:
                result = target(*args, **kwargs)
            finally:
                self._running = False
            returned(module, result)
            return result

        __call__._torchdynamo_inline = own or self._original  # type: ignore[attr-defined]
        return __call__

    def leave(self) -> None:
        """Take every patch away: dynamo is about to trace modules."""
        self.search(False)
        for cls, (wrapper, own) in self._patched.items():
            if cls.__dict__.get("__call__") is not wrapper:
                continue  # somebody patched it after us: theirs calls ours, which only passes on
            if own is None:
                del cls.__call__
            else:
                cls.__call__ = own  # type: ignore[method-assign]
        self._patched.clear()
