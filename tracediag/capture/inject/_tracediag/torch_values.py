"""Values of a torch step, taken at its end: shapes of its batch, waiting time, compilations, autograd nodes, memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .torch_batch import shapes_text
from .torch_dynamo import Dynamo
from .torch_loaders import Loaders
from .torch_state import Memory

Raw = tuple[Any, int, tuple[Any, Any]]
"""Shapes that passed the model, autograd's sequence number, waiting time and shapes of the loader."""

NOTHING = (None, None)


class StepValues:
    """Takes the values of one step after the other."""

    def __init__(self, torch: Any, loaders: Loaders, dynamo: Dynamo, memory: Memory) -> None:
        self._loaders, self._dynamo, self._memory = loaders, dynamo, memory
        self._batch: str | None = None
        self._sequence = 0
        self.sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr

    def passed(self, args: Any, kwargs: Any) -> None:
        """These are the arguments of the model; the first of a step count."""
        if self._batch is None:
            self._batch = shapes_text(args) or shapes_text(kwargs)

    def take(self) -> Raw:
        """A step has ended: what must be taken now, for `complete`."""
        passed, self._batch = self._batch, None
        return passed, self.sequence_number(), self._loaders.take() if self._loaders.seen else NOTHING

    def complete(self, raw: Raw) -> dict[str, Any]:
        """The values of the step after those completed before; its compilations and the memory in use are as they are now."""
        passed, sequence, (waited, loaded) = raw
        compiles, compile_ns = self._dynamo.sample() if self._dynamo.asked else NOTHING
        nodes, self._sequence = sequence - self._sequence, sequence
        return {
            "loader_ns": waited, "batch": loaded or passed, "compiles": compiles, "compile_ns": compile_ns,
            "allocated": self._memory.in_use(), "nodes": nodes,
        }  # fmt: skip
