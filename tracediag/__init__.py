"""tracediag: why is my training slow?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag._version import __version__

if TYPE_CHECKING:
    from tracediag.api import compare, explain, load, profile
    from tracediag.comparison import Comparison
    from tracediag.findings import Finding, Report
    from tracediag.trace import Trace

__all__ = ["Comparison", "Finding", "Report", "Trace", "__version__", "compare", "explain", "load", "profile"]

_HOMES = {
    "compare": "tracediag.api",
    "explain": "tracediag.api",
    "load": "tracediag.api",
    "profile": "tracediag.api",
    "Comparison": "tracediag.comparison",
    "Finding": "tracediag.findings",
    "Report": "tracediag.findings",
    "Trace": "tracediag.trace",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import tracediag` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tracediag' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
