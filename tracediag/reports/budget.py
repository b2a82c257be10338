"""Fit a document in a number of characters: its least important parts give way first, and a line says what is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["LIMIT", "Loss", "Part", "fit"]

LIMIT = 65_000
"""Characters of a document: GitHub takes 65,536 in a comment, and a hidden marker stands before it."""


@dataclass(frozen=True)
class Loss:
    """A shorter form of a part. worth: what is worth least gives way first. name: what is then missing, in the plural."""

    worth: tuple[int, ...]
    name: str
    form: str = ""


@dataclass(frozen=True)
class Part:
    """A piece of text that ends its own lines. losses: ever shorter forms, each worth more than the one before."""

    form: str
    losses: tuple[Loss, ...] = ()


def fit(parts: Sequence[Part], limit: int = LIMIT, note: str = "Left out here for length: {}.") -> str:
    """The parts one after the other in at most `limit` characters, with a last line `note` where something had to give way.

    Parts without losses stay whatever their length: the caller keeps them short.
    """
    forms = [part.form for part in parts]
    if _length(forms) <= limit:
        return "".join(forms)
    given: Counter[str] = Counter()
    room = limit - len(note) - sum(len(name) + 12 for name in {loss.name for part in parts for loss in part.losses})
    left = _length(forms)
    for _, i, loss in sorted(((loss.worth, i, loss) for i, part in enumerate(parts) for loss in part.losses), key=lambda item: item[:2]):
        if left <= room:
            break
        left += _length([loss.form]) - _length([forms[i]])
        forms[i] = loss.form
        given[loss.name] += 1
    told = ", ".join(f"{count} {name}" for name, count in given.items())
    return "".join(forms) + f"\n{note.format(told)}\n"


def _length(forms: Iterable[str]) -> int:
    """Characters as GitHub's limit may count them: those outside the basic plane twice."""
    return sum(len(form.encode("utf-16-le")) // 2 for form in forms)
