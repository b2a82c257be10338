"""Virtual environments for other tools, made once and kept in a cache folder, so that nothing of theirs meets tracediag's own packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MARK = "requirements.txt"


def environment(folder: Path, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment in `folder` that has `requirements`; made with pip when it is not there, or there with others.

    Raises CalledProcessError when pip cannot install them.
    """
    python, mark, wanted = folder / "bin" / "python", folder / MARK, "\n".join(requirements) + "\n"
    if mark.exists() and mark.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True, stderr=subprocess.DEVNULL)
    mark.write_text(wanted)
    return python


def version(python: str, package: str) -> str:
    """Version of a package in an environment, '-' when it is not there."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "-"
