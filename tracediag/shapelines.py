"""Source lines of operators whose shapes change from step to step: what was looked at tells them by the extents that stay the same."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["VaryingShapes"]

_NUMBER = re.compile(r"\d+")
Template = tuple[str | None, ...]
"""The extents of all inputs in order, None where they vary."""


class VaryingShapes:
    """Lines by operator, shapes and place in the step, learned from rows (op name, in_shapes as JSON, ordinal or -1, 'file:line').

    A line that was seen with two shapes or more, some extents of which were always the same, stands for the shapes between and beyond.
    """

    def __init__(self, rows: Iterable[tuple[str, str | None, int, str]]) -> None:
        seen: dict[tuple[str, str], dict[tuple[int, str], set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
        for name, shapes, ordinal, line in rows:
            if shapes:
                seen[name, _NUMBER.sub("#", shapes)][ordinal, line].add(tuple(_NUMBER.findall(shapes)))
        found = ((key, _templates(lines)) for key, lines in seen.items())
        self._templates = {key: templates for key, templates in found if templates}

    def line(self, name: str, shapes: str | None, ordinal: int) -> str | None:
        """The line of an operator whose shapes were not seen; None where no line or more than one fits."""
        templates = self._templates.get((name, _NUMBER.sub("#", shapes))) if shapes else None
        if templates is None or shapes is None:
            return None
        extents = _NUMBER.findall(shapes)
        for place in (ordinal, -1):
            fitting = {line for at, line, template in templates if at == place and _fits(template, extents)}
            if fitting:
                return fitting.pop() if len(fitting) == 1 else None
        return None


def _templates(lines: dict[tuple[int, str], set[tuple[str, ...]]]) -> list[tuple[int, str, Template]]:
    found = []
    for (ordinal, line), shapes in lines.items():
        template = tuple(column[0] if len(set(column)) == 1 else None for column in zip(*shapes, strict=True))
        if None in template and any(template):
            found.append((ordinal, line, template))
    return found


def _fits(template: Template, extents: list[str]) -> bool:
    return all(fixed is None or fixed == extent for fixed, extent in zip(template, extents, strict=True))
