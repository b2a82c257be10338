"""What a table and a column of the schema are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Column", "Table"]


@dataclass(frozen=True)
class Column:
    """One column. type: DuckDB type; unit: '' | ns | bytes | flop | ...; source: where it comes from, per format."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    nullable: bool = True
    source: str = ""


@dataclass(frozen=True)
class Table:
    """One table: its rows, in one sentence, and its columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    facts: bool = False  # filled from run.json; absent (not empty) when the trace came without one

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)
