"""Run the steps of a composite action without GitHub: expressions, conditions, outputs, the files that steps write to."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Job", "run_action"]

_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"'[^']*'|\b(?:inputs|github|steps)(?:\.[\w-]+)+")


@dataclass
class Job:
    """What came of it. used: steps that call another action, with their evaluated inputs. code: of the step that failed, else 0."""

    ran: list[str] = field(default_factory=list)
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""
    code: int = 0


def run_action(file: Path, temp: Path, inputs: dict[str, str], github: dict[str, Any], environment: dict[str, str]) -> Job:
    """Run the action with `inputs`, until a step fails. github: the context of that name. environment: what the runner sets."""
    action = yaml.safe_load(file.read_text(encoding="utf-8"))
    unknown = set(inputs) - set(action["inputs"])
    assert not unknown, unknown
    context: dict[str, Any] = {"github": github, "steps": {}}
    context["inputs"] = {name: str(_filled(spec.get("default", ""), context)) for name, spec in action["inputs"].items()} | inputs
    job, summary = Job(), temp / "summary.md"
    for i, step in enumerate(action["runs"]["steps"]):
        if "if" in step and not _value(_HOLE.fullmatch(step["if"].strip())[1], context):
            continue
        job.ran.append(step["name"])
        if "uses" in step:
            job.used[step["uses"]] = {name: _filled(value, context) for name, value in step["with"].items()}
            continue
        told = temp / f"output-{i}"
        told.touch()
        own = {name: _filled(value, context) for name, value in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": str(told), "GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(temp)}
        place = _filled(step.get("working-directory", "."), context)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        variables = {**os.environ, **environment, **files, **own}
        done = subprocess.run(command, cwd=place, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        job.log += done.stdout
        pairs = [line.split("=", 1) for line in told.read_text().splitlines()]
        context["steps"][step.get("id", f"step-{i}")] = {"outputs": dict(pairs)}
        if done.returncode:
            job.code = done.returncode
            break
    job.outputs = {name: _filled(spec["value"], context) for name, spec in action["outputs"].items()}
    job.summary = summary.read_text() if summary.exists() else ""
    return job


def _filled(text: str, context: dict[str, Any]) -> str:
    return _HOLE.sub(lambda hole: str(_value(hole[1], context)), str(text))


def _value(expression: str, context: dict[str, Any]) -> Any:
    """The value of an expression of names, strings, ==, &&, || and format, which Python has the same of."""

    def known(found: re.Match[str]) -> str:
        if found[0].startswith("'"):
            return found[0]
        value: Any = context
        for part in found[0].split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return repr(value)

    python = _NAME.sub(known, expression).replace("&&", " and ").replace("||", " or ")
    return eval(python.strip(), {"__builtins__": {}}, {"format": str.format})
