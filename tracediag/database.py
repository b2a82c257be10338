"""Hand columns to pandas and to a DuckDB connection on which nothing outside the tables can be reached."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from tracediag.columns import Coded, Ints
from tracediag.schema import TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Cells", "connect", "create", "frame", "series", "share", "views"]

Cells = Coded | Ints | npt.NDArray[Any]
"""One column: dictionary-coded strings, nullable integers, or a plain array."""

_PANDAS = {"BIGINT": "Int64", "INTEGER": "Int32", "DOUBLE": "Float64", "BOOLEAN": "boolean", "VARCHAR": "string"}


def series(cells: Cells, type_: str) -> pd.Series[Any]:
    """One column for pandas, NULL as NA: categories for coded strings, masked arrays for nullable numbers."""
    if isinstance(cells, Coded):
        return pd.Series(pd.Categorical.from_codes(cells.codes, pd.Index(cells.values, dtype="object")))
    if isinstance(cells, Ints):
        return pd.Series(pd.arrays.IntegerArray(cells.values.astype(_numpy_type(type_)), ~cells.valid))
    return pd.Series(cells)


def _numpy_type(type_: str) -> Any:
    return np.int32 if type_ == "INTEGER" else np.int64


def frame(table: Table, columns: Mapping[str, Cells]) -> pd.DataFrame:
    """The table as a DataFrame with the columns of the schema in their order."""
    return pd.DataFrame({c.name: series(columns[c.name], c.type) for c in table.columns}, copy=False)


def rows_frame(table: Table, rows: list[dict[str, Any]] | None) -> pd.DataFrame:
    """A small table from row dictionaries; columns that a row lacks are NULL, keys outside the schema are left out."""
    columns = {}
    for column in table.columns:
        values = [row.get(column.name) for row in rows or ()]
        columns[column.name] = pd.Series(values, dtype=_PANDAS[column.type])
    return pd.DataFrame(columns)


def create(connection: duckdb.DuckDBPyConnection, table: Table, data: pd.DataFrame | None) -> None:
    """One physical table with the schema's types, in the order of the frame; empty without one."""
    fields = ", ".join(f'"{c.name}" {c.type}' for c in table.columns)
    connection.execute(f'CREATE TABLE "{table.name}" ({fields})')
    if data is not None and len(data):
        names = ", ".join(f'"{c.name}"' for c in table.columns)
        casts = ", ".join(f'CAST("{c.name}" AS {c.type})' for c in table.columns)
        connection.register("incoming", data)
        connection.execute(f'INSERT INTO "{table.name}" ({names}) SELECT {casts} FROM incoming')
        connection.unregister("incoming")


def views() -> tuple[str, ...]:
    """Text of the shared views, one file a topic, in order of their names."""
    folder = Path(__file__).with_name("tables")
    return tuple(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql")))


def share(connection: duckdb.DuckDBPyConnection, queries: Iterable[str]) -> None:
    """Work out once each shared view that two or more of the queries (or views that they use) read: it becomes a table of its rows.

    A view that fails is left as it is: the rules that read it say why. Views read other views by name, so both forms are alike.
    """
    texts = dict(_definitions())
    used: Counter[str] = Counter()
    for query in queries:
        used.update(_read(query, texts))
    for name in texts:
        if used[name] < 2 or not _is_view(connection, name):
            continue
        try:
            connection.execute(f'CREATE TABLE "{name}__rows" AS SELECT * FROM "{name}"')
        except duckdb.Error:
            continue
        connection.execute(f'DROP VIEW "{name}"')
        connection.execute(f'ALTER TABLE "{name}__rows" RENAME TO "{name}"')


def _definitions() -> Iterator[tuple[str, str]]:
    """(name, text) of each shared view, those that others read first."""
    for text in views():
        for part in re.split(r"(?=^CREATE VIEW )", text, flags=re.MULTILINE)[1:]:
            yield part.split(maxsplit=3)[2], part


def _read(query: str, texts: Mapping[str, str]) -> set[str]:
    """Names of the shared views that a query reads, itself or through others."""
    found: set[str] = set()
    words = set(re.findall(r"\w+", query))
    for name in texts:
        if name in words:
            found |= {name} | _read(texts[name].split(maxsplit=3)[3], {other: text for other, text in texts.items() if other != name})
    return found


def _is_view(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    return len(connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [name]).fetchall()) == 1


def connect(frames: Mapping[str, pd.DataFrame]) -> duckdb.DuckDBPyConnection:
    """An in-memory database with every table of the schema (empty where `frames` has none) and the shared views, locked:
    no files, no network, no extensions, no settings, no Python objects."""
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "4GB", "autoinstall_known_extensions": False})
    connection.execute("SET temp_directory = ''")
    connection.execute("SET preserve_insertion_order = true")
    for table in TABLES:
        create(connection, table, frames.get(table.name))
    for text in views():
        connection.execute(text)
    for setting in (
        "threads = 2",  # one fills tables at two thirds of the processor time of two
        "autoload_known_extensions = false",
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection
