"""A Trace as Markdown for a notebook: what was recorded, where a step's time goes, the operators that take longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediag.reports import gfm, phrases
from tracediag.reports.markdown import breakdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.trace import Trace

__all__ = ["render"]

NAME = 100
LONGEST = """
SELECT name, kind, place, count(*)::BIGINT AS calls, sum(self_ns)::BIGINT AS own FROM ops
WHERE role IN ('op', 'kernel', 'copy', 'memset') GROUP BY ALL ORDER BY own DESC, name, place, kind LIMIT 10
"""


def render(trace: Trace) -> str:
    """The trace in a screenful. Times of operators are their own, without what they call, summed over the whole trace."""
    return "\n\n".join(_parts(trace)) + "\n"


def _parts(trace: Trace) -> Iterator[str]:
    script = (trace.run or {}).get("script")
    facts = [f"{phrases.number(len(trace))} rows in `ops`", *trace.frameworks, *([gfm.code(phrases.clip(script, NAME))] if script else [])]
    lines = [f"**Trace**: {', '.join(facts)}", f"Step: {phrases.step_line(trace.step_stats())}"]
    device = trace.device_stats()
    if device is not None:
        lines.append(f"Device: {phrases.device_line(device)}")
    yield "<br>".join(lines)
    parts = trace.breakdown()
    if parts:
        yield breakdown(parts)
    longest = trace.sql(LONGEST)
    rows = [
        [
            gfm.cell(phrases.shorten(row["name"], NAME)),
            gfm.cell(row["kind"]) if isinstance(row["kind"], str) else "",
            row["place"],
            phrases.number(row["calls"]),
            phrases.duration(row["own"] / 1e6),
        ]
        for row in longest.to_dict("records")
    ]
    if rows:
        yield gfm.table(["Longest operators", "kind", "place", "calls", "own time"], "lllrr", rows)
    tables = ", ".join(gfm.code(name) for name, frame in trace.frames.items() if len(frame))
    yield f"Tables for `.sql()`: {tables}. `tracediag.explain(trace)` names the causes."
