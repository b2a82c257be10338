"""Keras 3 and tf_keras: optimizer updates (step ends of eager loops, gradient types), weights, evaluation phases.

With the TensorFlow backend it feeds the TensorFlow adapter; with the torch backend it tells the recorder itself where steps end.
"""

from __future__ import annotations

import functools
import sys
import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import callsite, guard, switches, tf_sources
from .cycle import Cycle
from .keras_registry import Registry
from .ranges import RANGES

if TYPE_CHECKING:
    from collections.abc import Callable

REGISTRY = Registry()
LOOKED_AT = 2  # updates of one optimizer whose gradients are looked at


class Hooks:
    """State of the hooks of one Keras module. backend: tensorflow | torch | ..."""

    def __init__(self, recorder: Any, backend: str) -> None:
        self.recorder, self.backend = recorder, backend
        self.local = threading.local()
        self.cycle = Cycle()
        self.evaluations = 0
        self.habit = Habit()

    @property
    def watch(self) -> Any:
        """State of the TensorFlow hooks (set later than ours: TensorFlow imports Keras), None with another backend."""
        return getattr(sys.modules.get("_tracediag.tf_adapter"), "WATCH", None) if self.backend == "tensorflow" else None

    @guard.quiet
    def applied(self, optimizer: Any, gradients: Any, variables: Any) -> None:
        """An update has ended."""
        record = REGISTRY.optimizer(optimizer, self._line)
        if record.calls < LOOKED_AT and gradients is not None and variables is not None:
            REGISTRY.applied(record, gradients, variables)
        watch = self.watch
        if self.backend == "torch":
            record.calls += 1
            now = perf_counter_ns()
            for end in self.cycle.event(id(optimizer), now):
                self.recorder.boundary("optimizer", "torch", at_ns=None if end == now else end)
        elif watch is not None and not watch.mark(updates=True) and watch.eager():
            record.calls += 1
            watch.event("optimizer", id(optimizer))

    def _line(self) -> str | None:
        return tf_sources.here(getattr(getattr(self.watch, "private", None), "stack_module", None))

    @guard.quiet
    def evaluation(self, begins: bool, of_fit: bool) -> None:
        """An evaluation or prediction begins or ends: a phase of its own, unless one belongs to every step. of_fit: `fit` itself
        evaluates, at the end of an epoch (which may be one step long)."""
        watch = self.watch
        training = watch.any_training if watch is not None else bool(REGISTRY.optimizers)
        self.evaluations += 1 if begins else -1
        if not training or self.evaluations != (1 if begins else 0):
            return
        if begins:
            if of_fit or not self.habit.begins(self.recorder.open_step, perf_counter_ns()):
                self.recorder.pause()
        elif self.habit.part_of_step and not of_fit:
            self.recorder.evaluated(self.habit.ends(perf_counter_ns()))
        else:
            if watch is not None:
                watch.counters.skip()
            self.recorder.resume()


class Habit:
    """Whether evaluations belong to the steps: each of the last two had one."""

    def __init__(self) -> None:
        self.part_of_step = False
        self._start_ns = 0
        self._steps: list[int] = []

    def begins(self, step: int, now: int) -> bool:
        """An evaluation begins in the open step `step`; returns whether it is part of it."""
        self._start_ns = now
        self.part_of_step = step >= 2 and {step - 1, step - 2} <= set(self._steps)
        if step not in self._steps:
            self._steps = [*self._steps[-2:], step]
        return self.part_of_step

    def ends(self, now: int) -> int:
        """It ends; returns its ns."""
        return now - self._start_ns


def install(recorder: Any, module: Any) -> None:
    """Called at the end of the import of keras or tf_keras."""
    backend = _backend(module)
    hooks = Hooks(recorder, backend)
    for cls in (getattr(module.optimizers, "Optimizer", None), getattr(getattr(module.optimizers, "legacy", None), "Optimizer", None)):
        _patch_optimizer(hooks, cls)
    _patch_weights(getattr(module.layers, "Layer", None))
    _patch_tables(getattr(module.layers, "Embedding", None))
    for name in ("evaluate", "predict"):
        _patch_evaluation(hooks, getattr(module, "Model", None), name)
    _patch_compile(getattr(module, "Model", None))
    if backend == "torch":
        recorder.register(KerasFacts(module))


def _backend(module: Any) -> str:
    config = getattr(module, "config", None) or getattr(module, "backend", None)
    named = getattr(config, "backend", None)
    name = named() if callable(named) else "tensorflow"
    return str(name)


def _definer(cls: Any, name: str, first: bool = False) -> Any:
    """The class of the inheritance chain that defines a method: the most general one, or the first."""
    found = [base for base in getattr(cls, "__mro__", ()) if name in vars(base)]
    return None if not found else found[0 if first else -1]


