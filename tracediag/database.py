"""DuckDB connections that rules run on: the tables and views of the schema, and everything else shut."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tracediag.schema import TABLES, Table

__all__ = ["create_views", "empty_connection", "lock", "open_connection", "view_files"]

VIEWS = Path(__file__).resolve().parent / "tables"

_OPEN = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "temp_directory": "",
    "threads": "2",
    "memory_limit": "4GB",
    "preserve_insertion_order": "true",
}


def open_connection() -> duckdb.DuckDBPyConnection:
    """A private in-memory database, not locked yet: no extensions, no replacement scans, no temporary files, two threads."""
    return duckdb.connect(":memory:", config=dict(_OPEN))


def lock(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Shut files, network and settings for good, so that a query can read nothing but the tables; returns the connection."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def create_table(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Create one empty table of the schema."""
    columns = ", ".join(f'"{c.name}" {c.type}{"" if c.nullable else " NOT NULL"}' for c in table.columns)
    connection.execute(f'CREATE TABLE "{table.name}" ({columns})')


def view_files() -> list[Path]:
    """The files of derived views, in the order in which they are created."""
    return sorted(VIEWS.glob("*.sql"))


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the derived views that rules share."""
    for path in view_files():
        connection.execute(path.read_text(encoding="utf-8"))


def empty_connection() -> duckdb.DuckDBPyConnection:
    """A locked connection with every table and view of the schema and no row: what rule files are checked against."""
    connection = open_connection()
    for table in TABLES:
        create_table(connection, table)
    create_views(connection)
    return lock(connection)
