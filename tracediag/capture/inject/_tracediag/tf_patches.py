"""Wrap TensorFlow's classes so that a `Watch` hears of calls, tracings, graphs and gradients."""

from __future__ import annotations

import functools
import sys
import weakref
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import guard, switches
from .ranges import RANGES

if TYPE_CHECKING:
    from .tf_functions import Watch

NOT_COUNTED = ("initialize_variables", "fn_with_cond")
GRAPHS_KEPT = 2000
LOOKED_AT = 2  # gradients taken at one line that are looked at


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
        if watch.evaluating:
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


def patch_concrete(watch: Watch) -> None:
    """Wrap ConcreteFunction.__call__: scripts that call what get_concrete_function gave them."""
    cls = watch.private.concrete_class
    if cls is None:
        return
    original = cls.__call__
    local = watch.local

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwds: Any) -> Any:  # noqa: N807
        if getattr(local, "stack", None):
            return original(self, *args, **kwds)
        start = perf_counter_ns()
        if not watch.started:
            watch.begins(start)
        watch.concrete(self)
        result = original(self, *args, **kwds)
        watch.called(self, args, kwds, start, watch.counters.tracings, watch.counters.compile_ns)
        return result

    __call__.autograph_info__ = None  # type: ignore[attr-defined]
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
        opened = RANGES.open(RANGES.BACKWARD)
        try:
            result = gradient(self, *args, **kwds)
        finally:
            RANGES.close(opened)
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


@guard.quiet
def patch_switches(tensorflow: Any) -> None:
    """Note the lines that set the number of threads, switch checks of numbers on, or functions off."""
    switches.watch_function(tensorflow.config.threading, "set_intra_op_parallelism_threads", "tf.intra_op_threads")
    switches.watch_function(tensorflow.debugging, "enable_check_numerics", "tf.check_numerics")
    switches.watch_function(tensorflow.config, "run_functions_eagerly", "tf.run_functions_eagerly", lambda run_eagerly: run_eagerly)