def _compiling() -> bool:
    """torch.compile is tracing this code: hooks stay out of the graph."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and getattr(getattr(torch, "compiler", None), "is_compiling", bool)())


def _patch_optimizer(hooks: Hooks, cls: Any) -> None:
    apply, pairs = _definer(cls, "apply"), _definer(cls, "apply_gradients")
    if apply is not None:
        _wrap(hooks, apply, "apply", _of_apply)
    elif pairs is not None:
        _wrap(hooks, pairs, "apply_gradients", _of_pairs)


def _of_apply(optimizer: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any]:
    """(arguments to call with, gradients, variables) of Keras 3 `apply(grads, trainable_variables=None)`."""
    gradients = args[0] if args else kwds.get("grads")
    variables = args[1] if len(args) > 1 else kwds.get("trainable_variables")
    return args, gradients, variables


def _of_pairs(optimizer: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any]:
    """(arguments to call with, gradients, variables) of `apply_gradients(grads_and_vars)`, whose iterator is used up only once."""
    if not args:
        return args, None, None
    pairs = list(args[0])
    return (pairs, *args[1:]), [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _wrap(hooks: Hooks, cls: Any, name: str, arguments: Callable[..., Any]) -> None:
    original = getattr(cls, name)
    local = hooks.local
    if hasattr(original, "tracediag"):
        return

    @functools.wraps(original)
    def update(self: Any, *args: Any, **kwds: Any) -> Any:
        if getattr(local, "inside", False) or _compiling():
            return original(self, *args, **kwds)
        args, gradients, variables = arguments(self, args, kwds)
        local.inside = True
        opened = RANGES.open(RANGES.OPTIMIZER)
        try:
            result = original(self, *args, **kwds)
        finally:
            local.inside = False
            RANGES.close(opened)
        if variables is None:
            variables = getattr(self, "_trainable_variables", None)
        hooks.applied(self, gradients, variables)
        return result

    update.tracediag = True  # type: ignore[attr-defined]
    update.autograph_info__ = None  # type: ignore[attr-defined]  # AutoGraph leaves functions with this mark alone
    setattr(cls, name, update)


def _patch_weights(layer_class: Any) -> None:
    cls = _definer(layer_class, "add_weight")
    if cls is None:
        return
    original = cls.add_weight

    @guard.quiet
    def made(layer: Any, variable: Any, regularizer: Any) -> None:
        REGISTRY.weight(layer, variable, regularizer if regularizer is not None else getattr(variable, "regularizer", None))

    @functools.wraps(original)
    def add_weight(self: Any, *args: Any, **kwds: Any) -> Any:
        variable = original(self, *args, **kwds)
        made(self, variable, kwds.get("regularizer"))
        return variable

    add_weight.autograph_info__ = None  # type: ignore[attr-defined]
    cls.add_weight = add_weight


def _patch_tables(cls: Any) -> None:
    """Note where the layers are made that hold tables: inside `fit` their operators have no line but that of `fit`. `__new__`, because
    Keras looks at the arguments of `__init__` itself."""
    if cls is None:
        return
    original = cls.__new__
    plain = original is object.__new__

    @guard.quiet
    def made(layer: Any) -> None:
        REGISTRY.made(layer, callsite.here())

    def __new__(kind: Any, *args: Any, **kwds: Any) -> Any:  # noqa: N807 (stands in for the class attribute of this name)
        layer = original(kind) if plain else original(kind, *args, **kwds)
        made(layer)
        return layer

    cls.__new__ = staticmethod(__new__ if plain else functools.wraps(original)(__new__))


def _patch_evaluation(hooks: Hooks, model_class: Any, name: str) -> None:
    cls = _definer(model_class, name, first=True)
    if cls is None:
        return
    original = getattr(cls, name)

    @functools.wraps(original)
    def evaluation(self: Any, *args: Any, **kwds: Any) -> Any:
        of_fit = bool(kwds.get("_use_cached_eval_dataset"))
        hooks.evaluation(True, of_fit)
        try:
            return original(self, *args, **kwds)
        finally:
            hooks.evaluation(False, of_fit)

    evaluation.autograph_info__ = None  # type: ignore[attr-defined]
    setattr(cls, name, evaluation)


@guard.quiet
def _patch_compile(model_class: Any) -> None:
    """Note the line that asks for eager steps."""
    cls = _definer(model_class, "compile")
    if cls is not None:
        switches.watch_function(cls, "compile", "keras.run_eagerly", lambda *_, run_eagerly=False, **__: run_eagerly)


class KerasFacts:
    """Facts of Keras where it runs on another backend than TensorFlow: an adapter without windows."""

    framework = "keras"

    def __init__(self, module: Any) -> None:
        self._module = module

    def facts(self) -> dict[str, Any]:
        """Optimizers, versions and flags."""
        return {"optimizers": REGISTRY.optimizer_rows(), "versions": {"keras": self._module.__version__},
                "flags": {"keras.backend": _backend(self._module)}}  # fmt: skip
