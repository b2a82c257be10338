"""Calls of tf.function: which one is the training step, when it was traced and for how long, and a boundary when it ends.

A function is the training step when a gradient is taken or an optimizer applied while it is traced. Only the outermost call counts.
"""

from __future__ import annotations

import threading
import weakref
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import callsite, guard
from .cycle import Cycle
from .tf_counters import Counters
from .tf_graphs import updates_trainable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .tf_private import Private
    from .tf_shapes import Shapes

EVALUATION = 3  # calls in a row of a function that takes no part in training: an evaluation phase
MOST_GRADIENTS = 20  # gradients without an update after which updates are over
NEW_GRAPHS = 100  # latest graphs among which those of a fresh trace are


class Record:
    """What is known of one tf.function."""

    def __init__(self) -> None:
        self.calls = 0
        self.traced = 0  # tracings that were seen to happen in its calls
        self.row: dict[str, Any] | None = None  # of run.json, when it was last asked for
        self.gradient = False  # a gradient was taken in it
        self.updates = False  # an optimizer was applied in it, or a trainable variable assigned
        self.caller: str | None = None
        self.xla = False  # XLA was asked for, for it or for a function that it calls
        self.in_step = 0  # calls since the last boundary
        self.before = 0  # calls in the step before that

    def turn(self) -> bool:
        """A step has ended; returns whether the function was called in the last two."""
        self.before, self.in_step = self.in_step, 0
        return self.before > 0

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
        self.all_records: list[Record] = []  # also of functions that are gone
        self.graphs: list[Any] = []  # weak references to every FuncGraph, in order of creation
        self.training_seen: Callable[[], None] = lambda: None  # the first sign of training
        self.gradients_taken: Callable[[Any, Any], None] = lambda sources, gradients: None
        self.any_training = False
        self.started = False
        self.origin_ns = 0  # where the first step may have begun: the latest such place before the first event
        self.waiting = True  # for the first event
        self.calls = 0  # boundaries, for steps_per_call
        self.told_ns: int | None = None  # end of the step that is being told
        self._aside: list[Record] = []  # functions without part in training that were called lately
        self.evaluating = False
        self.strong = Cycle()
        self.strong_kind = "function"
        self.weak = -1  # gradients taken since the last update, -1: no update seen
        self.cycles = {"function": self.strong, "optimizer": self.strong, "backward": Cycle(), "forward": Cycle()}

    # -- boundaries --

    def event(self, kind: str, key: Hashable) -> None:
        """A function call, optimizer update or gradient has ended outside any function."""
        now, cycle = perf_counter_ns(), self.cycles[kind]
        if kind == "backward" and self._is_part():
            return
        self.waiting = False
        self.any_training = kind != "forward"
        if cycle is self.strong:
            self.strong_kind, self.weak = kind, 0
        if cycle.end is None:
            self.counters.keep(now)
        self._tell(kind, cycle.event(key, now), now)

    def _is_part(self) -> bool:
        """A gradient is part of a step that an update ends, unless there have been no updates for long."""
        if self.weak < 0:
            return False
        self.weak += 1
        return self.weak <= MOST_GRADIENTS

    def _tell(self, kind: str, ends: list[int], now: int) -> None:
        for end in ends:
            if not self.started:
                self._start()
            self.calls += 1
            self.told_ns = end
            self.recorder.boundary(kind, "tensorflow", at_ns=None if end == now else end)
            self.told_ns = None
        if ends:
            if self._aside:
                self._aside = [record for record in self._aside if record.turn()]
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
        for kind in ("forward", "backward", self.strong_kind):
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

    @guard.quiet
    def concrete(self, function: Any) -> None:
        """A concrete function is about to be called: at first sight its graph tells whether it trains."""
        if function not in self.records:
            self.record(function).updates = updates_trainable([function.graph])
        if self.evaluating:
            self.before_call(function)

    def record(self, function: Any) -> Record:
        """The record of a function."""
        found = self.records.get(function)
        if found is None:
            found = self.records[function] = Record()
            self.all_records.append(found)
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
            record.traced += 1
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
        if record.in_step == 0 and record not in self._aside:
            self._aside.append(record)
        record.in_step += 1
        if record.in_step == EVALUATION and record.before == 0 and not self.evaluating:
            self.evaluating = True
            self.recorder.pause()

    @guard.quiet
    def nested(self, outermost: Any, function: Any) -> None:
        """`function` is called (so: traced) inside `outermost`."""
        if uses_xla(function):
            self.record(outermost).xla = True

    @guard.quiet
    def before_call(self, function: Any) -> None:
        """An outermost call begins in an evaluation phase."""
        record = self.records.get(function)
        if record is not None and record.training:
            self.evaluating = False
            self.counters.skip()
            self.recorder.resume()


def uses_xla(function: Any) -> bool:
    """jit_compile was asked for."""
    return bool(getattr(function, "_jit_compile", False))
