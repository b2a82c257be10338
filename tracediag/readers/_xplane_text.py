"""Texts of stats, coded once per file, and what can be made of them once per distinct text instead of once per event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracediag.readers._coding import NONE, Dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracediag.columns import IntArray

__all__ = ["Int32Array", "Texts"]

Int32Array = npt.NDArray[np.int32]


class Texts(Dictionary):
    """Distinct texts by code."""

    def translate(self, codes: Int32Array, change: Callable[[str], str | None], table: Dictionary) -> Int32Array:
        """Codes in `table` of the changed texts; -1 where there is none or `change` gives None."""
        values = list(self)
        result = np.full(len(values) + 1, -1, np.int32)
        for code in np.unique(codes[codes >= 0]).tolist():
            text = change(values[code])
            if text is not None:
                result[code] = table[text]
        return result[codes]

    def numbers(self, codes: Int32Array, number: Callable[[str], int | None]) -> IntArray:
        """Numbers in the texts; NONE where there is none."""
        values = list(self)
        result = np.full(len(values) + 1, NONE, np.int64)
        for code in np.unique(codes[codes >= 0]).tolist():
            found = number(values[code])
            result[code] = NONE if found is None else found
        return result[codes]

    def combine(self, columns: Mapping[str, Int32Array], join: Callable[[dict[str, str]], str | None], table: Dictionary) -> Int32Array:
        """Codes in `table` of the joined texts of each event: `join` is asked once per distinct combination of the columns."""
        matrix = np.stack(list(columns.values()))
        rows = np.flatnonzero((matrix >= 0).any(axis=0))
        key = np.zeros(len(rows), np.int64)
        for column in matrix:
            if (column >= 0).any():
                _, key = np.unique(key * (len(self) + 1) + column[rows] + 1, return_inverse=True)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        values = list(self)
        combinations = [dict(zip(columns, codes, strict=True)) for codes in matrix[:, rows[first]].T.tolist()]
        joined = [join({name: values[code] for name, code in pairs.items() if code >= 0}) for pairs in combinations]
        result = np.full(matrix.shape[1], -1, np.int32)
        result[rows] = np.array([-1 if text is None else table[text] for text in joined], np.int32)[inverse] if joined else -1
        return result
