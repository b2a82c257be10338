"""Write a Trace for other tools: its tables as parquet or csv files, its timeline as Chrome-trace JSON."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import duckdb

from tracediag import perfetto
from tracediag.database import create
from tracediag.errors import InputError
from tracediag.schema import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tracediag.findings import Finding
    from tracediag.intervals import Spans
    from tracediag.trace import Trace

__all__ = ["OPTIONS", "write_perfetto", "write_tables"]

OPTIONS = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER"}
"""How DuckDB writes each form. In csv NULL is nothing and an empty string is two quotes."""


def write_tables(trace: Trace, form: str, folder: Path) -> list[Path]:
    """One file for each table that the trace has, with the types of the schema; returns them. Raises InputError."""
    _make(folder)
    connection = duckdb.connect(":memory:", config={"threads": 2})
    written = []
    try:
        for name, data in trace.frames.items():
            create(connection, table(name), data)
            place = folder / f"{name}.{form}"
            quoted = str(place).replace("'", "''")
            connection.execute(f"COPY \"{name}\" TO '{quoted}' ({OPTIONS[form]})")
            connection.execute(f'DROP TABLE "{name}"')
            written.append(place)
    except duckdb.IOException as error:
        raise _unwritable(folder, str(error).splitlines()[0]) from error
    finally:
        connection.close()
    return written


def write_perfetto(trace: Trace, findings: Sequence[tuple[Finding, Spans]], output: Path) -> list[Path]:
    """A timeline for Perfetto in `output`, packed when its name ends in .gz; for several ranks a folder with one file each.

    findings: each with the intervals that it owns, on the claim time line. Raises InputError when a file cannot be written.
    """
    known = perfetto.ranks(trace)
    if len(known) == 1:
        _make(output.parent)
        _write(output, perfetto.document(trace, known[0], findings))
        return [output]
    folder = output.with_name(output.name.removesuffix(".gz").removesuffix(".json").removesuffix(".perfetto"))
    _make(folder)
    files = []
    for rank in known:
        files.append(folder / (f"rank{rank}.json.gz" if rank >= 0 else "no-rank.json.gz"))
        _write(files[-1], perfetto.document(trace, rank, findings))
    return files


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write text as UTF-8; the same text gives the same bytes, packed or not."""
    try:
        with path.open("wb") as file:
            packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if path.name.endswith(".gz") else file
            with io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="\n") as text:
                text.writelines(pieces)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error


def _unwritable(place: Path, why: str) -> InputError:
    return InputError(f"cannot write {place}: {why}; choose another place with --output")
