"""What is looked at while a torch script runs: gradients of parameters, memory in use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import guard

if TYPE_CHECKING:
    from .torch_window import Profiler

OFTEN, EVERY = 160, 16  # steps at first with a look each at the memory in use, then one in so many
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Grads:
    """Layout of the gradient that a parameter was seen with: dense | sparse."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.seen: dict[int, str] = {}  # by the id of the parameter

    @guard.quiet
    def look(self, optimizers: list[dict[str, Any]], roots: list[Any]) -> None:
        """Look at every parameter of the optimizers (rows with a weak reference `ref`) and root modules (weak references)."""
        for row in optimizers:
            optimizer = row["ref"]()
            for group in () if optimizer is None else optimizer.param_groups:
                for parameter in group["params"]:
                    self.note(parameter)
        for reference in roots:
            module = reference()
            for parameter in () if module is None else module.parameters():
                self.note(parameter)

    def note(self, parameter: Any) -> None:
        """Note a gradient that is there now."""
        gradient = parameter.grad
        if gradient is not None:
            self.seen[id(parameter)] = "sparse" if gradient.layout is not self.torch.strided else "dense"


class Memory:
    """Bytes in use, looked at every few steps: on the device when there is one, else resident in the process."""

    def __init__(self, torch: Any, profiler: Profiler) -> None:
        self.torch = torch
        self._profiler = profiler
        self._statm = _open_statm()
        self._bytes: int | None = None
        self._asked = 0

    def in_use(self) -> int | None:
        """Bytes; None where the system does not tell."""
        if self._asked % EVERY == 0 or self._asked < OFTEN:
            if self._profiler.device() == "cuda":
                stats = self.torch._C._cuda_memoryStats(self.torch.cuda.current_device())
                self._bytes = int(stats["allocated_bytes"]["all"]["current"])
            elif self._statm >= 0:
                self._bytes = int(os.pread(self._statm, 64, 0).split()[1]) * PAGE
        self._asked += 1
        return self._bytes


def _open_statm() -> int:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no /proc here: the column stays empty
        return -1
