"""Where the step goes, each instant given to one phase: the busy device's, else that of the gap's owner, else the host's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracediag.intervals import Spans, empty, exclusive, intersect, merge, subtract, total

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["ORDER", "Layers", "Split", "host_layers", "split_window", "window_layers"]

ORDER = ("optimizer", "backward", "forward", "comm", "input", "other")
"""Precedence where work of several phases runs at once: computation hides communication and input, not the reverse."""


@dataclass(frozen=True)
class Split:
    """Nanoseconds of one window by phase (keys: ORDER). The three parts of all phases add up to the window exactly."""

    host: dict[str, int]
    device: dict[str, int]
    idle: dict[str, int]


@dataclass(frozen=True)
class Layers:
    """Disjoint sets of intervals by phase (keys: ORDER) that cover one window: host at work, device at work, device idle."""

    host: dict[str, Spans]
    device: dict[str, Spans]
    idle: dict[str, Spans]


def host_layers(start: IntArray, end: IntArray, phase: IntArray, window: Spans) -> list[Spans]:
    """Disjoint host time by phase in ORDER; holes between two events of one phase belong to it; the rest of the window is `other`.

    start, end, phase: host events that show the phase (operators, optimizer and backward ranges); phase: index into ORDER.
    """
    layers = exclusive([intersect(merge(start[phase == i], end[phase == i]), window) for i in range(len(ORDER))])
    begin = np.concatenate([s for s, _ in layers])
    stop = np.concatenate([e for _, e in layers])
    owner = np.repeat(np.arange(len(ORDER)), [len(s) for s, _ in layers])
    order = np.argsort(begin, kind="stable")
    begin, stop, owner = begin[order], stop[order], owner[order]
    same = owner[1:] == owner[:-1]
    filled = []
    for i, layer in enumerate(layers):
        at = np.flatnonzero(same & (owner[1:] == i))
        filled.append(_union(layer, intersect(merge(stop[at], begin[at + 1]), window)))
    taken = _union(*filled)
    filled[-1] = _union(filled[-1], subtract(window, taken))
    return filled


def _union(*sets: Spans) -> Spans:
    return merge(np.concatenate([s for s, _ in sets]), np.concatenate([e for _, e in sets]))


def window_layers(window: Spans, host: list[Spans], device: dict[str, Spans] | None, gaps: dict[str, Spans] | None) -> Layers:
    """Who has each instant of one window. host: disjoint layers in ORDER that cover it; device: merged busy time by phase, gaps: idle
    time by the phase of its owner; both None where no device took part."""
    if device is None or gaps is None:
        nothing = {name: empty() for name in ORDER}
        return Layers(dict(zip(ORDER, host, strict=True)), nothing, dict(nothing))
    busy = exclusive([intersect(device.get(name, empty()), window) for name in ORDER])
    left = subtract(window, _union(*busy))
    idle = exclusive([intersect(gaps.get(name, empty()), left) for name in ORDER])
    rest = subtract(left, _union(*idle))
    return Layers(
        {name: intersect(layer, rest) for name, layer in zip(ORDER, host, strict=True)},
        dict(zip(ORDER, busy, strict=True)),
        dict(zip(ORDER, idle, strict=True)),
    )


def split_window(window: Spans, host: list[Spans], device: dict[str, Spans] | None, gaps: dict[str, Spans] | None) -> Split:
    """How much of one window each phase has; the arguments are those of `window_layers`."""
    layers = window_layers(window, host, device, gaps)
    return Split(*({name: total(spans) for name, spans in part.items()} for part in (layers.host, layers.device, layers.idle)))
