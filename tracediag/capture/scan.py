"""Read the script's source for where it reads the clock (stub)."""
from __future__ import annotations
from pathlib import Path
from typing import Any
def scan(script: Path) -> list[dict[str, Any]]:
    """Rows of the table clocks."""
    return []
