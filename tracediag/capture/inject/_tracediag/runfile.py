"""run.json: put together what was recorded and write it whole, by an atomic rename."""

from __future__ import annotations

import json
import os
import platform
import sys
from time import perf_counter_ns
from typing import Any

from .config import Config
from .steps import Series, Track

PERIOD_NS = 2 * 10**9
PAUSE = 300
"""Between two regular writes lies at least so many times what the last one took."""
LISTS = (
    "params", "optimizers", "loaders", "variables", "functions", "sources", "warnings", "devices", "strings",
    "call_sites", "embeddings",
)  # fmt: skip
KNOWN_SWITCHES = (
    "TF_", "XLA_", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "KERAS_", "CUDA_", "NCCL_", "OMP_", "MKL_", "KMP_", "OPENBLAS_",
    "NUMEXPR_", "CUDNN_", "ONEDNN_", "DNNL_", "HSA_", "HIP_", "ROCR_", "MIOPEN_",
)  # fmt: skip
# names of places and secrets are no switches
PLACES = ("_HOME", "_PATH", "_DIR", "_FILE", "_ROOT", "_CACHE", "_ADDR", "_HOSTS", "_TOKEN", "_KEY")


class RunFile:
    """The run.json of one process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ended = "running"
        self.windows: list[dict[str, Any]] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self.next_ns = 0  # when a regular write is due: every two seconds, and never more than 0.3 % of the time

    def add_facts(self, framework: str, facts: dict[str, Any]) -> None:
        """Facts of a framework, anew. A list that has become shorter is kept as it was: at the end of a script whose main() has returned
        its models are gone."""
        known = self.facts.setdefault(framework, {})
        for name, value in facts.items():
            before = known.get(name)
            if isinstance(value, list) and isinstance(before, list) and len(value) < len(before):
                continue
            known[name] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value

    def add_window(self, track: Track, files: list[str]) -> None:
        """Record the files of a window that has just been written."""
        for file in files:
            self.windows.append({
                "file": file, "first_step": track.first_step, "steps": track.in_window, "late": track.name == "late",
                "stacks": track.name == "stacks", "found_by": track.kind, "steps_per_call": track.steps_per_call,
                "framework": track.framework,
            })  # fmt: skip

    def drop_windows(self, framework: str) -> None:
        """Remove the windows of a framework and their files: they were cut at the wrong boundaries."""
        for window in self.windows:
            if window["framework"] == framework:
                path = os.path.join(self.config.out, window["file"])
                if os.path.exists(path):
                    os.remove(path)
        self.windows = [window for window in self.windows if window["framework"] != framework]

    def write(self, series: Series, adapters: dict[str, Any], notes: list[dict[str, str]], lines: list[Any] | None = None) -> None:
        """Write run.json. Raises OSError."""
        start = perf_counter_ns()
        path = os.path.join(self.config.out, self._name())
        scratch = f"{path}.{os.getpid()}.tmp"
        with open(scratch, "w", encoding="utf-8") as stream:
            # dumps, not dump: only the former uses the fast encoder
            stream.write(json.dumps(self._content(series, adapters, notes, lines or []), separators=(",", ":"), default=str))
        os.replace(scratch, path)
        end = perf_counter_ns()
        self.next_ns = end + max(PERIOD_NS, PAUSE * (end - start))

    def _name(self) -> str:
        return "run.json" if self.config.rank == 0 else f"run.rank{self.config.rank}.json"

    def _content(self, series: Series, adapters: dict[str, Any], notes: list[dict[str, str]], lines: list[Any]) -> dict[str, Any]:
        content: dict[str, Any] = {
            "schema": "tracediag.run/1", "tracediag": self.config.version,
            "framework": "+".join(sorted(name for name in adapters if _used(name, self.facts, self.windows))) or None,
            "command": list(self.config.command), "script": self.config.script, "exit_code": None, "ended": self.ended,
            "environment": _environment(), "host": _host(), "windows": self.windows, "step_series": series.as_json(),
            "batches": list(series.batches), "versions": {"python": platform.python_version()}, "flags": {}, "graphs": {},
            "clocks": [], "notes": list(notes), "lines": lines,
        }  # fmt: skip
        for name in LISTS:
            content[name] = []
        for facts in self.facts.values():
            _merge(content, facts)
        return content


def _used(name: str, facts: dict[str, dict[str, Any]], windows: list[dict[str, Any]]) -> bool:
    """A framework that was trained with, not only imported (Keras and torch import each other's neighbours)."""
    return any(w["framework"] == name for w in windows) or bool(facts.get(name, {}).get("used", False))


def _merge(content: dict[str, Any], facts: dict[str, Any]) -> None:
    """Append the facts of one framework; row numbers of optimizers are shifted behind those already there."""
    shift = len(content["optimizers"])
    for name in ("params", "variables"):
        for row in facts.get(name, ()) if shift else ():
            if row.get("optimizer") is not None:
                row["optimizer"] += shift
    for name, value in facts.items():
        known = content.get(name)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        elif isinstance(known, dict) and isinstance(value, dict):
            known.update(value)
        elif name != "used":
            content[name] = value


def _environment() -> dict[str, str]:
    known = (name for name in sorted(os.environ) if name.startswith(KNOWN_SWITCHES) and not name.endswith(PLACES))
    return {name: os.environ[name] for name in known}


def _host() -> dict[str, Any]:
    host: dict[str, Any] = {"cpu_count": os.cpu_count(), "platform": sys.platform}
    if hasattr(os, "sched_getaffinity"):
        host["cpus_allowed"] = len(os.sched_getaffinity(0))
    try:
        host["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        host["memory_bytes"] = None
    quota = _cpu_quota()
    return host if quota is None else {**host, "cpu_quota": quota}


def _cpu_quota() -> float | None:
    """Processors that the control group of this process may use; None where there is no limit. Docker's --cpus sets it, and no library
    that counts processors sees it."""
    for name, period in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            with open("/sys/fs/cgroup/" + name, encoding="ascii") as stream:
                words = stream.read().split()
            if period is not None:
                with open("/sys/fs/cgroup/" + period, encoding="ascii") as stream:
                    words += stream.read().split()
            return round(int(words[0]) / int(words[1]), 2) if int(words[0]) > 0 else None
        except (OSError, ValueError, IndexError):  # no such group, or "max": no limit
            continue
    return None
