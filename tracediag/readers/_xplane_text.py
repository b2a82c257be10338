"""Texts of stats, coded once per file, and what can be made of them once per distinct text instead of once per event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.distinct import combinations
from tracediag.readers._coding import NONE, Dictionary, Growing

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tracediag.columns import IntArray

__all__ = ["Int32Array", "Texts"]

Int32Array = npt.NDArray[np.int32]
_UNKNOWN = NONE + 1
"""Nobody has asked yet."""


class Texts(Dictionary):
    """Distinct texts by code. What `translate`, `numbers` and `combine` find out about a text is kept under the name of the question."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._known: dict[Hashable, Growing] = {}
        self._joined: dict[tuple[Hashable, ...], int] = {}

    def __missing__(self, key: Hashable) -> int:
        self._texts.append(key)  # type: ignore[arg-type]
        return super().__missing__(key)

    def translate(self, codes: Int32Array, question: Hashable, change: Callable[[str], str | None], table: Dictionary) -> Int32Array:
        """Codes in `table` of the changed texts; -1 where there is none or `change` gives None."""

        def changed(text: str) -> int:
            new = change(text)
            return -1 if new is None else table[new]

        return self._answers(codes, question, changed, -1).astype(np.int32)

    def numbers(self, codes: Int32Array, question: Hashable, number: Callable[[str], int | None]) -> IntArray:
        """Numbers in the texts; NONE where there is none."""

        def found(text: str) -> int:
            value = number(text)
            return NONE if value is None else value

        return self._answers(codes, question, found, NONE)

    def _answers(self, codes: Int32Array, question: Hashable, answer: Callable[[str], int], missing: int) -> IntArray:
        """The answer for each text, asked once a text; `missing` for code -1."""
        if not (codes >= 0).any():
            return np.full(len(codes), missing)
        known = self._known.setdefault(question, Growing(np.int64))
        known.extend(np.full(len(self._texts) - len(known), _UNKNOWN))
        used = np.zeros(len(self._texts) + 1, np.bool_)  # the last entry serves code -1
        used[codes] = True
        for code in np.flatnonzero(used[:-1] & (known.cells == _UNKNOWN)).tolist():
            known.cells[code] = answer(self._texts[code])
        return np.append(known.cells, missing)[codes]

    def combine(self, columns: Mapping[str, Int32Array], join: Callable[[dict[str, str]], str | None], table: Dictionary) -> Int32Array:
        """Codes in `table` of the joined texts of each event: `join` is asked once per distinct combination of the columns."""
        matrix = [column for column in columns.values() if (column >= 0).any()]
        names = [name for name, column in columns.items() if (column >= 0).any()]
        result = np.full(len(next(iter(columns.values()))), -1, np.int32)
        if not matrix:
            return result
        rows = np.flatnonzero(np.logical_or.reduce([column >= 0 for column in matrix]))
        found, index = combinations(*(column[rows] for column in matrix))
        codes = []
        for pairs in found.tolist():
            key = tuple(pairs + names)
            if key not in self._joined:
                text = join({name: self._texts[code] for name, code in zip(names, pairs, strict=True) if code >= 0})
                self._joined[key] = -1 if text is None else table[text]
            codes.append(self._joined[key])
        result[rows] = np.array(codes, np.int32)[index]
        return result
