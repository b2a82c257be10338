"""The adapter of torch: turns what the patches see into boundaries, windows and facts."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from . import callsite, guard, imports
from .cycle import Cycle
from .lines import LineMarks
from .recorder import Recorder
from .steps import merge_samples
from .subnormals import Subnormals
from .torch_dynamo import Dynamo
from .torch_facts import gather
from .torch_hookcount import HookCount
from .torch_hooks import ModuleCalls, patch_backward, patch_optimizers, patch_switches
from .torch_loaders import Loaders
from .torch_state import Grads, Memory
from .torch_values import StepValues
from .torch_window import IdleWindow, Profiler

SEARCH_STEPS = 4  # steps after which no further root modules are looked for
FORWARD_SEARCH = 64
ASIDE_FROM = 48  # steps after which ends of steps may be put aside; every one of the first is looked at
GRAD_STEPS = 3  # steps after which the gradients of parameters are looked at (and again when a window closes)


def install(recorder: Recorder, torch: Any) -> None:
    """Hook torch, which has just been imported, and prime its profiler."""
    adapter = TorchAdapter(recorder, torch)
    recorder.register(adapter)
    adapter.hook()
    adapter.prime()


class TorchAdapter:
    """See `recorder.Adapter`; the listener of the patches in `torch_hooks`."""

    framework = "torch"

    def __init__(self, recorder: Recorder, torch: Any) -> None:
        self.recorder = recorder
        self.torch = torch
        self.profiler = Profiler(torch, recorder.config)
        self.idle = IdleWindow(self.profiler)
        self.loaders = Loaders(self.training_seen)
        self.dynamo = Dynamo()
        self.calls = ModuleCalls(torch, self)
        self.lines = LineMarks(torch)
        self.optimizers: list[dict[str, Any]] = []
        self.roots: list[weakref.ReferenceType[Any]] = []
        self.grads = Grads(torch)
        self.memory = Memory(torch, self.profiler)
        self.values = StepValues(torch, self.loaders, self.dynamo, self.memory)
        self.hook_count = HookCount()
        self.subnormals = Subnormals(torch, self._unrecorded)
        self._grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self.sites: dict[tuple[str, str], int] = {}  # (what, file:line) -> calls noted
        self.loose: list[dict[str, Any]] = []  # rows of tensors outside modules and optimizers that once had a gradient
        self.autocast = False
        self._optimizer_index: dict[int, int] = {}
        self._root_ids: dict[int, int] = {}
        self._cycles = {kind: Cycle() for kind in ("forward", "backward", "optimizer")}
        self._trained = False
        self._eval_calls, self._eval_before = 0, [0, 0]
        self._steps = 0
        self._pending: dict[str, Any] = {}
        self._late = self._told_of_compiling = False
        self._window_start = (0, 0)

    def hook(self) -> None:
        """Put every patch in place; one that fails is noted and left out."""
        for patch in (patch_optimizers, patch_backward, patch_switches):
            try:
                patch(self.torch, self)
            except Exception:  # another version of torch may lack what is patched: record without it
                guard.failed(patch.__name__)
        imports.after("torch.utils.data.dataloader", guard.quiet(self.loaders.install))
        imports.before("torch._dynamo", lambda module: self.calls.search(False))
        imports.after("torch._dynamo", lambda module: self._search())
        self.dynamo.watch(self.torch, self.compile_asked)
        self.calls.search(True)
        self.profiler.yield_to_own(self._own_profiler)

    def prime(self) -> None:
        """Prime the profiler, then record until training is seen."""
        try:
            self.profiler.prime()
            self.idle.start(f"rank{self.recorder.config.rank}")
        except Exception:  # a torch without a usable profiler: steps are still timed
            guard.failed("prime")

    def training_seen(self) -> None:
        """The first sign of training."""
        if self.idle.state != "discarded":
            self.idle.discard()
        self.recorder.activity()

    def optimizer_made(self) -> None:
        """An optimizer exists: steps should end with it."""
        self.recorder.aside.settle()
        self.training_seen()
        self.recorder.expect("optimizer", "torch")

    def optimizer_stepped(self, optimizer: Any) -> None:
        """`optimizer.step()` has returned."""
        now = perf_counter_ns()
        aside = self.recorder.aside
        if aside.owner is not None and aside.thread == get_ident():
            if aside.owner == id(optimizer):  # nearly always
                aside.put(now, self.values.take())
                return
            aside.settle()
        index = self._optimizer_index.get(id(optimizer), -1)
        if index < 0 or self.optimizers[index]["ref"]() is not optimizer:
            index = self._optimizer_index[id(optimizer)] = len(self.optimizers)
            self.optimizers.append({"ref": weakref.ref(optimizer), "steps": 0, "source": callsite.here()})
            self._note_site("optimizer.step", self.optimizers[index]["source"])
        self.optimizers[index]["steps"] += 1
        self._trained = True
        self._boundaries("optimizer", index, now)

    def backward_begins(self) -> None:
        """A backward pass starts."""
        if not self.recorder.series.started:
            self.training_seen()
        if self.recorder.series.paused:
            self.recorder.resume()

    def backward_ended(self, weak: bool) -> None:
        """A backward pass has ended."""
        self._trained = True
        if self.optimizers or (weak and self.torch._C._len_torch_dispatch_stack()):
            return  # steps end with optimizers; a gradient taken under a dispatch mode is part of a compilation
        self._note_site("backward", callsite.here())
        self._boundaries("backward", (weak, callsite.key()), perf_counter_ns())

    def root_called(self, module: Any, args: Any, kwargs: Any) -> None:
        """A root module is called: note its inputs' shapes, and tell evaluation from training."""
        known = self.recorder.aside.owner is not None and id(module) in self._root_ids
        if known and not self.subnormals.inside and self._grad_enabled():  # nearly always
            self.values.passed(args, kwargs)
            return
        if self.idle.state != "discarded" or not self.recorder.series.started:
            self.training_seen()
        if id(module) not in self._root_ids:
            self._root_ids[id(module)] = len(self.roots)
            self.roots.append(weakref.ref(module))
            self._note_site("forward", callsite.here())
        if self._grad_enabled():
            self.recorder.resume()
            if module.training and not self._trained:
                self.recorder.expect("backward", "torch")
        elif self._trained:
            self.recorder.aside.settle()
            self._eval_calls += 1
            if self._steps >= 2 and not any(self._eval_before):
                self.recorder.pause()
        self.values.passed(args, kwargs)
        if self.subnormals.inside and not self.dynamo.asked:
            self.subnormals.passing(args)

    def root_returned(self, module: Any, result: Any = None) -> None:
        """It has returned: the end of a step where nothing but forward passes is run."""
        if self.subnormals.inside and not self.dynamo.asked:
            self.subnormals.passing(result)
        if not self._trained:
            self._boundaries("forward", id(module), perf_counter_ns())
        elif not self.autocast and self.recorder.aside.owner is None:
            self.autocast = bool(self.torch.is_autocast_enabled())

    def _boundaries(self, kind: str, key: Any, now: int) -> None:
        cycle = self._cycles[kind]
        if cycle.alone(key):
            self.recorder.boundary(kind, "torch")
            if kind == "optimizer" and self._steps >= ASIDE_FROM and not self.dynamo.asked:
                row = self.optimizers[key]
                self.recorder.aside.open(self.recorder.tracks["torch"], id(row["ref"]()), functools.partial(self._recall, row))
            return
        ends = cycle.event(key, now)
        if cycle.end is None:
            self._pending = merge_samples(self._pending, self.values.complete(self.values.take()))
        for end in ends:
            self._late = end != now
            self.recorder.boundary(kind, "torch", at_ns=end if self._late else None)

    def _recall(self, optimizer: dict[str, Any], raw: Any) -> None:
        optimizer["steps"] += 1
        self._pending, self._late = self.values.complete(raw), True

    def compile_asked(self) -> None:
        """`torch.compile` was called: no patch of ours may be in what dynamo traces."""
        self.recorder.aside.settle()
        self.calls.leave()
        handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if handler is not None and not self._told_of_compiling:
            self._told_of_compiling = True
            handler.register_start_callback(guard.quiet(lambda *_: self.training_seen()))
            sys.modules["torch._dynamo.trace_rules"].add("_tracediag")  # our frames are not to be compiled
        optimized = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
        if optimized is not None:
            self.calls.patch(optimized)

    def discard_idle(self) -> None:
        """Another framework trains: nothing of torch's since import is wanted."""
        self.idle.discard()

    def _search(self) -> None:
        if self._searching():
            self.calls.search(True)

    def _searching(self) -> bool:
        """Root modules may still turn up: few steps with a backward pass were seen (an RNN cell alone may be called many times)."""
        track = self.recorder.tracks.get("torch")
        rows = 0 if track is None else track.rows
        return not self.dynamo.asked and rows < (SEARCH_STEPS if self._trained else FORWARD_SEARCH)

    def _note_site(self, what: str, where: str | None) -> None:
        if where is not None:
            self.sites.setdefault((what, where), 0)

    @guard.quiet
    def _own_profiler(self) -> None:
        self.idle.discard()
        self.recorder.close_window("torch")
        guard.note("own-profiler", "warning", "the script runs a profiler of its own", "No window is recorded while it is on.")

    def ready(self) -> bool:
        """No profiler of the script's own is on."""
        return not getattr(self.torch.autograd.profiler, "_is_profiler_enabled", False)

    def start_window(self, stem: str, stacks: bool) -> None:
        """Start torch's profiler, with Python frames and the user's lines when `stacks`."""
        self.profiler.start(stem, stacks, self.recorder.config.memory and not stacks)
        self._window_start = self._steps, self.values.sequence_number()
        if stacks:
            self.lines.start()

    def events(self) -> int:
        """Estimate of the events recorded so far: each autograd node stands for some, each parameter for some more in the optimizer."""
        steps, sequence = self._window_start
        parameters = sum(len(group["params"]) for row in self.optimizers if row["ref"]() for group in row["ref"]().param_groups)
        per_parameter = 2 if self.profiler.device_seen else 25  # on a device, optimizers work on all parameters at once by default
        nodes = self.values.sequence_number() - sequence
        return int(14 * nodes + per_parameter * parameters * (self._steps - steps))

    def stop_window(self) -> list[str]:
        """Stop it and write the raw trace."""
        self.lines.stop()
        self.grads.look(self.optimizers, self.roots)
        self.profiler.stop()
        return self.profiler.save()

    def mark(self, step: int | None) -> None:
        """Close the open step annotation and open the next."""
        self.lines.close()
        self.profiler.mark(step)

    def sample(self) -> dict[str, Any]:
        """Values at the end of a step: when it is told late, those taken when it was."""
        values = merge_samples(self._pending, {} if self._late else self.values.complete(self.values.take()))
        self._pending, self._late = {}, False
        self._steps += 1
        self._eval_before[0], self._eval_before[1] = self._eval_before[1], self._eval_calls
        self._eval_calls = 0
        if self.calls.searching and not self._searching():
            self.calls.search(False)
        if self._steps <= GRAD_STEPS:
            self.grads.look(self.optimizers, self.roots)
            self.profiler.prime_device()
            self.hook_count.look(self._steps, self.optimizers, self.roots)
        values["subnormal"] = self.subnormals.look(self._steps, self.optimizers, self.roots)
        return values

    def _unrecorded(self) -> bool:
        """No profiler is on, neither ours nor one of the script's own."""
        return self.recorder.window is None and self.ready()

    def finish(self) -> None:
        """The script is over: tell a step that was still in doubt; without any step, keep the recording since import."""
        for kind in ("forward", "backward", "optimizer"):
            for end in self._cycles[kind].flush():
                self._late = True
                self.recorder.boundary(kind, "torch", at_ns=end)
        if self.idle.state in ("on", "stopped"):
            if len(self.recorder.series):
                self.idle.discard()
            else:
                self.recorder.keep_idle("torch", self.idle.save())

    def facts(self) -> dict[str, Any]:
        """The parts of run.json that torch knows."""
        return gather(self)
