"""Whether a trace holds what a rule is about at all, told from the distinct words of its columns without a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tracediag.schema import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracediag.columns import Coded
    from tracediag.trace import Trace

__all__ = ["Words", "pattern_problem"]

_COLUMN = re.compile(r"([a-z_]+)=(.*)", re.DOTALL)


def _split(pattern: str) -> tuple[str, str]:
    """Column and glob of one pattern: `kind=conv`, or of column name where none is given."""
    match = _COLUMN.fullmatch(pattern)
    return (match[1], match[2]) if match else ("name", pattern)


def pattern_problem(entry: str) -> str | None:
    """What is wrong with one entry of `occurs`, None when all is well."""
    known = {column.name for column in table("ops").columns if column.type == "VARCHAR"} | {"owner"}
    for pattern in entry.split("|"):
        column, glob = _split(pattern)
        if column not in known:
            return f"no text column {column!r}"
        if not glob.strip("*"):
            return f"{pattern!r} names nothing"
    return None


class Words:
    """The distinct words in the text columns of `ops`, and in column owner of `gaps`, read once a column."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[str, frozenset[str]] = {}
        self._answers: dict[str, bool] = {}

    def meet(self, entries: Iterable[str]) -> bool:
        """Whether each entry occurs: `a|b` one of them, `*` any run of characters, `kind=conv` a word of another column than name."""
        return all(any(self._occurs(pattern) for pattern in entry.split("|")) for entry in entries)

    def _occurs(self, pattern: str) -> bool:
        if pattern not in self._answers:
            column, glob = _split(pattern)
            words = self._of(column)
            self._answers[pattern] = glob in words if "*" not in glob else _matches(glob, words)
        return self._answers[pattern]

    def _of(self, column: str) -> frozenset[str]:
        if column not in self._found:
            coded = self._trace.gap_strings(column) if column == "owner" else self._trace.strings(column)
            self._found[column] = _used(coded)
        return self._found[column]


def _used(coded: Coded) -> frozenset[str]:
    """Words that at least one row has."""
    hits = np.bincount(coded.codes[coded.codes >= 0], minlength=len(coded.values))
    return frozenset(value for value, n in zip(coded.values, hits.tolist(), strict=True) if n)


def _matches(glob: str, words: Iterable[str]) -> bool:
    parts = glob.split("*")
    longest = max(parts, key=len)
    matcher = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    return any(longest in word and matcher.fullmatch(word) is not None for word in words)
