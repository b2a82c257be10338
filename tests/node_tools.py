"""What tests need of node: where its packages are, and whether a test may be skipped for want of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["FOLDER", "MODULES", "REQUIRED", "needs_node", "sarif_problems"]

FOLDER = Path(__file__).resolve().parent / "node"
MODULES = FOLDER / "node_modules"
REQUIRED = "node" in os.environ.get("TRACEDIAG_REQUIRE", "").split(",")


def needs_node() -> None:
    """Skip the calling module where node or its packages are missing, unless they are required."""
    if not REQUIRED and (shutil.which("node") is None or not MODULES.is_dir()):
        pytest.skip("node or the packages of tests/node are missing (make node)", allow_module_level=True)


def sarif_problems(folder: Path) -> list[dict[str, object]]:
    """What Microsoft's validator says of the *.sarif in a folder: the standard's schema and rules, and those of GitHub."""
    program = MODULES / "@microsoft" / "sarif-multitool-linux" / "Sarif.Multitool"
    program.chmod(0o755)
    told = folder / "validation.json"
    files = sorted(map(str, folder.glob("*.sarif")))
    command = [str(program), "validate", *files, "--output", str(told), "--log", "ForceOverwrite", "--rule-kind", "Sarif;Ghas", "--quiet"]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "DOTNET_BUNDLE_EXTRACT_BASE_DIR": str(folder / "dotnet")}
    subprocess.run(command, env=environment, timeout=120, capture_output=True, check=False)
    (run,) = json.loads(told.read_text(encoding="utf-8-sig"))["runs"]
    return list(run.get("results", ()))
