"""Where the files lie that come with tracediag."""

from __future__ import annotations

from pathlib import Path

__all__ = ["rules_folder"]


def rules_folder() -> Path:
    """Folder of the rules that come with tracediag: inside an installed package, else beside it in the source tree."""
    package = Path(__file__).resolve().parent
    installed = package / "_data" / "rules"
    return installed if installed.is_dir() else package.parent / "rules"
