"""The registry of file formats, and `read_all`: paths -> columns of every trace in them.

A format is a module with `FORMAT`, `sniff(head) -> bool` and `read(source) -> Raw`; adding one is one import and one entry below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from tracediag.columns import Health
from tracediag.errors import InputError, NotATraceError
from tracediag.readers import ascend, kineto, tf1runmetadata, tf1timeline, tflocaltrace, tftracejson, xplane
from tracediag.readers._unknown import describe
from tracediag.runjson import read_run
from tracediag.sources import Source, open_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.columns import Raw

__all__ = ["READERS", "Reader", "read_all", "read_source"]


class Reader(Protocol):
    """What a format module offers. FORMAT: its name in reports."""

    FORMAT: str

    def sniff(self, head: bytes) -> bool:
        """Whether a file that begins with `head` (up to 64 KiB) is of this format."""

    def read(self, source: Source) -> Raw:
        """The columns of one file. Raises NotATraceError, BrokenTraceError or InputError."""


READERS: tuple[Reader, ...] = (tftracejson, tf1timeline, ascend, kineto, xplane, tf1runmetadata, tflocaltrace)
"""In the order in which they are asked; JSON formats that know themselves by a name come before Kineto, which has none."""


def read_source(source: Source) -> Raw:
    """Read one file with the first format that knows it. Raises NotATraceError when none does."""
    head = source.head()
    for reader in READERS:
        if reader.sniff(head):
            raw = reader.read(source)
            return raw if len(raw) else replace(raw, health=(*raw.health, _no_events(source, raw)))
    raise NotATraceError(f"{source.name}: {describe(head)}")


def _no_events(source: Source, raw: Raw) -> Health:
    return Health(
        "no-events",
        "error",
        f"{source.name} holds {raw.events} records but no timed event",
        "nothing can be said from it; keep the profiler on while steps run, and stop it before the export",
    )


def read_all(paths: Sequence[str]) -> tuple[list[Raw], dict[str, Any] | None, list[dict[str, Any]]]:
    """Read every trace behind `paths` (files, archives, directories, URLs).

    Returns the columns of each trace, the run.json beside them (of the lowest rank; None without one), and one row per trace for the
    report: path, format, framework, bytes, events, rank. Files in a directory or archive that are no traces are passed over as long as one
    is. Raises InputError and its kinds.
    """
    sources, runs = open_sources(paths)
    facts = _run_facts(runs)
    run = facts[0] if facts else None
    left_out = _line_recordings(facts)
    raws: list[Raw] = []
    inputs: list[dict[str, Any]] = []
    refused: list[NotATraceError] = []
    for source in sources:
        if source.name.rsplit("/", 1)[-1] in left_out:
            continue
        try:
            raw = read_source(source)
        except NotATraceError as error:
            if not source.listed:
                raise
            refused.append(error)
            continue
        raws.append(raw)
        inputs.append(_input_row(source, raw))
    if not raws:
        raise refused[0] if refused else InputError(f"{', '.join(map(str, paths))}: no trace here")
    return raws, run, inputs


def _line_recordings(facts: Sequence[dict[str, Any]]) -> set[str]:
    """Files of the windows that were recorded for source lines only: their times are inflated."""
    return {str(window.get("file")) for run in facts for window in run.get("windows") or () if window.get("stacks")}


def _input_row(source: Source, raw: Raw) -> dict[str, Any]:
    return {
        "path": source.name,
        "format": raw.format,
        "framework": raw.framework,
        "bytes": source.size,
        "events": raw.events,
        "rank": raw.rank,
    }


def _run_facts(runs: Sequence[Source]) -> list[dict[str, Any]]:
    """Every run.json of ours, of the lowest rank first. Raises InputError when one is broken or of a newer major version."""
    found = (read_run(source.name, source.read()) for source in runs)
    return [run for run in found if run is not None]
