"""Ranges around eager gradients and updates, while a recording runs."""

from __future__ import annotations

from typing import Any

__all__ = ["RANGES", "Ranges"]


class Ranges:
    """Named ranges of the user's thread while a recording runs: eager ops carry no scope that would tell their phase."""

    BACKWARD, OPTIMIZER = "tracediag_backward", "tracediag_optimizer"

    def __init__(self) -> None:
        self.trace: Any = None

    def open(self, name: str) -> Any:
        """A range that begins now, None when nothing is recorded."""
        return self.trace(name) if self.trace is not None else None

    def close(self, opened: Any) -> None:
        """End a range."""
        if opened is not None:
            opened.__exit__(None, None, None)


RANGES = Ranges()
