"""The adapter of torch: turns what the patches see into boundaries, windows and facts."""

from __future__ import annotations

import sys
import weakref
from time import perf_counter_ns
from typing import Any

from . import callsite, guard, imports
from .cycle import Cycle
from .lines import LineMarks
from .recorder import Recorder
from .steps import merge_samples
from .subnormals import Subnormals
from .torch_batch import shapes_text
from .torch_dynamo import Dynamo
from .torch_facts import gather
from .torch_hookcount import HookCount
from .torch_hooks import ModuleCalls, patch_backward, patch_optimizers
from .torch_loaders import Loaders
from .torch_state import Grads, Memory
from .torch_window import IdleWindow, Profiler

SEARCH_STEPS = 4  # steps after which no further root modules are looked for
FORWARD_SEARCH = 64
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
        self.hook_count = HookCount()
        self.subnormals = Subnormals(torch)
        self._parts: list[float] = []
        self._look_inside = True  # at what passes the model in the open step
        self._sequence = 0
        self.sites: dict[tuple[str, str], int] = {}  # (what, file:line) -> calls noted
        self.loose: list[dict[str, Any]] = []  # rows of tensors outside modules and optimizers that once had a gradient
        self.autocast = False
        self._optimizer_index: dict[int, int] = {}
        self._root_ids: dict[int, int] = {}
        self._cycles = {kind: Cycle() for kind in ("forward", "backward", "optimizer")}
        self._trained = False
        self._batch: str | None = None
        self._eval_calls, self._eval_before = 0, [0, 0]
        self._steps = 0
        self._pending: dict[str, Any] = {}
        self._late = self._told_of_compiling = False
        self._window_start = (0, 0)

    def hook(self) -> None:
        """Put every patch in place; one that fails is noted and left out."""
        for patch in (patch_optimizers, patch_backward):
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
        self.training_seen()
        self.recorder.expect("optimizer", "torch")

    def optimizer_stepped(self, optimizer: Any) -> None:
        """`optimizer.step()` has returned."""
        now = perf_counter_ns()
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
        if self.idle.state != "discarded" or not self.recorder.series.started:
            self.training_seen()
        if id(module) not in self._root_ids:
            self._root_ids[id(module)] = len(self.roots)
            self.roots.append(weakref.ref(module))
            self._note_site("forward", callsite.here())
        if self.torch.is_grad_enabled():
            self.recorder.resume()
            if module.training:
                self.recorder.expect("backward", "torch")
        elif self._trained:
            self._eval_calls += 1
            if self._steps >= 2 and not any(self._eval_before):
                self.recorder.pause()
        if self._batch is None:
            self._batch = shapes_text(args) or shapes_text(kwargs)
        if self._look_inside:
            self._passing(args)

    def root_returned(self, module: Any, result: Any = None) -> None:
        """It has returned: the end of a step where nothing but forward passes is run."""
        if self._look_inside:
            self._passing(result)
        if not self._trained:
            self._boundaries("forward", id(module), perf_counter_ns())
        elif not self.autocast:
            self.autocast = bool(self.torch.is_autocast_enabled())

    def _passing(self, values: Any) -> None:
        if self._unrecorded() and not self.dynamo.asked:
            self.subnormals.passing(values, self._parts)

    def _boundaries(self, kind: str, key: Any, now: int) -> None:
        cycle = self._cycles[kind]
        if cycle.alone(key):  # nearly always
            self.recorder.boundary(kind, "torch")
            return
        ends = cycle.event(key, now)
        if cycle.end is None:
            self._pending = merge_samples(self._pending, self._measure())
        for end in ends:
            self._late = end != now
            self.recorder.boundary(kind, "torch", at_ns=end if self._late else None)

    def compile_asked(self) -> None:
        """`torch.compile` was called: no patch of ours may be in what dynamo traces."""
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
        self._window_start = self._steps, self.torch._C._autograd._get_sequence_nr()
        if stacks:
            self.lines.start()

    def events(self) -> int:
        """Estimate of the events recorded so far: each autograd node stands for some, each parameter for some more in the optimizer."""
        steps, sequence = self._window_start
        parameters = sum(len(group["params"]) for row in self.optimizers if row["ref"]() for group in row["ref"]().param_groups)
        per_parameter = 2 if self.profiler.device_seen else 25  # on a device, optimizers work on all parameters at once by default
        nodes = self.torch._C._autograd._get_sequence_nr() - sequence
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
        values = self._measure() if not self._late else {}
        if self._pending:
            values = merge_samples(self._pending, values)
            self._pending = {}
        self._late = False
        self._steps += 1
        self._eval_before[0], self._eval_before[1] = self._eval_before[1], self._eval_calls
        self._eval_calls = 0
        if self.calls.searching and not self._searching():
            self.calls.search(False)
        if self._steps <= GRAD_STEPS:
            self.grads.look(self.optimizers, self.roots)
            self.profiler.prime_device()
            self.hook_count.look(self._steps, self.optimizers, self.roots)
        due = self.subnormals.due(self._steps)
        self._look_inside = due and self.subnormals.due_inside(self._steps)
        if due and self._unrecorded():
            values["subnormal"], self._parts = self._look(self._parts), []
        return values

    def _unrecorded(self) -> bool:
        """No profiler is on, neither ours nor one of the script's own: our operators would be in its trace."""
        return self.recorder.window is None and self.ready()

    @guard.quiet
    def _look(self, parts: list[float]) -> int | None:
        return self.subnormals.look(self.optimizers, self.roots, parts)

    def _measure(self) -> dict[str, Any]:
        waited, batch = self.loaders.take() if self.loaders.seen else (None, None)
        batch, self._batch = batch or self._batch, None
        compiles, compile_ns = self.dynamo.sample() if self.dynamo.asked else (None, None)
        sequence = self.torch._C._autograd._get_sequence_nr()
        nodes, self._sequence = sequence - self._sequence, sequence
        used = self.memory.in_use()
        return {"loader_ns": waited, "batch": batch, "compiles": compiles, "compile_ns": compile_ns, "allocated": used, "nodes": nodes}

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
