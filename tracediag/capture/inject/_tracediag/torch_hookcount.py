"""How many hooks are registered on the modules, parameters and optimizers of a torch script: early, and when facts are gathered."""

from __future__ import annotations

import itertools
from typing import Any

from . import guard

OF_MODULES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
OF_TENSORS = ("_backward_hooks", "_post_accumulate_grad_hooks")
OF_OPTIMIZERS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
MOST_MODULES = 5000


class HookCount:
    """(step, hooks) at the first look and at the last."""

    def __init__(self) -> None:
        self.first: tuple[int, int] | None = None
        self.last: tuple[int, int] | None = None

    @guard.quiet
    def look(self, step: int, optimizers: list[Any], roots: list[Any]) -> None:
        """Count now; nothing when all of it is gone."""
        if not any(reference() is not None for reference in [*roots, *(row["ref"] for row in optimizers)]):
            return
        count = 0
        for module in (reference() for reference in roots):
            for inner in itertools.islice(() if module is None else module.modules(), MOST_MODULES):
                count += _hooks(inner, OF_MODULES)
                count += sum(_hooks(parameter, OF_TENSORS) for parameter in inner._parameters.values() if parameter is not None)
        for optimizer in (row["ref"]() for row in optimizers):
            count += 0 if optimizer is None else _hooks(optimizer, OF_OPTIMIZERS)
        self.last = (step, count)
        if self.first is None:
            self.first = self.last

    def flags(self) -> dict[str, Any]:
        """For run.json; empty when it never looked."""
        if self.first is None or self.last is None:
            return {}
        return {
            "torch.hooks.first": self.first[1], "torch.hooks.first_step": self.first[0],
            "torch.hooks.last": self.last[1], "torch.hooks.last_step": self.last[0],
        }  # fmt: skip


def _hooks(owner: Any, names: tuple[str, ...]) -> int:
    return sum(len(getattr(owner, name, None) or ()) for name in names)
