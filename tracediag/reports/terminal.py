"""What the reports for a terminal share: the page that blocks are printed on, labels on the left, colours."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

__all__ = ["LABEL", "LEAST_WIDTH", "STYLES", "WIDTH", "labelled", "printed"]

WIDTH, LEAST_WIDTH = 96, 60
LABEL = 10
"""Columns of the left-hand labels."""
STYLES = {"high": "bold red", "medium": "bold yellow", "low": "cyan", "info": "dim", "error": "bold red", "warning": "yellow"}


def printed(blocks: Iterable[RenderableType], width: int, *, color: bool) -> str:
    """The blocks as lines of at most `width` columns (no fewer than LEAST_WIDTH), with terminal colours if `color`."""
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, LEAST_WIDTH),
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        safe_box=False,
    )
    for block in blocks:
        console.print(block, soft_wrap=False)
    return "".join(f"{row.rstrip()}\n" for row in out.getvalue().splitlines())


def labelled(rows: list[tuple[str, RenderableType]]) -> Table:
    """Rows with a dim label of LABEL columns before each."""
    table = Table.grid(padding=(0, 0), pad_edge=False)
    table.add_column(width=LABEL, no_wrap=True)
    table.add_column(overflow="fold")
    for label, content in rows:
        table.add_row(Text(label, style="dim"), content)
    return table
