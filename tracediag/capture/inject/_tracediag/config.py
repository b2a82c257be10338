"""What the parent asked for: read from one environment variable (JSON)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields

VARIABLE = "TRACEDIAG_CAPTURE"


@dataclass(frozen=True)
class Config:
    """Options of the capture. out: absolute run directory; cwd: working directory of the run; rank: of this
    process; script_dir: folder of the script."""

    out: str
    cwd: str
    token: str = ""
    version: str = "0"
    framework: str = "auto"
    warmup: int = 5
    steps: int = 10
    stop_after_window: bool = False
    stacks: bool = True
    memory: bool = True
    lines: bool = True
    rank: int = 0
    script: str = ""
    command: tuple[str, ...] = ()
    script_dir: str = ""

    def wants(self, framework: str) -> bool:
        """The user asked for this framework, or for whichever is used."""
        return self.framework in ("auto", framework)


def from_environment() -> Config | None:
    """The configuration, or None when this process was not started by us. Raises ValueError for malformed text."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    raw = json.loads(text)
    known = {field.name for field in fields(Config)}
    raw["command"] = tuple(raw.get("command", ()))
    return Config(**{name: value for name, value in raw.items() if name in known})
