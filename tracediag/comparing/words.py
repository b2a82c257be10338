"""The sentences of a comparison: what a part is called, how step times stand to each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SAME", "milliseconds", "part_name", "shapes_text", "stands", "times"]

SAME = 1.005
"""A ratio below this is told as the same time."""
NAMED = {
    "evaluation": "evaluation inside the training",
    "long_steps": "steps far longer than usual, cause not recorded",
    "outside": "time in which the trace shows nothing",
}
IDLE = {
    "input": "waiting for input", "compile": "waiting for compilation", "alloc": "driver memory calls", "sync": "synchronisation",
    "runtime": "runtime calls", "op": "operators on the host", "python": "Python", "long_launch": "long launch calls",
    "launch": "launch calls", "queue": "launch latency", "unknown": "reason unknown",
}  # fmt: skip


def part_name(phase: str | None, kind: str | None, owner: str | None, device: bool) -> str:
    """'backward, conv'; 'forward, device idle: Python'. device: a device took part on either side."""
    place = f"{phase}, " if phase else ""
    if owner in NAMED:
        return NAMED[owner]
    if owner is not None:
        return f"{place}device idle: {IDLE.get(owner, owner)}" if device else f"{place}between operators"
    return f"{place}{kind.replace('_', ' ')}" if kind else phase or "work of an unknown kind"


def shapes_text(shapes: str | None) -> str:
    """'[[1920,18,1],[4],[]]' as '1920x18x1, 4'; 'unknown shapes' where they are."""
    found = re.findall(r"\[([\d,]+)\]", shapes or "")
    return ", ".join(shape.replace(",", "x") for shape in found) or "unknown shapes"


def times(ratio: float) -> str:
    """1.02, 1.4, 14: as many decimals as matter."""
    return f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def milliseconds(value: float) -> str:
    """Three significant digits, no exponent."""
    if abs(value) < 0.1:
        return f"{value * 1000:.3g} µs"
    return f"{value:.0f}" + " ms" if abs(value) >= 100 else f"{value:.3g} ms"


def stands(step: Mapping[str, Any]) -> str:
    """'A takes 14 times as long as B (70.1 ms against 4.93 ms a step)'."""
    a, b, ratio = step["a_ms"], step["b_ms"], step["ratio"]
    if not (a and b):
        return "neither side shows any time" if a == b else f"only {'A' if a else 'B'} shows any time ({milliseconds(a or b)})"
    slow, fast, one, two = ("A", "B", a, b) if (ratio or 1) >= 1 else ("B", "A", b, a)
    factor = max(ratio, 1 / ratio) if ratio else 1.0
    word = "against" if factor >= SAME else "and"
    per = [f"a {step[side.lower()]['per']}" for side in (slow, fast)]
    both = f"({milliseconds(one)}{'' if per[0] == per[1] else f' {per[0]}'} {word} {milliseconds(two)} {per[1]})"
    return f"{slow} takes {times(factor)} times as long as {fast} {both}" if factor >= SAME else f"the two take the same time {both}"
