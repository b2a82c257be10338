"""The registry of reports: one module a format, each with `render(report) -> str`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from tracediag.comparison import Comparison
    from tracediag.findings import Report

__all__ = ["COMPARISON_FORMATS", "FORMATS", "Renderer", "render", "render_comparison", "renderer"]

FORMATS = ("text", "json", "markdown", "html", "sarif")
"""Names of the formats; `tracediag.reports.<name>` renders it."""

COMPARISON_FORMATS = ("text", "json", "markdown", "html")
"""Names of the formats of a comparison; `tracediag.reports.compare<name>` renders it."""


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


def render(report: Report, name: str, excerpt: dict[str, Any] | None = None) -> str:
    """`report` in format `name` (one of FORMATS). excerpt: of its trace, for the drawings of html. Raises KeyError for another format."""
    if name == "html":
        from tracediag.reports import html

        return html.render(report, excerpt)
    return renderer(name)(report)


def render_comparison(comparison: Comparison, name: str, excerpts: tuple[dict[str, Any], dict[str, Any]] | None = None) -> str:
    """`comparison` in format `name` (one of COMPARISON_FORMATS). excerpts: of both sides, for the drawings of html. Raises KeyError for
    another format."""
    if name not in COMPARISON_FORMATS:
        raise KeyError(name)
    if name == "html":
        from tracediag.reports import comparehtml

        return comparehtml.render(comparison, excerpts)
    return str(import_module(f"tracediag.reports.compare{name}").render(comparison))
