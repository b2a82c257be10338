"""What reading must not cost more than, judged by the rows of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from results import Target

if TYPE_CHECKING:
    from results import Results

MIB = 1 << 20
LARGE = 1000
"""MB from which on memory must stay below 0.85 of the file."""


def _kineto(results: Results, megabytes: int, size: int) -> list[Target]:
    name, load = f"Kineto {megabytes} MB", f"kineto-{megabytes}-load"
    row, peak = results.row(load), results.value(load, "peak_mib")
    most = 0.85 if megabytes >= LARGE else 1.0
    found = [
        Target(f"{name}: events a CPU second, file to complete `ops`", row.rate if row else None, least=300_000, digits=0),
        Target(f"{name}: peak memory in sizes of the file", peak * MIB / size if peak else None, most=most),
    ]
    for peer, what, least in (("hta", "HolisticTraceAnalysis", 8), ("pandas", "json + pandas", 5)):
        found.append(Target(f"{name}: CPU time of {what} in times of ours", results.ratio(f"kineto-{megabytes}-{peer}", load), least=least))
    found += [
        Target(f"{name}: `.json.gz` in times of the plain file", results.ratio(f"kineto-{megabytes}-gz", load), most=1.3),
        Target(f"{name}: `explain` in times of reading", results.ratio(f"kineto-{megabytes}-explain", load), most=2),
    ]
    if results.row(f"kineto-{megabytes}-filling"):
        found.append(
            Target(f"{name}: `explain` that fills the cache, the same", results.ratio(f"kineto-{megabytes}-filling", load), most=2)
        )
    if megabytes < LARGE:
        value, unit = results.seconds(f"kineto-{megabytes}-cached")
        found.append(Target(f"{name}: `explain` out of the cache, {unit}", value, most=1))
    return found


def _xplane(results: Results, megabytes: int) -> list[Target]:
    name, load = f"xplane {megabytes} MB", f"xplane-{megabytes}-load"
    row, peak, parsed = results.row(load), results.value(load, "peak_mib"), results.row(f"xplane-{megabytes}-protobuf")
    share = peak / parsed.held_mib if peak and parsed and parsed.held_mib else None
    return [
        Target(f"{name}: events a CPU second, file to complete `ops`", row.rate if row else None, least=400_000, digits=0),
        Target(f"{name}: peak memory in times of the file held parsed by protobuf", share, most=0.5),
        Target(f"{name}: `explain` in times of reading", results.ratio(f"xplane-{megabytes}-explain", load), most=2),
    ]


def _start(results: Results) -> list[Target]:
    bare = results.value("python")
    reader = results.value("import-xplane")
    row = results.row("import-tracediag")
    loaded = float(row.figure.output.strip()) if row and row.figure else None
    value, unit = results.seconds("help")
    return [
        Target(f"`tracediag --help`, {unit}", value, most=0.3),
        Target("import of the xplane reader, CPU s beyond Python's own", reader - bare if reader and bare else None, most=0.2),
        Target("`import tracediag`: pandas and duckdb modules loaded by it", loaded, most=0, digits=0),
    ]


def judge(results: Results) -> list[Target]:
    """All targets of the files that were measured, and of the start-up."""
    found: list[Target] = []
    for section in results.sections:
        if section.kind == "kineto":
            found += _kineto(results, section.megabytes, section.size)
        elif section.kind == "xplane":
            found += _xplane(results, section.megabytes)
    return found + _start(results)
