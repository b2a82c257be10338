"""Split the args of many Kineto events at once into the numbers that differ from event to event and the text that repeats.

The numbers stand at the beginning ("External id", "correlation") and, as "Ev Idx", at the end. Which of them there are, in which order
and with which spaces, is learnt from the events themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracediag.readers._coding import NONE

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.readers._words import Words

__all__ = ["Split", "Template", "Templates"]

VARYING = frozenset((
    b"External id", b"external id", b"Record function id", b"Sequence number", b"Fwd thread id", b"Ev Idx", b"correlation", b"cbid",
    b"Total Reserved", b"Total Allocated", b"Bytes", b"Addr", b"Device Id", b"Device Type", b"Trace iteration",
))  # fmt: skip
"""Numbers that tell events apart, or that stand between those: the repeating text begins behind the last of them."""
MOST = 6
"""Templates tried on a batch."""
_PAIR = re.compile(rb'(\s*(?:"Trace name": "[^"\\]{1,40}", )?"([^"\\]{1,40})":\s*)(-?)(\d{1,18})(,\s*|\s*$)')
_LAST = b', "Ev Idx": '


@dataclass(frozen=True)
class Template:
    """Fixed texts before each number, keys of the numbers, and the text behind the last of them."""

    pieces: tuple[bytes, ...]
    keys: tuple[bytes, ...]
    tail: bytes

    @staticmethod
    def of(line: bytes) -> Template:
        """The template of one line of args."""
        pieces, keys, tails = [], [], []
        at, used, before = 0, 0, b""
        while match := _PAIR.match(line, at):
            pieces.append(before + match.group(1) + match.group(3))
            keys.append(match.group(2))
            before = match.group(5)
            tails.append(before)
            at = match.end()
            if match.group(2) in VARYING:
                used = len(keys)
        return Template(tuple(pieces[:used]), tuple(keys[:used]), tails[used - 1] if used else line[: len(line) - len(line.lstrip())])


@dataclass
class Split:
    """Args of n events: numbers by key, NONE for rows without it, and the span of the repeating text (empty: none).

    known: rows that are split; the others fit no template.
    """

    numbers: dict[bytes, IntArray]
    start: IntArray
    end: IntArray
    known: npt.NDArray[np.bool_]

    def put(self, rows: IntArray, start: IntArray, end: IntArray, values: dict[bytes, IntArray]) -> None:
        """Write what was found for some rows."""
        self.known[rows] = True
        self.start[rows], self.end[rows] = start, end
        for key, value in values.items():
            if key not in self.numbers:
                self.numbers[key] = np.full(len(self.known), NONE)
            self.numbers[key][rows] = value

    def number(self, key: bytes) -> IntArray:
        """The number of each row, NONE where it has none."""
        return self.numbers[key] if key in self.numbers else np.full(len(self.known), NONE)


class Templates:
    """The templates of one group of events, in the order in which they were met."""

    def __init__(self, wanted: Collection[bytes]) -> None:
        """wanted: keys whose numbers are read; the others are passed over."""
        self._wanted, self._found = frozenset(wanted), list[Template]()

    def split(self, text: Words, start: IntArray, end: IntArray) -> Split:
        """Split the lines [start, end)."""
        n = len(start)
        result = Split({}, start.copy(), end.copy(), np.zeros(n, np.bool_))
        left = np.arange(n)
        for template in self._found:
            left = self._apply(template, text, left, result)
        tried = 0
        while len(left) and tried < MOST and len(self._found) < 8 * MOST:
            template = Template.of(text.buffer[start[left[0]] : end[left[0]]])
            if template in self._found:
                break  # it has its form but not its numbers
            self._found.append(template)
            left = self._apply(template, text, left, result)
            tried += 1
        return result

    def _apply(self, template: Template, text: Words, rows: IntArray, result: Split) -> IntArray:
        """Split those of `rows` that fit; returns the others."""
        if len(rows) == 0:
            return rows
        here, pos = rows, result.start[rows]
        values: dict[bytes, IntArray] = {}
        for piece, key in zip(template.pieces, template.keys, strict=True):
            good = text.equal(pos, piece)
            begin = pos + len(piece)
            if key in self._wanted:
                value, pos = text.digits(begin)
                values[key] = -value if piece.endswith(b"-") else value
            else:
                pos = text.past_digits(begin)
            here, pos, values = _only(good & (pos > begin), here, pos, values)
        stop = result.end[here]
        if template.tail:
            good = text.equal(pos, template.tail)
            pos = pos + len(template.tail)
            good &= pos <= stop
        else:
            good = pos == stop if template.pieces else pos <= stop
        here, pos, values = _only(good, here, pos, values)
        result.put(here, pos, _without_last(text, pos, result.end[here]), values)
        return rows if len(here) == 0 else rows[~result.known[rows]]


def _only(
    good: npt.NDArray[np.bool_], rows: IntArray, pos: IntArray, values: dict[bytes, IntArray]
) -> tuple[IntArray, IntArray, dict[bytes, IntArray]]:
    """The rows that are good, with what belongs to them."""
    if good.all():
        return rows, pos, values
    return rows[good], pos[good], {key: value[good] for key, value in values.items()}


def _without_last(text: Words, start: IntArray, stop: IntArray) -> IntArray:
    """End of the repeating text: before a last "Ev Idx" where that is what the line ends with."""
    result = stop.copy()
    rows = np.flatnonzero(stop - start > len(_LAST) + 1)
    if len(rows):
        begin = text.before_digits(stop[rows])
        last = text.equal(begin - len(_LAST), _LAST) & (begin < stop[rows]) & (begin - len(_LAST) >= start[rows])
        result[rows[last]] = begin[last] - len(_LAST)
    return result
