"""Settings, versions and devices in which two runs differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.comparing.side import Side

__all__ = ["settings_of", "settings_that_differ"]

LEFT_OUT = ("host.memory_bytes", "dynamo.", "torch.cuda_used", "torch.hooks.", "torch.subnormal.")
"""Facts that differ from run to run and change nothing."""


def settings_of(side: Side) -> dict[str, str]:
    """Setting -> its value as text: flags, environment switches, versions, threads, optimizers, devices."""
    return dict(sorted(_settings(side)))


def _settings(side: Side) -> Iterator[tuple[str, str]]:
    facts = side.trace.facts if side.trace is not None else {}
    for row in facts.get("flags") or ():
        name = str(row["flag"])
        if row.get("value") is not None and not name.startswith(LEFT_OUT) and not name.endswith(".source"):  # a line is no setting
            yield name, _text(row["value"])
    run = side.report.run or {}
    if not facts.get("flags"):
        for name, version in (run.get("versions") or {}).items():
            yield f"versions.{name}", str(version)
    names = sorted({str(row.get("name") or row.get("device")) for row in run.get("devices") or ()})
    if names:
        yield "devices", ", ".join(names)
    for i, row in enumerate(facts.get("optimizers") or ()):
        for key in ("class", "module", "foreach", "fused", "weight_decay", "momentum"):
            if row.get(key) is not None:
                yield f"optimizer {i}: {key}", str(row[key])
    for i, row in enumerate(facts.get("loaders") or ()):
        for key in ("batch_size", "num_workers", "pin_memory", "persistent_workers", "drop_last"):
            if row.get(key) is not None:
                yield f"loader {i}: {key}", str(row[key])
    for row in facts.get("functions") or ():
        if row.get("jit_compile") is not None and (row.get("calls") or 0) > 1:
            yield f"function {row.get('name')}: jit_compile", str(row["jit_compile"])


def _text(value: Any) -> str:
    """A value that is JSON text, plainly."""
    try:
        told = json.loads(value)
    except (TypeError, ValueError):
        return str(value)
    return told if isinstance(told, str) else json.dumps(told)


def settings_that_differ(a: Side, b: Side) -> tuple[dict[str, Any], ...]:
    """[{name, a, b}] in order of names; of two frameworks, or beside a report, only what both have (versions, devices)."""
    one, two = settings_of(a), settings_of(b)
    same = a.frameworks == b.frameworks
    told = a.trace is not None and b.trace is not None
    names = sorted({*one, *two} if same and told else {*one} & {*two})
    names = names if same else [name for name in names if not name.startswith("optimizer")]
    return tuple({"name": name, "a": one.get(name), "b": two.get(name)} for name in names if one.get(name) != two.get(name))
