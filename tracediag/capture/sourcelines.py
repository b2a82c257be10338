"""Map ops to the user's source lines, from a short recording in which every executed line is a range."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["map_lines"]

PREFIX = "tracediag_line#"
MOST = 20_000
STEP = "ProfilerStep#"


def map_lines(trace: Path) -> list[list[Any]]:
    """Rows [op name, shapes of its inputs as JSON or null, ordinal, "train.py:12"] of a Kineto trace with line ranges.

    ordinal: -1 for the line on which most ops of that name and shapes lie; those on other lines have rows of their own: which of them
    within a step, from 0, in order of start over all threads.
    """
    try:
        events = json.loads(trace.read_bytes())["traceEvents"]
    except (ValueError, KeyError, TypeError):  # cut off while it was written: no lines
        return []
    ranges = [event for event in events if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation")]
    found: dict[tuple[str, str | None], dict[int, str]] = {}
    _walk(sorted(ranges, key=lambda event: (float(event["ts"]), -float(event["dur"]))), found)
    return [row for key, lines in found.items() for row in _rows(key, lines)][:MOST]


def _walk(ranges: list[dict[str, Any]], found: dict[tuple[str, str | None], dict[int, str]]) -> None:
    """All threads' events by start: the innermost open line range of its thread is the line of an op."""
    open_lines: dict[Any, list[tuple[float, str]]] = defaultdict(list)
    seen: dict[tuple[str, str | None], int] = defaultdict(int)
    for event in ranges:
        start, name, lane = float(event["ts"]), event["name"], open_lines[event.get("tid")]
        while lane and lane[-1][0] <= start:
            lane.pop()
        if name.startswith(PREFIX):
            lane.append((start + float(event["dur"]), name[len(PREFIX) :]))
        elif name.startswith(STEP):
            seen.clear()
        else:
            shapes = (event.get("args") or {}).get("Input Dims")
            key = (name, None if shapes is None else json.dumps(shapes, separators=(",", ":")))
            ordinal, seen[key] = seen[key], seen[key] + 1
            if lane:
                found.setdefault(key, {}).setdefault(ordinal, lane[-1][1])


def _rows(key: tuple[str, str | None], lines: dict[int, str]) -> list[list[Any]]:
    usual = max(sorted(set(lines.values())), key=list(lines.values()).count)
    return [[*key, -1, usual]] + [[*key, ordinal, line] for ordinal, line in sorted(lines.items()) if line != usual]
