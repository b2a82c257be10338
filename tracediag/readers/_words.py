"""Read decimal numbers and compare fixed text at many places of one buffer at once, eight bytes a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tracediag.columns import IntArray

__all__ = ["MARGIN", "Words", "word"]

Uint64Array = npt.NDArray[np.uint64]
MARGIN = 64
"""Bytes that must stand behind every place that is looked at."""
LONGEST = 18
"""Digits that always fit into int64; longer numbers count as none."""

_ONES = np.uint64(0x0101010101010101)
_ZEROS = np.uint64(0x3030303030303030)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_OVER_NINE = np.uint64(0x7676767676767676)
_HIGH = np.uint64(0x8080808080808080)
_PAIRS, _FOURS, _EIGHTS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
_BYTE, _TOP, _ONE, _7, _8, _16, _32 = (np.uint64(n) for n in (255, 56, 1, 7, 8, 16, 32))
_10, _100, _10000 = (np.uint64(n) for n in (10, 100, 10_000))
_7_OF_8, _14_OF_16 = np.uint64(0x007F007F007F007F), np.uint64(0x3FFF3FFF3FFF3FFF)
_14_OF_32, _28_OF_32, _28_OF_64 = np.uint64(0x00003FFF00003FFF), np.uint64(0x0FFFFFFF0FFFFFFF), np.uint64(0x0FFFFFFF)
_POWERS = 10 ** np.arange(9, dtype=np.int64)
_FRACTION = np.array([1000, 100, 10, 1])
_MOST_MICROSECONDS = (1 << 62) // 1000


def word(text: bytes) -> np.uint64:
    """The first eight bytes of `text` as `Words` sees them."""
    return np.uint64(int.from_bytes(text[:8].ljust(8, b"\0"), "little"))


class Words:
    """The bytes of a buffer, alone (`data`) and as the eight bytes that begin at each place (`words`)."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.data = np.frombuffer(buffer, np.uint8)
        self.words: Uint64Array = np.ndarray((max(len(buffer) - 7, 0),), "<u8", buffer, 0, (1,))

    def equal(self, pos: IntArray, text: bytes) -> npt.NDArray[np.bool_]:
        """Whether `text` stands at each place, shape (n,)."""
        if len(text) < 8:
            mask = np.uint64((1 << 8 * len(text)) - 1)
            return np.asarray((self.words[pos] & mask) == word(text))
        same: npt.NDArray[np.bool_] = self.words[pos] == word(text)
        for at in (*range(8, len(text) - 8, 8), len(text) - 8) if len(text) > 8 else ():
            same &= self.words[pos + at] == word(text[at:])
        return same

    def digits(self, pos: IntArray) -> tuple[IntArray, IntArray]:
        """(value, end) of the decimal digits at each place, int64, shape (n,); end == pos where there are none or too many."""
        value, count = _eight(self.words[pos])
        end = pos + count
        full = np.flatnonzero(count == 8)
        while len(full):
            more, count = _eight(self.words[end[full]])
            value[full] = value[full] * _POWERS[count] + more
            end[full] += count
            long = end[full] - pos[full] > LONGEST
            end[full[long]] = pos[full[long]]
            full = full[(count == 8) & ~long]
        return value, end

    def past_digits(self, pos: IntArray) -> IntArray:
        """End of the decimal digits at each place, of up to LONGEST + 6; pos where there are none, shape (n,)."""
        count = _count(self.words[pos])
        end = pos + count
        full = np.flatnonzero(count == 8)
        while len(full):
            count = _count(self.words[end[full]])
            end[full] += count
            full = full[(count == 8) & (end[full] - pos[full] <= LONGEST)]
        return end

    def before_digits(self, pos: IntArray) -> IntArray:
        """Start of the up to 16 decimal digits that end at each place, shape (n,)."""
        count = _count(self.words[pos - 8].byteswap())
        full = np.flatnonzero(count == 8)
        if len(full):
            count[full] += _count(self.words[pos[full] - 16].byteswap())
        return np.asarray(pos - count)

    def varints(self, pos: IntArray) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
        """(value, end, known) of the protobuf varint at each place, shape (n,); known: False for those of more than eight bytes."""
        x = self.words[pos]
        last = ~x & _HIGH
        last &= ~last + _ONE
        count = ((((last >> _7) - _ONE) & _ONES) * _ONES) >> _TOP
        x &= (last | (last - _ONE)) & _SEVEN
        x = (x & _7_OF_8) | ((x >> _ONE) & ~_7_OF_8 & _14_OF_16)
        x = (x & _14_OF_32) | ((x >> np.uint64(2)) & _28_OF_32 & ~_14_OF_32)
        x = (x & _28_OF_64) | ((x >> np.uint64(4)) & ~_28_OF_64)
        return x.astype(np.int64), pos + count.astype(np.int64) + 1, count < _8

    def nanoseconds(self, pos: IntArray) -> tuple[IntArray, IntArray]:
        """(ns, end) of decimal microseconds with up to three decimals at each place; end == pos where it is no such number."""
        whole, end = self.digits(pos)
        none = (end == pos) | (whole > _MOST_MICROSECONDS)
        dotted = np.flatnonzero((self.data[end] == 46) & ~none)
        result = whole * 1000
        if len(dotted):
            begin = end[dotted] + 1
            part, stop = self.digits(begin)
            count = stop - begin
            result[dotted] += part * _FRACTION[np.minimum(count, 3)]
            end[dotted] = stop
            none[dotted] |= (count == 0) | (count > 3)
        end[none] = pos[none]
        return result, end


def _eight(octets: Uint64Array) -> tuple[IntArray, IntArray]:
    """(value, count) of the decimal digits at the beginning of each eight bytes.

    All bytes of a word are treated at once: those that are no digit get their high bit set, the lowest of these bits tells how many
    digits stand before it, and three multiplications add up pairs, fours and eights of digits.
    """
    x = octets ^ _ZEROS
    count = _leading(x)
    x <<= (_8 - count) << np.uint64(3)
    x = (x * _10 + (x >> _8)) & _PAIRS
    x = (x * _100 + (x >> _16)) & _FOURS
    x = (x * _10000 + (x >> _32)) & _EIGHTS
    return x.astype(np.int64), count.astype(np.int64)


def _count(octets: Uint64Array) -> IntArray:
    """Number of decimal digits at the beginning of each eight bytes."""
    return _leading(octets ^ _ZEROS).astype(np.int64)


def _leading(x: Uint64Array) -> Uint64Array:
    """Number of bytes below ten at the beginning of each eight."""
    odd = (((x & _SEVEN) + _OVER_NINE) | x) & _HIGH
    lowest = odd & (~odd + _ONE)
    return np.asarray(((((lowest >> _7) - _ONE) & _ONES) * _ONES) >> _TOP)
