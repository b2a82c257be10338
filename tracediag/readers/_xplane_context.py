"""What is the same for all events of an xplane's plane: ids of its stats, and role, name and label by metadata, as arrays to index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracediag.columns import ROLES, IntArray
from tracediag.readers._coding import NONE, Codes
from tracediag.readers._xplane_planes import Place, Used, named_event
from tracediag.readers._xplane_space import Meta, Plane

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracediag.readers._xplane_text import Texts

__all__ = ["ROLE_CODE", "PlaneContext"]

ROLE_CODE = {role: code for code, role in enumerate(ROLES)}


class PlaneContext:
    """Tables of one plane. Codes refer to the tables of the columns; role -1 leaves an event out."""

    def __init__(self, codes: dict[str, Codes], text: Texts, plane: Plane, place: Place, used: list[Used], wanted: Collection[str]) -> None:
        """wanted: names of the stats of events that are asked for."""
        self.place, self.used, self.names = place, used, plane.stat_names
        self.keys = {name: key for key, name in plane.stat_names.items()}
        self.wanted = np.ones(1 << 14, np.bool_)  # by id
        unwanted = [key for key, name in plane.stat_names.items() if 0 <= key < len(self.wanted) and name not in wanted]
        self.wanted[unwanted] = False
        self.ids = np.array(sorted(plane.events), np.int64)
        metas = [plane.events[key] for key in self.ids.tolist()] + [Meta()]
        named = [named_event(meta, place) for meta in metas]
        self.role = np.array([ROLE_CODE[n.role] if n.role else -1 for n in named], np.int8)
        self.whole = plane.whole
        self.name = codes["name"].table.codes((n.name for n in named), len(named))
        self.label = codes["label"].table.codes((n.label for n in named), len(named))
        self.memory = np.array([{"MemoryAllocation": 1, "MemoryDeallocation": -1}.get(m.name, 0) for m in metas], np.int8)
        self.flops = _meta_numbers(metas, "flops")
        self.bytes = _meta_numbers(metas, "bytes_accessed")
        self.category = text.codes((str(m.stats.get("hlo_category") or "") for m in metas), len(metas))
        self.line_role = np.array([ROLE_CODE[u.role] if u.role else -1 for u in used], np.int8)
        self.stamp = np.array([u.line.timestamp_ns for u in used], np.int64)
        self.steps = np.array([u.line.name == "Steps" for u in used], np.bool_)
        self.step_number = np.array([int(m.name) if m.name.isdecimal() and len(m.name) < 19 else NONE for m in metas], np.int64)
        self.lane = codes["lane"].table.codes((u.lane for u in used), len(used))

    def index(self, meta: IntArray) -> IntArray:
        """Row of each metadata id in the tables above; the last row stands for unknown ids."""
        if not len(self.ids):
            return np.zeros(len(meta), np.int64)
        place = np.minimum(np.searchsorted(self.ids, meta), len(self.ids) - 1)
        return np.where(self.ids[place] == meta, place, len(self.ids))


def _meta_numbers(metas: list[Meta], stat: str) -> IntArray:
    return np.array([v if isinstance(v := m.stats.get(stat), int) and v < 1 << 63 else NONE for m in metas], np.int64)
