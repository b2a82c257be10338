"""What a page shows of the trace itself: a stretch of the timeline, its operations, its steps and its memory, as plain data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracediag.excerpt.marks import LEAST_SPANS, MAX_SPANS, gaps_of, idle_in, marks_of, phases_of, steps_of
from tracediag.excerpt.optable import op_table
from tracediag.excerpt.series import memory_series, step_series
from tracediag.excerpt.timeline import Texts, lanes_of, pick, rows_of
from tracediag.excerpt.window import choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.claims import Claim
    from tracediag.trace import Trace

__all__ = ["excerpt"]

MAX_EVENTS = 16_000
MAX_BYTES = 800_000
"""Of the excerpt as JSON; events take some forty bytes, but long names can make them many times longer."""
LEAST_EVENTS = 500


def excerpt(trace: Trace, claims: Sequence[Claim], *, size: int | None = None, alone: bool = False) -> dict[str, Any]:
    """The excerpt of `trace` as JSON data: the shortest events are left out, and it is said how many.

    claims: those of the report's findings, in its order. size: most bytes (MAX_BYTES). alone: the median step without its neighbours.
    Times are ns from the start of the excerpt unless a key says otherwise; text stands as an index into `strings`, -1 for NULL.
    """
    events = MAX_EVENTS
    while True:
        made = _excerpt(trace, claims, events, 0 if alone else 4 * events)
        if events <= LEAST_EVENTS or _bytes(made) <= (size or MAX_BYTES):
            return made
        events = events * 3 // 4


def _bytes(made: dict[str, Any]) -> int:
    """Length as JSON in a page, where the signs of markup are written as six characters."""
    told = json.dumps(made, separators=(",", ":"))
    return len(told) + 5 * sum(map(told.count, "<>&"))


def _excerpt(trace: Trace, claims: Sequence[Claim], events: int, wide: int) -> dict[str, Any]:
    """The excerpt with at most so many events. wide: most events of the trace with which the step keeps its neighbours."""
    window = choose(trace, wide)
    lanes, hidden = lanes_of(trace, window)
    rows, left_out = pick(trace, window, lanes, events)
    idle, waits = idle_in(trace, window)
    spans = max(MAX_SPANS // max(len(claims), 1), LEAST_SPANS)
    texts = Texts()
    return {
        "window": window.as_dict(trace),
        "left_out": left_out | {"lanes": hidden, "gaps": waits},
        "lanes": lanes,
        "steps": steps_of(trace, window),
        "phases": phases_of(trace, window),
        "events": rows_of(trace, window, rows, lanes, texts),
        "gaps": gaps_of(trace, window, idle, rows),
        "marks": [marks_of(trace, window, claim, rows, idle, spans) for claim in claims],
        "ops": op_table(trace, texts),
        "series": step_series(trace),
        "memory": memory_series(trace, window.rank),
        "strings": texts.values,
    }
