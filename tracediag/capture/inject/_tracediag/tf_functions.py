"""Calls of tf.function: which one is the training step, when it was traced and for how long, and a boundary when it ends.

A function is the training step when a gradient is taken or an optimizer applied while it is traced. Only the outermost call counts.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Hashable
from time import perf_counter_ns
from typing import Any

from . import callsite, guard
from .cycle import Cycle
from .tf_counters import Counters
from .tf_graphs import updates_trainable
from .tf_private import Private
from .tf_shapes import Shapes

NOT_COUNTED = ("initialize_variables", "fn_with_cond")
EVALUATION = 3  # calls in a row of a function that takes no part in training: an evaluation phase
GRAPHS_KEPT = 2000
LOOKED_AT = 2  # gradients taken at one line that are looked at
NEW_GRAPHS = 100  # latest graphs among which those of a fresh trace are


class Record:
    """What is known of one tf.function."""

    def __init__(self) -> None:
        self.calls = 0
        self.gradient = False  # a gradient was taken in it
        self.updates = False  # an optimizer was applied in it, or a trainable variable assigned
        self.caller: str | None = None
        self.xla = False  # XLA was asked for, for it or for a function that it calls
        self.in_step = 0  # calls since the last boundary
        self.before = 0  # calls in the step before that

    @property
    def training(self) -> bool:
        """It does the work of a training step."""
        return self.gradient or self.updates


class Watch:
    """State of the hooks: which functions run, what was seen of them, and where steps end."""

    def __init__(self, private: Private, recorder: Any, eager: Callable[[], bool], shapes: Shapes) -> None:
        self.private, self.recorder, self.eager, self.shapes = private, recorder, eager, shapes
        self.counters = Counters(shapes)
        self.local = threading.local()
        self.current: list[Any] = []  # stack of the outermost call that runs now, for replica threads that trace for it
        self.records: weakref.WeakKeyDictionary[Any, Record] = weakref.WeakKeyDictionary()
        self.graphs: list[Any] = []  # weak references to every FuncGraph, in order of creation
        self.training_seen: Callable[[], None] = lambda: None  # the first sign of training
        self.gradients_taken: Callable[[Any, Any], None] = lambda sources, gradients: None
        self.any_training = False
        self.started = False
        self.origin_ns = 0  # where the first step may have begun
        self.calls = 0  # boundaries, for steps_per_call
        self.told_ns: int | None = None  # end of the step that is being told, when it is told late
        self._evaluating = False
        strong = Cycle()
        self.cycles = {"function": strong, "optimizer": strong, "backward": Cycle(), "forward": Cycle()}

    # -- boundaries --

    def event(self, kind: str, key: Hashable) -> None:
        """A function call, optimizer update or gradient has ended outside any function."""
        now, cycle = perf_counter_ns(), self.cycles[kind]
        if kind != "forward":
            self.any_training = True
        if cycle.end is None:
            self.counters.keep(now)
        self._tell(kind, cycle.event(key, now), now)

    def _tell(self, kind: str, ends: list[int], now: int) -> None:
        for end in ends:
            if not self.started:
                self._start()
            self.calls += 1
            self.told_ns = None if end == now else end
            self.recorder.boundary(kind, "tensorflow", at_ns=self.told_ns)
            self.told_ns = None
        if ends:
            for record in self.records.values():
                record.before, record.in_step = record.in_step, 0
            if self.cycles[kind].end is not None:
                self.counters.forget()

    def _start(self) -> None:
        """The first step has ended: its clock started where it may have begun."""
        self.started = True
        if not self.recorder.series.started:
            self.training_seen()
            self.recorder.activity()
            if self.origin_ns:
                self.recorder.series.start(self.origin_ns)

    def finish(self) -> None:
        """The script is over: tell the end of a round that never came again."""
        for kind in ("forward", "backward", "function"):
            self._tell(kind, self.cycles[kind].flush(), 0)

    def begins(self, now: int | None = None) -> None:
        """Something that a first step may begin with happens now: a batch is fetched, a tape opened, a function called."""
        if not self.origin_ns:
            self.origin_ns = now or perf_counter_ns()

    # -- what happens while a function is traced --

    def stack(self) -> list[Any]:
        """Functions that are running on this thread, outermost first (or those a replica thread traces for)."""
        own: list[Any] = getattr(self.local, "stack", None) or []
        return own or ([] if self.eager() else self.current)

    def mark(self, gradient: bool = False, updates: bool = False) -> bool:
        """A gradient or an update happened: inside functions they are marked and True is returned."""
        stack = self.stack()
        if not self.started:
            self.training_seen()
        for function in stack:
            record = self.record(function)
            record.gradient |= gradient
            record.updates |= updates
        return bool(stack)

    def record(self, function: Any) -> Record:
        """The record of a function."""
        found = self.records.get(function)
        if found is None:
            found = self.records[function] = Record()
        return found

    # -- after an outermost call --

    @guard.quiet
    def called(self, function: Any, args: Any, kwds: Any, start_ns: int, tracings: int, before_ns: int) -> None:
        """An outermost call of `function` has returned."""
        if not self.eager():
            return
        record = self.record(function)
        record.calls += 1
        if record.caller is None:
            record.caller = callsite.here()
        if self.counters.tracings != tracings:
            self._traced(record, function, start_ns, before_ns)
        if record.training:
            self.shapes.of_call(args, kwds)
            self.event("function" if record.updates else "backward", id(function))
        elif not self.any_training:
            self.shapes.of_call(args, kwds)
            self.event("forward", id(function))
        else:
            self._maybe_evaluation(record)

    def _traced(self, record: Record, function: Any, start_ns: int, before_ns: int) -> None:
        """Tracing happened in the call: XLA compiles after it, inside the call, so the whole call counts where XLA is asked for."""
        if record.gradient and not record.updates:
            graphs = [ref() for ref in self.graphs[-NEW_GRAPHS:]]
            record.updates = updates_trainable([graph for graph in graphs if graph is not None])
        record.xla |= uses_xla(function)
        if record.xla:
            self.counters.compiles += 1
            self.counters.compile_ns = before_ns + perf_counter_ns() - start_ns

    def _maybe_evaluation(self, record: Record) -> None:
        record.in_step += 1
        if record.in_step == EVALUATION and record.before == 0 and not self._evaluating:
            self._evaluating = True
            self.recorder.pause()

    @guard.quiet
    def nested(self, outermost: Any, function: Any) -> None:
        """`function` is called (so: traced) inside `outermost`."""
        if uses_xla(function):
            self.record(outermost).xla = True

    @guard.quiet
    def before_call(self, function: Any) -> None:
        """An outermost call begins."""
        if self._evaluating:
            record = self.records.get(function)
            if record is not None and record.training:
                self._evaluating = False
                self.counters.skip()
                self.recorder.resume()


def uses_xla(function: Any) -> bool:
    """jit_compile was asked for."""
    return bool(getattr(function, "_jit_compile", False))


def patch_calls(watch: Watch) -> None:
    """Wrap Function.__call__ on its class."""
    cls = watch.private.function_class
    if cls is None:
        return
    original = cls.__call__
    counters = watch.counters
    local, called, before, nested = watch.local, watch.called, watch.before_call, watch.nested

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwds: Any) -> Any:  # noqa: N807
        stack = getattr(local, "stack", None)
        if stack is None:
            stack = local.stack = []
        if self._run_functions_eagerly:
            return original(self, *args, **kwds)
        if stack:
            nested(stack[0], self)
            stack.append(self)
            try:
                return original(self, *args, **kwds)
            finally:
                stack.pop()
        start, tracings, before_ns = perf_counter_ns(), counters.tracings, counters.compile_ns
        if not watch.started:
            watch.begins(start)
        before(self)
        stack.append(self)
        watch.current = stack
        try:
            result = original(self, *args, **kwds)
        finally:
            stack.pop()
        called(self, args, kwds, start, tracings, before_ns)
        return result

    __call__.autograph_info__ = None  # type: ignore[attr-defined]  # AutoGraph leaves functions with this mark alone
    cls.__call__ = __call__


def patch_tracing(watch: Watch) -> None:
    """Count and time tracings; remember the graphs made."""
    module, graph_class, local = watch.private.graph_module, watch.private.graph_class, watch.local
    if module is not None:
        original = module.func_graph_from_py_func

        @functools.wraps(original)
        def func_graph_from_py_func(name: Any, *args: Any, **kwds: Any) -> Any:
            if not getattr(local, "stack", None) or getattr(local, "tracing", False) or str(name) in NOT_COUNTED:
                return original(name, *args, **kwds)
            local.tracing, start = True, perf_counter_ns()
            try:
                return original(name, *args, **kwds)
            finally:
                local.tracing = False
                watch.counters.tracings += 1
                watch.counters.compile_ns += perf_counter_ns() - start

        module.func_graph_from_py_func = func_graph_from_py_func
    if graph_class is not None:
        init = graph_class.__init__

        @functools.wraps(init)
        def __init__(self: Any, *args: Any, **kwds: Any) -> None:  # noqa: N807
            init(self, *args, **kwds)
            watch.graphs.append(weakref.ref(self))
            if len(watch.graphs) > GRAPHS_KEPT:
                watch.graphs[:] = [ref for ref in watch.graphs if ref() is not None][-GRAPHS_KEPT // 2 :]

        graph_class.__init__ = __init__


def patch_gradients(watch: Watch, tape_class: Any) -> None:
    """Wrap GradientTape.gradient (marks functions, ends steps of bare eager loops) and its __enter__ (where a step may begin)."""
    gradient, enter = tape_class.gradient, tape_class.__enter__

    sites: dict[Any, int] = {}

    @guard.quiet
    def taken(caller: Any, sources: Any, gradients: Any) -> None:
        site = (caller.f_code, caller.f_lineno)
        looks = sites[site] = sites.get(site, 0) + 1
        if looks <= LOOKED_AT:
            watch.gradients_taken(sources, gradients)
        if not watch.mark(gradient=True) and watch.eager():
            watch.event("backward", site)

    @functools.wraps(gradient)
    def wrapped(self: Any, *args: Any, **kwds: Any) -> Any:
        result = gradient(self, *args, **kwds)
        taken(sys._getframe(1), args[1] if len(args) > 1 else kwds.get("sources"), result)
        return result

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:  # noqa: N807
        if not watch.started:
            watch.begins()
        return enter(self)

    wrapped.autograph_info__ = None  # type: ignore[attr-defined]
    __enter__.autograph_info__ = None  # type: ignore[attr-defined]
    tape_class.gradient, tape_class.__enter__ = wrapped, __enter__
