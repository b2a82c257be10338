"""Match the operations of two sides by kind, shape and place in the step, not by name alone; what meets nothing is listed.

In this order: the same name, shapes and strides; the same but for strides; products of the same size (a matrix product costs the same in
every framework, and so do its gradients); the whole of an optimizer's update, fused or not; other products of one kind and phase, with an
activation fused into them or not; a fusion and the pointwise work of its phase; one kind of one phase; and pointwise work that only one
side has goes to the product before it, as a bias does that the other side adds in one operation with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediag.comparing.flops import HEAVY, flops

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from tracediag.comparing.opgroups import OpGroup

__all__ = ["Unit", "match", "per_call"]

POINTWISE = (
    "elementwise",
    "activation",
    "reduction",
    "layout",
    "cast",
    "norm",
    "softmax",
    "loss",
    "memset",
    "random",
    "index",
    "alloc",
    None,
)
FUSION = re.compile(r"fusion|triton|_[Ff]used|^fused|_FusedMatMul|CompiledFunction|Compiled")
Groups = list["OpGroup"]


@dataclass(frozen=True)
class Unit:
    """Operations that do the same on both sides; by: what matched them. One side is empty where nothing meets the other."""

    by: str
    phase: str | None
    kind: str | None
    a: tuple[OpGroup, ...]
    b: tuple[OpGroup, ...]

    @property
    def a_ns(self) -> float:
        """Exposed ns a step on side a."""
        return sum(group.ns for group in self.a)

    @property
    def b_ns(self) -> float:
        """Exposed ns a step on side b."""
        return sum(group.ns for group in self.b)


def per_call(group: OpGroup) -> int | None:
    """Floating-point operations of one call, None: unknown or not counted for its kind."""
    if group.part.kind not in HEAVY:
        return None
    return flops(group.name, group.shapes, group.out_shapes, group.values)


def match(a: Sequence[OpGroup], b: Sequence[OpGroup], samples: tuple[int, int] = (1, 1)) -> tuple[Unit, ...]:
    """Units of all groups, largest difference first. samples: of a step, where the batches differ."""
    left, right = list(a), list(b)
    units: list[Unit] = []
    units += _take("name", left, right, lambda group, _: (group.part, group.name, group.shapes, group.strides))
    units += _take("strides", left, right, lambda group, _: (group.part, group.name, group.shapes) if group.strides else None)
    units += _take("size", left, right, lambda group, side: _size(group, samples[side]))
    units += _take(
        "optimizer", left, right, lambda group, _: "update" if group.part.phase == "optimizer" and not group.part.owner else None
    )
    units += _take("kind", left, right, lambda group, _: group.part if group.part.kind in HEAVY and not group.part.owner else None)
    units += _fusions(left, right)
    units += _take("kind", left, right, lambda group, _: group.part if group.part.kind or group.part.owner else None)
    units = _absorb(units, left, right)
    units += [_unit("none", [group], []) for group in left] + [_unit("none", [], [group]) for group in right]
    return tuple(sorted(units, key=lambda one: (-abs(one.a_ns - one.b_ns), _label(one))))


def _label(unit: Unit) -> str:
    head = (unit.a or unit.b)[0]
    return f"{head.name} {head.shapes} {head.part} {head.source}"


def _size(group: OpGroup, samples: int) -> Hashable:
    """Phase, kind and operations a sample of a product whose shapes tell them."""
    count = per_call(group)
    return None if count is None else (group.part.phase, group.part.kind, count / samples)


def _take(by: str, left: Groups, right: Groups, key: Callable[[OpGroup, int], Hashable]) -> list[Unit]:
    """Units of the groups that have the same key (not None) on both sides; they leave the lists."""
    found: dict[Hashable, tuple[Groups, Groups]] = defaultdict(lambda: ([], []))
    for side, groups in enumerate((left, right)):
        for group in groups:
            name = key(group, side)
            if name is not None:
                found[name][side].append(group)
    units = [_unit(by, *pair) for pair in found.values() if pair[0] and pair[1]]
    _drop(units, left, right)
    return units


def _unit(by: str, a: Iterable[OpGroup], b: Iterable[OpGroup]) -> Unit:
    ordered = tuple(tuple(sorted(groups, key=lambda group: (-group.ns, group.order))) for groups in (a, b))
    head = (ordered[0] or ordered[1])[0].part
    return Unit(by, head.phase, head.kind, *ordered)


def _drop(units: Iterable[Unit], left: Groups, right: Groups) -> None:
    used = {id(group) for unit in units for group in (*unit.a, *unit.b)}
    left[:] = [group for group in left if id(group) not in used]
    right[:] = [group for group in right if id(group) not in used]


def _fusions(left: Groups, right: Groups) -> list[Unit]:
    """In each phase the fused operations of one side with the pointwise work that is left on the other."""
    units = []
    for phase in sorted({str(group.part.phase) for group in (*left, *right)}):
        sides = [[g for g in groups if str(g.part.phase) == phase and not g.part.owner] for groups in (left, right)]
        fused = [[g for g in side if FUSION.search(g.name)] for side in sides]
        light = [[g for g in side if g.part.kind in POINTWISE] for side in sides]
        if fused[0] and not fused[1] and light[1]:
            units.append(_unit("fusion", fused[0], light[1]))
        elif fused[1] and not fused[0] and light[0]:
            units.append(_unit("fusion", light[0], fused[1]))
    _drop(units, left, right)
    return units


def _absorb(units: list[Unit], left: Groups, right: Groups) -> list[Unit]:
    """Give pointwise work that only one side has to the matched product before it in its phase."""
    extra: dict[int, tuple[Groups, Groups]] = defaultdict(lambda: ([], []))
    for side, groups in enumerate((left, right)):
        heads = sorted(
            ((g.part.phase, g.order, i) for i, unit in enumerate(units) if unit.kind in HEAVY for g in (unit.a, unit.b)[side]),
            key=lambda head: head[1],
        )
        for group in [g for g in groups if g.part.kind in POINTWISE and not g.part.owner]:
            before = [i for phase, order, i in heads if phase == group.part.phase and order <= group.order]
            if before:
                extra[before[-1]][side].append(group)
                groups.remove(group)
    return [_unit(unit.by, (*unit.a, *extra[i][0]), (*unit.b, *extra[i][1])) if i in extra else unit for i, unit in enumerate(units)]
