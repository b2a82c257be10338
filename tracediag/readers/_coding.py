"""Build columns piece by piece: dictionary-coded strings, nullable integers, exact nanoseconds from decimal text."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracediag.columns import Coded, IntArray, Ints

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

__all__ = [
    "NONE",
    "Codes",
    "Dictionary",
    "Growing",
    "Integers",
    "Keep",
    "int64",
    "joined_ints",
    "nanoseconds",
    "positive",
    "texts",
    "texts_if_any",
]

Keep = npt.NDArray[Any] | slice
"""Rows that are kept: a mask, their places, or all of them as a slice."""
NONE = -(1 << 63)
"""Stands for "no value" inside a reader only; it never leaves in a column."""
_SEP = b"\x00"  # cannot stand in JSON
_DIGITS = np.zeros(256, np.bool_)
_DIGITS[list(b"0123456789.,-")] = True


class Dictionary(dict[Any, int]):
    """Numbers its keys in order of first use."""

    def __missing__(self, key: Hashable) -> int:
        self[key] = code = len(self)
        return code

    def codes(self, keys: Iterable[Hashable], n: int) -> npt.NDArray[np.int32]:
        """Codes of `n` keys, int32, shape (n,)."""
        return np.fromiter(map(self.__getitem__, keys), np.int32, n)


class Growing:
    """An array that grows at its end, in place: the pieces that it is made of can be let go at once."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._cells = np.zeros(256, dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def extend(self, values: npt.NDArray[Any] | Sequence[Any]) -> None:
        """Append values."""
        end = self._n + len(values)
        if end > len(self._cells):
            self._cells.resize(end + end // 8, refcheck=False)  # nobody else holds it: `cells` is for passing use
        self._cells[self._n : end] = values
        self._n = end

    @property
    def cells(self) -> npt.NDArray[Any]:
        """What it holds, shape (n,); a view, gone with the next `extend`."""
        return self._cells[: self._n]


class Codes:
    """A growing string column: rows hold codes of keys, and each distinct key is turned into its string once, at the end."""

    def __init__(self, convert: Callable[[Any], str | None] = lambda key: key) -> None:
        self.table = Dictionary()
        self.convert = convert
        self._rows = Growing(np.int32)
        self._nulls = 0  # rows before the first that may hold something

    def add(self, keys: Iterable[Hashable], n: int) -> None:
        """Append `n` keys."""
        self.add_codes(self.table.codes(keys, n))

    def add_codes(self, codes: npt.NDArray[np.int32]) -> None:
        """Append rows that the caller has coded with `table`, -1 for NULL."""
        if self._nulls:
            self._rows.extend(np.broadcast_to(np.int32(-1), self._nulls))
            self._nulls = 0
        self._rows.extend(codes)

    def add_null(self, n: int) -> None:
        """Append `n` NULLs."""
        if len(self._rows):
            self._rows.extend(np.broadcast_to(np.int32(-1), n))
        else:
            self._nulls += n

    def coded(self, keep: Keep | None = None, *, last: bool = False) -> Coded:
        """The column: only strings that it uses; keys that convert to the same string become one, None becomes NULL.

        last: it is not asked for again, and lets go of its rows.
        """
        codes = self._rows.cells if len(self._rows) else np.broadcast_to(np.int32(-1), self._nulls)
        codes = codes if keep is None else codes[keep]
        used = np.zeros(len(self.table) + 1, np.bool_)  # the last entry serves code -1
        used[codes] = True
        merged = np.full(len(self.table) + 1, -1, np.int32)
        strings: dict[str, int] = {}
        for key, code in self.table.items() if used[:-1].any() else ():
            if used[code] and (string := self.convert(key)) is not None:
                merged[code] = strings.setdefault(string, len(strings))
        if last:
            self._rows, self._nulls = Growing(np.int32), 0
        if not strings:
            return Coded(np.broadcast_to(np.int32(-1), len(codes)), ())
        return Coded(np.take(merged, codes, out=codes if last else None, mode="wrap"), tuple(strings))


class Integers:
    """A growing nullable int64 column; out of range or not an integer becomes NULL."""

    def __init__(self) -> None:
        self._rows = Growing(np.int64)
        self._nulls = 0  # rows before the first that may hold something

    def add(self, values: Sequence[Any] | IntArray) -> None:
        """Append values, NONE standing for NULL."""
        if self._nulls:
            self._rows.extend(np.broadcast_to(np.int64(NONE), self._nulls))
            self._nulls = 0
        self._rows.extend(int64(values))

    def add_null(self, n: int) -> None:
        """Append `n` NULLs."""
        if len(self._rows):
            self._rows.extend(np.broadcast_to(np.int64(NONE), n))
        else:
            self._nulls += n

    def ints(self, keep: Keep | None = None, *, last: bool = False) -> Ints:
        """The column. last: it is not asked for again, and lets go of its rows."""
        values = self._rows.cells if len(self._rows) else np.broadcast_to(np.int64(NONE), self._nulls)
        values = values if keep is None else values[keep]
        valid = values != NONE
        if last:
            self._rows, self._nulls = Growing(np.int64), 0
        if not valid.any():
            return Ints(np.broadcast_to(np.int64(0), len(values)), np.broadcast_to(np.bool_(False), len(values)))
        values = values if last else values.copy()
        values[~valid] = 0
        return Ints(values, valid)


def int64(values: Sequence[Any] | IntArray) -> IntArray:
    """int64 array of values, NONE where one is no integer or out of range."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter((v if isinstance(v, int) and -(1 << 63) <= v < 1 << 63 else NONE for v in values), np.int64, len(values))


def positive(values: IntArray, least: int = 1) -> IntArray:
    """`values` with all below `least` made NONE: profilers write 0 or -1 for "no id"."""
    return np.where(values < least, NONE, values)


def texts(raws: Sequence[Any]) -> list[bytes]:
    """The bytes of raw JSON values (objects with the buffer protocol); much faster than `bytes` on each."""
    return _SEP.join(raws).split(_SEP) if raws else []


def texts_if_any(raws: Sequence[Any]) -> list[bytes] | None:
    """As `texts`; None when all are empty, which is found without making an object each."""
    joined = _SEP.join(raws)
    return joined.split(_SEP) if raws and len(joined) >= len(raws) else None


def joined_ints(parts: list[IntArray]) -> IntArray:
    """Concatenate int64 arrays, also none at all."""
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def nanoseconds(raws: Sequence[Any]) -> IntArray:
    """Exact integer nanoseconds of decimal microseconds in raw JSON text ("123.456", also quoted); NONE where it is no such number.

    More than three decimals are rounded half to even. The digits are never put through a float: absolute times need 20 of them.
    """
    if not raws:
        return np.zeros(0, np.int64)
    text = b",".join(raws).replace(b'"', b"")
    data = np.frombuffer(text, np.uint8)
    ends = np.append(np.flatnonzero(data == 44), len(data))
    starts = np.append(0, ends[:-1] + 1)
    dots = np.flatnonzero(data == 46)
    owner = np.searchsorted(ends, dots)
    decimals = np.zeros(len(ends), np.int64)
    decimals[owner] = ends[owner] - dots - 1
    width = ends - starts + 3 - decimals  # digits of the result; at most 19 that do not begin with 9 fit into int64
    width[owner] -= 1
    plain = _DIGITS[data].all() and len(ends) == len(raws) and (np.diff(owner) > 0).all() and (ends > starts).all()
    if not plain or decimals.max() > 3 or width.max() > 19 or (data[starts[width == 19]] == 57).any():
        return np.fromiter((_exact(bytes(raw).replace(b'"', b"")) for raw in raws), np.int64, len(raws))
    digits = np.fromstring(text.replace(b".", b"").decode(), np.int64, sep=",")
    result: IntArray = digits * np.array([1000, 100, 10, 1])[decimals]
    return result


def _exact(text: bytes) -> int:
    try:
        value = Decimal(text.decode("ascii", "replace").strip()) * 1000
        return int(value.to_integral_value()) if abs(value) < 1 << 62 else NONE
    except (ArithmeticError, ValueError):  # no number, or one whose exponent has no end
        return NONE
