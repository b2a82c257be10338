"""Where the parts of each event lie in a buffer of JSON that is laid out as Kineto writes it, one line a part; decodes nothing.

{                                                            opening
  "ph": "X", "cat": "cpu_op", "name": "aten::to", ...        header, one line or two
  "ts": 6027413646370.922, "dur": 1347.629,                  times
  "args": {
    "External id": 1, ...                                    content
  }
},
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tracediag.readers._words import MARGIN, Words, word

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["Layout", "find_layout"]

_START = b"\n  {\n"
_BETWEEN = b"\n  },\n  {\n"
_OPENING, _HEADER, _TIMES = word(b"  {\n    "), word(b'    "ph"'), word(b'    "ts"')
_ARGS, _ARGS_REST, _ARGS_END = word(b'    "arg'), word(b's": {\n  '), word(b"    }\n  ")
_CLOSING, _CLOSING_MASK = word(b"  },\n"), np.uint64((1 << 40) - 1)
_FLOW_REST, _FLOW_MASK = word(b': "s", "'), np.uint64(0xFFFFFFFF00FFFFFF)
_TS_REST, _DUR, _COMMA, _SPACE = word(b'  "ts": '), word(b', "dur":'), 44, 32
_FLOWS = np.frombuffer(b"stf", np.uint8)


class Layout(NamedTuple):
    """n events in file order. size: bytes that they take, up to the line before the next event.

    start, end: span of each event, shape (n,). plain: events of the usual layout, flow: flow events, whose parts do not matter; boolean,
    shape (n,). For the m plain events: header (start, end), content of args (start, end), start and duration in ns, shape (m,).
    """

    size: int
    start: IntArray
    end: IntArray
    plain: npt.NDArray[np.bool_]
    flow: npt.NDArray[np.bool_]
    header: tuple[IntArray, IntArray]
    content: tuple[IntArray, IntArray]
    start_ns: IntArray
    dur_ns: IntArray


def find_layout(text: Words) -> Layout | None:
    """The events at the beginning of a buffer that begins between two events; None when they are not laid out so."""
    stop = text.buffer.rfind(_BETWEEN, 0, len(text.buffer) - MARGIN)
    if stop < 0 or not text.buffer.startswith(_START):
        return None
    breaks = np.flatnonzero(text.data[: stop + 6] == 10)  # up to the one behind the closing line of the last event
    lines, line_ends = breaks[:-1] + 1, breaks[1:]
    first = text.words[lines]
    opening, closing = _events(text, first, lines)
    if len(opening) == 0:
        return None
    plain, times = _plain(text, first, lines, opening, closing)
    flow = _flows(text, first, lines, opening, closing)
    start, dur, good = _times(text, lines[times], line_ends[times])
    plain[np.flatnonzero(plain)[~good]] = False
    times, start, dur = times[good], start[good], dur[good]
    content = times + 2
    return Layout(
        int(line_ends[closing[-1]]), lines[opening], line_ends[closing] - 1, plain, flow,
        (lines[opening[plain] + 1], lines[times] - 1), (lines[content], line_ends[content]), start, dur,
    )  # fmt: skip


def _events(text: Words, first: npt.NDArray[np.uint64], lines: IntArray) -> tuple[IntArray, IntArray]:
    """Opening and closing line of each event, as far as one follows the other."""
    opening = np.flatnonzero(first == _OPENING)
    closing = np.append(opening[1:], len(lines)) - 1
    whole = (first[closing] & _CLOSING_MASK) == _CLOSING
    count = len(whole) if whole.all() else int(np.argmin(whole))
    return opening[:count], closing[:count]


def _plain(
    text: Words, first: npt.NDArray[np.uint64], lines: IntArray, opening: IntArray, closing: IntArray
) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """(which events have all the lines of the usual layout, the line of the times of those)."""
    size = closing - opening
    times = closing - 4
    plain = ((size == 6) | (size == 7)) & (first[opening + 1] == _HEADER)
    at = times[plain]
    fits = (first[at] == _TIMES) & (text.words[lines[at] + 2] == _TS_REST)
    fits &= (first[at + 1] == _ARGS) & (text.words[lines[at + 1] + 8] == _ARGS_REST) & (first[at + 3] == _ARGS_END)
    plain[np.flatnonzero(plain)[~fits]] = False
    return plain, at[fits]


def _flows(text: Words, first: npt.NDArray[np.uint64], lines: IntArray, opening: IntArray, closing: IntArray) -> npt.NDArray[np.bool_]:
    """Flow events of the usual layout: two lines of short values."""
    flow: npt.NDArray[np.bool_] = (closing - opening == 3) & (first[opening + 1] == _HEADER)
    at = lines[opening[flow] + 1] + 8
    fits = ((text.words[at] & _FLOW_MASK) == (_FLOW_REST & _FLOW_MASK)) & np.isin(text.data[at + 3], _FLOWS)
    flow[np.flatnonzero(flow)[~fits]] = False
    return np.asarray(flow)


def _times(text: Words, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """(start, duration, whether the line holds just these) of lines of times, in ns; no duration is 0."""
    start, at = text.nanoseconds(begin + 10)
    good: npt.NDArray[np.bool_] = at > begin + 10
    dur = np.zeros(len(begin), np.int64)
    timed = np.flatnonzero(good & (text.words[at] == _DUR) & (text.data[at + 8] == _SPACE))
    dur[timed], at[timed] = text.nanoseconds(at[timed] + 9)
    good[timed] &= text.data[at[timed] - 1] != _SPACE
    good &= (at == end - 1) & (text.data[at] == _COMMA)
    return start, dur, good
