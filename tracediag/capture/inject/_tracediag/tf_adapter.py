"""The TensorFlow adapter: hooks at import, the profiler window, samples a step, facts."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from . import guard, tf_data, tf_facts
from .tf_functions import Watch
from .tf_graphs import Graphs
from .tf_patches import patch_calls, patch_concrete, patch_gradients, patch_switches, patch_tracing
from .tf_private import Private
from .tf_shapes import Shapes
from .tf_window import Window, yield_to_own
from .torch_window import IdleWindow

if TYPE_CHECKING:
    from .keras_registry import Registry

WATCH: Watch | None = None
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
EVERY = 8  # steps between two looks at the resident memory
DENSIFIED = "Converting sparse IndexedSlices"


class TensorFlowAdapter:
    """What the recorder asks for, see recorder.Adapter."""

    framework = "tensorflow"
    wants_stacks = False  # graph ops carry their source lines in the side-car
    steps_per_call = 1  # training steps in one boundary, from the optimizer's own counter over the window

    def __init__(self, recorder: Any, tensorflow: Any, watch: Watch, loaders: tf_data.Loaders) -> None:
        self.recorder, self.tensorflow, self.watch, self.loaders = recorder, tensorflow, watch, loaders
        self.window = Window(tensorflow, recorder.config.out)
        self.idle = IdleWindow(self.window)  # type: ignore[arg-type]
        self.graphs = Graphs(watch)
        self.warnings: list[str] = []
        self._gpu: str | None = None
        self._primed = False
        self._idle_kept = False
        self._statm = _open_statm()
        self._resident: int | None = None
        self._samples = 0
        self._counted: dict[int, int] = {}
        self._calls = 0
        self._own_is_on = yield_to_own(tensorflow, self._own_profiler)
        watch.training_seen = self.discard_idle
        watch.gradients_taken = _registry().gradients_taken
        _hear_warnings(self.warnings)

    # -- window --

    def record_idle(self) -> None:
        """Record from import on, until training is seen. Not where TensorFlow was built for GPUs: it would load CUDA before the script
        has chosen its devices."""
        if not self.tensorflow.test.is_built_with_gpu_support():
            self.idle.start(f"rank{self.recorder.config.rank}")

    def discard_idle(self) -> None:
        """Training was seen, here or in another framework: nothing since import is wanted."""
        if self.idle.state in ("on", "stopped"):
            self.window.wanted = False
            self.idle.discard()
            self.window.wanted = True

    def finish(self) -> None:
        """The script is over: tell a step that was still in doubt; without any step, keep the recording since import."""
        self.watch.finish()
        if self.idle.state in ("on", "stopped"):
            if len(self.recorder.series):
                self.discard_idle()
            else:
                self._idle_kept = True
                self.recorder.keep_idle(self.framework, self.idle.save())

    @guard.quiet
    def _own_profiler(self) -> None:
        self.discard_idle()
        self.recorder.close_window(self.framework)
        guard.note("own-profiler", "warning", "the script runs a profiler of its own", "No window is recorded while it is on.")

    def ready(self) -> bool:
        """No profiler of the script's own is on."""
        return not self._own_is_on()

    def start_window(self, stem: str, stacks: bool) -> None:
        """Start the profiler."""
        self._counted = self._counters()
        self._calls = self.watch.calls
        self.window.start(stem)

    def stop_window(self) -> list[str]:
        """Stop it and write the trace."""
        self._wait()
        self.window.stop()
        calls = self.watch.calls - self._calls
        grown = [now - self._counted[index] for index, now in self._counters().items() if index in self._counted]
        if calls > 0 and grown:
            self.steps_per_call = max(1, max(grown) // calls)
            track = getattr(self.recorder, "tracks", {}).get(self.framework)
            if track is not None:
                track.steps_per_call = self.steps_per_call
        return self.window.save()

    def mark(self, step: int | None) -> None:
        """Step marker in the trace."""
        self.window.mark(step)

    def _counters(self) -> dict[int, int]:
        found = {}
        for index, record in enumerate(_registry().optimizers):
            count = record.iterations()
            if count is not None:
                found[index] = count
        return found

    def _wait(self) -> None:
        """Let the GPU finish what was launched, so that the trace holds it."""
        synchronise = getattr(self.tensorflow.test.experimental, "sync_devices", None)
        if self._gpu and synchronise is not None:
            synchronise()

    # -- every step --

    def sample(self) -> dict[str, Any]:
        """Cheap values at the end of a step."""
        if not self._primed and self.ready():
            self._prime()
        values = self.watch.counters.sample(self.watch.told_ns)
        values["allocated"] = self._allocated()
        return values

    def _allocated(self) -> int | None:
        """Bytes in use: on the first GPU when there is one, else resident in the process (looked at now and then)."""
        if self._gpu is not None:
            return int(self.tensorflow.config.experimental.get_memory_info(self._gpu)["current"])
        if self._statm >= 0 and self._samples % EVERY == 0:
            self._resident = int(os.pread(self._statm, 64, 0).split()[1]) * PAGE
        self._samples += 1
        return self._resident

    @guard.quiet
    def _prime(self) -> None:
        """At the end of the first step TensorFlow has its devices: load the profiler's GPU part now, outside the steps' times."""
        self._primed = True
        gpus = self.tensorflow.config.list_logical_devices("GPU")
        self._gpu = gpus[0].name.split("device:", 1)[-1] if gpus else None
        self.window.prime()

    # -- facts --

    def facts(self) -> dict[str, Any]:
        """Parts of run.json."""
        if not self._primed and not self._idle_kept:  # no step has ended: nothing was trained, and the devices may not be set up
            return {"used": False, "versions": tf_facts.versions(self.tensorflow)}
        registry = _registry()
        graphs = self.graphs.facts()
        tf_facts.add_variables(self.watch, registry, self.graphs.embedded)
        return {
            "used": self._primed, "graphs": graphs, "variables": registry.variables, "optimizers": registry.optimizer_rows(),
            "loaders": self.loaders.rows, "functions": tf_facts.functions(self.watch), "flags": tf_facts.flags(self.tensorflow),
            "devices": tf_facts.devices(self.tensorflow), "versions": tf_facts.versions(self.tensorflow), "warnings": self.warnings,
        }  # fmt: skip


def _open_statm() -> int:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no /proc here: the column stays empty
        return -1


def _registry() -> Registry:
    """The registry that the Keras hooks fill."""
    from .keras_adapter import REGISTRY

    return REGISTRY


def _hear_warnings(found: list[str]) -> None:
    """Keep the warnings that say a sparse gradient was made dense; all are shown as before."""
    show = warnings.showwarning

    def showwarning(message: Any, *args: Any, **kwds: Any) -> None:
        text = str(message)
        if DENSIFIED in text and text[:200] not in found:
            found.append(text[:200])
        show(message, *args, **kwds)

    warnings.showwarning = showwarning


@guard.quiet
def install(recorder: Any, tensorflow: Any) -> None:
    """Called at the end of the import of tensorflow."""
    global WATCH
    if WATCH is not None or not recorder.config.wants("tensorflow"):
        return
    private = Private()
    watch = WATCH = Watch(private, recorder, tensorflow.executing_eagerly, Shapes(tensorflow.Variable))
    loaders = tf_data.Loaders(watch)
    patch_calls(watch)
    patch_concrete(watch)
    patch_tracing(watch)
    patch_gradients(watch, tensorflow.GradientTape)
    tf_data.patch(watch, loaders)
    tf_data.patch_datasets(loaders, tensorflow.data.Dataset)
    patch_switches(tensorflow)
    adapter = TensorFlowAdapter(recorder, tensorflow, watch, loaders)
    recorder.register(adapter)
    adapter.record_idle()
