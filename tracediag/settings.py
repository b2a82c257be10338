"""A project's own settings: the table `[tool.tracediag]` of the nearest pyproject.toml, as options of the command line.

[tool.tracediag]
rules = ["rules"]                     # folders of more rules, relative to the file
select = ["E01", "float64"]           # as --select; the command line replaces it
ignore = ["M04"]
min-saving = 3.0
fail-on = "high"

[tool.tracediag.params.launch-bound]  # parameters of a rule
min_share = 0.2
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracediag.errors import InputError

__all__ = ["Settings", "find"]

FILE = "pyproject.toml"
_MARK = b"tool.tracediag"
_FAIL_ON = ("high", "medium", "low", "never")


@dataclass(frozen=True)
class Settings:
    """What the project asks for; empty where it asks for nothing. params: rule id -> parameter -> value."""

    rules: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    min_saving: float = 0.0
    fail_on: str = "never"
    params: dict[str, dict[str, int | float | str]] = field(default_factory=dict)


def find(start: Path | None = None) -> Settings:
    """The settings that hold in a folder (default: the working directory): of the first pyproject.toml in it or above it.

    Raises InputError, with file and key, for a file that is no TOML and for keys or values that mean nothing.
    """
    try:
        place = (start or Path.cwd()).resolve()
    except OSError:  # the working directory is gone
        return Settings()
    for folder in (place, *place.parents):
        path = folder / FILE
        if path.is_file():
            return _read(path)
    return Settings()


def _read(path: Path) -> Settings:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or error})") from error
    if _MARK not in data:
        return Settings()
    try:
        table = _toml(data.decode()).get("tool", {}).get("tracediag", {})
    except ValueError as error:  # of TOML and of UTF-8 alike
        raise InputError(f"{path.name}: not TOML ({error})") from error
    return _settings(table, path)


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _settings(table: Any, path: Path) -> Settings:
    """Check every key; relative folders of rules are those beside the file."""
    known = {"rules": _texts, "select": _texts, "ignore": _texts, "min-saving": _number, "fail-on": _severity, "params": _params}
    if not isinstance(table, dict):
        raise InputError(f"{path.name}: [tool.tracediag] is no table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{path.name}: [tool.tracediag] has no key {key!r} (it has: {', '.join(known)})")
        checked = known[key](value)
        if checked is None:
            raise InputError(f"{path.name}: [tool.tracediag] {key} = {value!r} means nothing here; see `tracediag explain --help`")
        values[key.replace("-", "_")] = checked
    if "rules" in values:
        values["rules"] = tuple(str(path.parent / folder) for folder in values["rules"])
    return Settings(**values)


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _severity(value: Any) -> str | None:
    return value if value in _FAIL_ON else None


def _params(value: Any) -> dict[str, dict[str, Any]] | None:
    if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
        return None
    plain = all(isinstance(item, int | float | str) and not isinstance(item, bool) for row in value.values() for item in row.values())
    return value if plain else None
