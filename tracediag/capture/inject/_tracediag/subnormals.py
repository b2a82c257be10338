"""Part of subnormal numbers in what a torch step works on (weights, gradients, the model's inputs and outputs), looked at now and then.

On many processors arithmetic with subnormal numbers is tens of times slower. Only values on the CPU are looked at, outside the windows and
outside the timed steps: some hundred elements of a few tensors, by their bits, so that flushing modes do not hide them.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from . import guard

OFTEN, SELDOM, MOST = 48, 64, 128  # every step so long, then every so many steps, and no more than so many looks
VALUES = 4  # what passes the model is looked at in every so many of them: that is inside the step
PAUSE = 500  # times what a look took that go by before the next of the seldom ones
TENSORS, ELEMENTS, LEAST = 24, 256, 16
WORTH = 0.01  # a part of subnormal numbers from which on the processor itself is tried
SIDE, TRIES = 96, 5


class Subnormals:
    """Looks at values at the ends of steps."""

    def __init__(self, torch: Any, allowed: Callable[[], bool]) -> None:
        self.torch = torch
        self.largest = 0.0
        self.where: str | None = None  # weights | gradients | moments | values
        self.factor: float | None = None
        self.inside = True  # what passes the model in the open step is looked at
        self._allowed = allowed  # no profiler is on: our operators would be in its trace
        self._found: list[float] = []
        self._looks = self._next_ns = 0
        self._bits = {torch.float32: (torch.int32, 0x7F800000, 0x007FFFFF), torch.float64: (torch.int64, 0x7FF << 52, (1 << 52) - 1)}

    @guard.quiet
    def passing(self, values: Any) -> None:
        """Look at tensors that go into or come out of the root module."""
        if self._allowed():
            items = values if isinstance(values, (tuple, list)) else (values,)
            self._found += [part for part in map(self.part, items[:2]) if part is not None]

    @guard.quiet
    def look(self, step: int, optimizers: list[Any], roots: list[Any]) -> int | None:
        """Step number `step` has ended: largest part of subnormal numbers (in a thousand) in weights, gradients and what passed the model;
        None when it was not looked at or there was nothing to see."""
        self.inside = False
        start = perf_counter_ns()
        if self._looks >= MOST or (step >= OFTEN and (step % SELDOM or start < self._next_ns)):
            return None
        self.inside = step % VALUES == 0
        if not self._allowed():
            return None
        self._looks += 1
        found, self._found = self._found, []
        self._keep("values", found)
        states = [getattr(row["ref"](), "state", {}) for row in optimizers]
        for parameter in self._parameters(optimizers, roots):
            tensors = [("weights", parameter), ("gradients", parameter.grad)]
            tensors += [("moments", value) for state in states if parameter in state for value in list(state[parameter].values())[:3]]
            for what, tensor in tensors:
                part = self.part(tensor)
                if part is not None:
                    found.append(part)
                    self._keep(what, [part])
        end = perf_counter_ns()
        self._next_ns = end + PAUSE * (end - start)
        return round(1000 * max(found)) if found else None

    def _keep(self, what: str, parts: list[float]) -> None:
        largest = max(parts, default=0.0)
        if largest > self.largest:
            self.largest, self.where = largest, what

    def _parameters(self, optimizers: list[Any], roots: list[Any]) -> list[Any]:
        parameters: list[Any] = []
        for row in optimizers:
            optimizer = row["ref"]()
            for group in () if optimizer is None else optimizer.param_groups:
                parameters += group["params"]
        for module in [module for module in (reference() for reference in roots[:4]) if module is not None]:
            parameters += module.parameters()  # those that no optimizer has, too
        parameters = list({id(parameter): parameter for parameter in parameters}.values())
        return parameters[:: max(1, len(parameters) // (TENSORS // 2))]

    def part(self, tensor: Any) -> float | None:
        """Part of the looked-at elements that are subnormal; None for what is not looked at."""
        torch = self.torch
        if not isinstance(tensor, torch.Tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return None
        bits = self._bits.get(tensor.dtype)
        if bits is None or tensor.layout is not torch.strided or tensor.device.type != "cpu" or not tensor.is_contiguous():
            return None
        size = tensor.numel()
        if size < LEAST:
            return None
        kind, exponent, mantissa = bits
        few = tensor.detach().view(-1)[:: max(1, size // ELEMENTS)][:ELEMENTS].clone().view(kind)
        small = ((few & exponent) == 0) & ((few & mantissa) != 0)
        return float(small.sum()) / len(few)

    @guard.quiet
    def try_processor(self) -> None:
        """Once, when subnormal numbers were seen: how much longer a small matrix product takes with them on this processor."""
        if self.factor is not None or self.largest < WORTH:
            return
        torch = self.torch
        with torch.no_grad():
            usual, small = torch.full((SIDE, SIDE), 0.5), torch.full((SIDE, SIDE), 1e-40)
            self._time(usual, usual)  # the first product of a process sets the library up
            pairs = [(self._time(usual, usual), self._time(usual, small)) for _ in range(TRIES)]  # by turns: a busy machine meets both
        usual_ns, small_ns = (min(times) for times in zip(*pairs))  # noqa: B905 (Python 3.9)
        self.factor = round(small_ns / max(usual_ns, 1), 2)

    def _time(self, a: Any, b: Any) -> int:
        start = perf_counter_ns()
        self.torch.mm(a, b)
        return perf_counter_ns() - start

    def flags(self) -> dict[str, Any]:
        """What was found, for run.json; empty when nothing was."""
        if self._looks == 0:
            return {}
        self.try_processor()
        return {
            "torch.subnormal.largest": round(self.largest, 4),
            "torch.subnormal.where": self.where,
            "torch.subnormal.factor": self.factor,
        }
