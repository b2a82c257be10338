"""What a benchmark ran on: machine, system, Python and packages; no names or paths of the machine."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from environments import version

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES = ("tracediag", "numpy", "pandas", "duckdb", "msgspec", "protobuf", "isal")


def _field(path: str, name: str) -> str:
    """Value of the first row `name : value` of a file under /proc."""
    rows = Path(path).read_text().splitlines()
    return next((row.partition(":")[2].strip() for row in rows if row.startswith(name)), "unknown")


def _commit() -> str:
    done = subprocess.run(["git", "log", "-1", "--format=%h"], capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return done.stdout.strip() or "-"


def facts(peers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Rows for the page. peers: package -> interpreter that has it."""
    memory = int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    rows = [
        ("date", f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"),
        ("commit", _commit()),
        ("machine", f"{_field('/proc/cpuinfo', 'model name')}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}"),
    ]
    ours = [(name, version(sys.executable, name)) for name in PACKAGES]
    rows.append(("packages", ", ".join(f"{name} {number}" for name, number in ours if number != "-")))
    if peers:
        rows.append(("other tools", ", ".join(f"{name} {version(python, name)}" for name, python in peers.items())))
    return rows
