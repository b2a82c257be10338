"""A page in one file that needs nothing else: no network, and no style or script but those of the folder `assets`."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tracediag.reports.web.markup import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DRAWING", "LIBRARY", "document"]

DRAWING = ("format.js", "tracks.js", "timeline.js", "control.js", "save.js", "panel.js")
"""The scripts of a timeline. It is our own: the chart libraries that could draw one are ten times the size of all this, and none has
lanes, nesting and keys."""
LIBRARY = "uPlot.iife.min.js"
"""What draws curves (MIT); its licence and its style go with it."""


def document(title: str, body: str, scripts: Sequence[str] = (), data: Mapping[str, dict[str, Any]] | None = None) -> str:
    """The whole page. title: text; body: HTML; scripts: names of assets, in order; data: id -> what the scripts read, as JSON in a block
    that no browser runs.

    The policy in the page allows the script and the style whose hashes it names, and no request of any kind.
    """
    library = LIBRARY in scripts
    style = (_asset("uPlot.min.css") if library else "") + _asset("page.css")
    script = (f"/*\n{_asset('uPlot.LICENSE')}*/\n" if library else "") + "".join(map(_asset, scripts))
    blocks = "".join(f'<script type="application/json" id="{name}">{_json(value)}</script>\n' for name, value in (data or {}).items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}{blocks}"
        f"{f'<script>{script}</script>' if script else ''}\n</body>\n</html>\n"
    )


def _json(value: dict[str, Any]) -> str:
    """JSON that cannot end its element: ASCII, with the signs of markup written as escapes."""
    told = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _asset(name: str) -> str:
    """A file of the folder `assets`, with one newline at its end."""
    return (files("tracediag.reports.web") / "assets" / name).read_text(encoding="utf-8").rstrip() + "\n"


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: nothing but this style and, if there is one, this script."""
    allowed = f"'{_hash(script)}'" if script else "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
