"""What the user names as one side of a comparison: runs, several with commas between, or a report.json kept from an earlier one."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tracediag.errors import InputError
from tracediag.findings import REPORT_SCHEMA, Report

if TYPE_CHECKING:
    from tracediag.comparison import Comparison

__all__ = ["names", "regression", "report_of", "runs_of"]

HEAD = 4096
"""Bytes in which a report says that it is one."""
KIND, _, MAJOR = REPORT_SCHEMA.partition("/")
MOST_MS = 1e12
"""Thirty years."""
Time = Annotated[float, msgspec.Meta(ge=0, le=MOST_MS)]


def runs_of(text: str) -> list[str]:
    """The paths in 'run1,run2,run3'; a path that exists as it stands, or a URL, is one."""
    if "," not in text or "://" in text or Path(text).exists():
        return [text]
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InputError(f"compare: {text!r} names no run; give a path, or several with commas between")
    return found


def report_of(given: Any) -> Report | None:
    """The report in a report.json, or a Report as it is; None for anything else, which is a run to be read.

    Raises InputError for a report that is broken or of a newer major version.
    """
    if isinstance(given, Report):
        return given
    if not isinstance(given, str | PathLike) or "://" in str(given):
        return None
    path = Path(given)
    if path.suffix != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    return _read(path) if f'"{KIND}/'.encode() in head else None


def _read(path: Path) -> Report:
    try:
        told = json.loads(path.read_bytes())
        schema = str(told.get("schema"))
        major = schema.removeprefix(f"{KIND}/")
        if major.isdecimal() and int(major) > int(MAJOR):
            raise InputError(f"{path.name}: written by a newer tracediag ({schema[:40]!r}); upgrade with `pip install -U tracediag`")
        if schema != REPORT_SCHEMA:
            raise ValueError(f"of unknown schema {schema[:40]!r}")
        return _checked(told)
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path.name}: a broken report ({error}); write it again with `tracediag explain --format json`") from error


class _Steps(msgspec.Struct):
    """What a comparison reads of `steps`."""

    count: Annotated[int, msgspec.Meta(ge=0)]
    median_ms: Time | None = None
    unprofiled_mean_ms: Time | None = None


class _Phase(msgspec.Struct):
    """A row of `breakdown`."""

    phase: str | None
    host_ms: Time
    device_ms: Time
    idle_ms: Time


class _Run(msgspec.Struct):
    """What a comparison reads of `run`."""

    versions: dict[str, str | None] | None = None
    devices: list[dict[str, Any]] | None = None


class _Note(msgspec.Struct):
    """A row of `health`."""

    level: str
    message: str
    effect: str


class _Read(msgspec.Struct):
    """The parts of a report that a comparison reads by key."""

    steps: _Steps
    breakdown: list[_Phase]
    health: list[_Note]
    run: _Run | None = None


def _checked(told: Any) -> Report:
    """The report, whose parts have what a comparison reads. Raises ValueError for one that has not."""
    phases = [row.phase for row in msgspec.convert(told, _Read).breakdown]
    if len(set(phases)) < len(phases):
        raise ValueError("a phase is told twice in `breakdown`")
    return msgspec.convert(told, Report)


def names(a: Any, b: Any) -> tuple[str, str]:
    """What to call the two sides: the last parts of their paths, as many as tell them apart; A and B for what has no path."""
    first, second = _parts(a), _parts(b)
    if not first or not second:
        return "/".join(first[-2:]) or "A", "/".join(second[-2:]) or "B"
    for count in (1, 2, 3):
        one, two = "/".join(first[-count:]), "/".join(second[-count:])
        if one != two:
            return one, two
    return one, two


def _parts(side: Any) -> tuple[str, ...]:
    one = side[0] if isinstance(side, list | tuple) and side else side
    return tuple(part for part in str(one).replace("\\", "/").split("/") if part) if isinstance(one, str | PathLike) else ()


def regression(comparison: Comparison, percent: float) -> bool:
    """Whether a step of b is longer than one of a by more than `percent`, and, where the noise is known, beyond the noise."""
    told = comparison.step
    if not told["ratio"] or told["noise"]["change"] == "none":
        return False
    return bool(100 * (1 / told["ratio"] - 1) > percent)
