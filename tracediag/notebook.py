"""How a Trace shows itself in a notebook."""

from __future__ import annotations

from importlib import import_module

__all__ = ["Shown"]


class Shown:
    """Shows itself by `reports.tracenote`, which stands above and is therefore known by name only."""

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return str(import_module("tracediag.reports.tracenote").render(self))
