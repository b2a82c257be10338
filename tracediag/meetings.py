"""Which collectives the ranks of one trace take part in together, and how long each takes once all have come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["Meetings", "meetings"]

QUERY = """
SELECT op_id, dense_rank() OVER (ORDER BY last_ns, name, process_group) - 1 AS number, last_ns, least_ns
FROM collectives WHERE met AND ranks > 1 AND place = 'device' ORDER BY op_id
"""


@dataclass(frozen=True, eq=False)
class Meetings:
    """One row a device op of a collective; all columns shape (n,), rows of the trace ascending.

    number: of the collective. last: start of its last rank, least: its shortest duration, which is the transfer; ns.
    """

    row: IntArray
    number: IntArray
    last: IntArray
    least: IntArray

    def of(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """(places among `rows`, places here) of the rows that are part of a meeting."""
        at = np.minimum(np.searchsorted(self.row, rows), max(len(self.row) - 1, 0))
        found = np.flatnonzero(self.row[at] == rows) if len(self.row) else np.zeros(0, np.int64)
        return found, at[found]


def meetings(trace: Trace) -> Meetings:
    """The collectives of which the starts of all ranks are known, on one clock (see the view `collectives`)."""
    found = trace.connection().execute(QUERY).fetchnumpy()
    return Meetings(*(np.asarray(found[name], np.int64) for name in ("op_id", "number", "last_ns", "least_ns")))
