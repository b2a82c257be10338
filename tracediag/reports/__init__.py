"""The registry of reports: one module a format, each with `render(report) -> str`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from tracediag.findings import Report

__all__ = ["FORMATS", "Renderer", "render", "renderer"]

FORMATS = ("text", "json", "markdown")
"""Names of the formats; `tracediag.reports.<name>` renders it."""


class Renderer(Protocol):
    """What every module of this package offers as `render`."""

    def __call__(self, report: Report) -> str:
        """The whole report as text that ends with a newline."""
        ...  # pragma: no cover


def renderer(name: str) -> Renderer:
    """The renderer of format `name`, imported on first use (only text needs rich). Raises KeyError for an unknown format."""
    if name not in FORMATS:
        raise KeyError(name)
    return cast("Renderer", import_module(f"tracediag.reports.{name}").render)


def render(report: Report, name: str) -> str:
    """`report` in format `name` ('text', 'json' or 'markdown'). Raises KeyError for an unknown format."""
    return renderer(name)(report)
