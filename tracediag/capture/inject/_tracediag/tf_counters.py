"""Running totals, and what of them fell into the step that is being told: a step may be told after the next has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tf_shapes import Shapes


class Counters:
    """Totals since import; tracings and compiles are told as totals, times as the part since the last step."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.tracings = 0
        self.compiles = 0
        self.compile_ns = 0
        self.loader_ns = 0
        self._told = (0, 0)  # compile_ns and loader_ns at the end of the last step told
        self._kept: dict[int, dict[str, Any]] = {}

    def _values(self, take: bool) -> dict[str, Any]:
        return {"tracings": self.tracings, "compiles": self.compiles, "compile_ns": self.compile_ns, "loader_ns": self.loader_ns,
                "batch": self.shapes.text(take)}  # fmt: skip

    def keep(self, when: int) -> None:
        """A step may have ended at `when` (ns); that is known later."""
        self._kept[when] = self._values(take=False)

    def forget(self) -> None:
        """Nothing that was kept is wanted any more."""
        if self._kept:
            self._kept.clear()

    def skip(self) -> None:
        """What was counted since the last step belongs to no step (an evaluation phase)."""
        self._told = (self.compile_ns, self.loader_ns)
        self.shapes.text()

    def sample(self, when: int | None) -> dict[str, Any]:
        """Values of the step that ends now, or that ended at `when`."""
        values = (self._kept.get(when) if self._kept and when is not None else None) or self._values(take=True)
        ends = (values["compile_ns"], values["loader_ns"])
        values["compile_ns"], values["loader_ns"] = max(0, ends[0] - self._told[0]), max(0, ends[1] - self._told[1])
        self._told = ends
        return values
