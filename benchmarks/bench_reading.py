"""CPU time and memory of reading and explaining large traces, beside other tools on the same files; writes benchmarks/RESULTS.md.

usage: python benchmarks/bench_reading.py [--megabytes 200,1000] [--xplane-megabytes 200] [--peers hta,pandas,ijson,protobuf] [--quick]

Each figure is the median of three runs, of peers that take long a single one. Other tools are installed once, with pip, each in an
environment of its own under --cache. The traces lie in a temporary folder: five times the largest size in megabytes must be free there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from environments import environment
from measure import CommandError, Lock, available_mib, repeat
from platform_facts import facts
from results import Results, Row, Section, render
from targets import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = ("hta", "pandas", "ijson", "protobuf")
INSTALLED = {"hta": "HolisticTraceAnalysis>=0.5,<0.6", "ijson": "ijson>=3.3"}
PACKAGES = {"hta": "HolisticTraceAnalysis", "ijson": "ijson"}
NAMES = {"hta": "HolisticTraceAnalysis", "pandas": "json + pandas, arguments as columns", "ijson": "ijson, six columns only"}
TITLES = {"kineto": "Kineto JSON", "xplane": "xplane.pb"}
ROOM = 0.8
"""Part of the free memory that a peer may be expected to need."""
OURS = {"PYTHONPATH": str(ROOT)}
MODULES = "import sys, tracediag; print(sum(name in sys.modules for name in ('pandas', 'duckdb')))"


@dataclass
class Bench:
    """One run of the benchmark. peers: way -> interpreter. peaks: way -> MiB a MB of the file, as seen on smaller files."""

    folder: Path
    runs: int
    seed: int
    lock: Lock | None
    peers: dict[str, str]
    peaks: dict[str, float] = field(default_factory=dict)
    results: Results = field(default_factory=Results)

    def make(self, kind: str, megabytes: int) -> Path:
        """A generated trace, written by a process of its own."""
        place = self.folder / ("trace.json" if kind == "kineto" else "host.xplane.pb")
        say(f"writing {kind}, {megabytes} MB")
        argv = [sys.executable, str(HERE / "generate.py"), str(megabytes), str(place), "--format", kind, "--seed", str(self.seed)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return place

    def ours(self, key: str, what: str, argv: list[str], events: int | None = None, fresh: bool = False) -> Row:
        """tracediag's own figures; a command that fails is a row that says so. fresh: with an empty cache each time."""
        say(what)
        cache = self.folder / "cache"
        env = {**OURS, "TRACEDIAG_CACHE_DIR": str(cache)}
        before = (lambda: shutil.rmtree(cache, ignore_errors=True)) if fresh else None
        try:
            return Row(key, what, repeat([sys.executable, *argv], self.runs, self.lock, env, before), events)
        except CommandError as error:
            say(str(error))
            return Row(key, what, None, note="failed")

    def load(self, key: str, what: str, path: Path) -> Row:
        """Reading a file to a Trace."""
        row = self.ours(key, what, [str(HERE / "loaders.py"), "tracediag", str(path)])
        return replace(row, events=json.loads(row.figure.output)["events"]) if row.figure else row

    def peer(self, key: str, way: str, what: str, path: Path, events: int, python: str) -> Row:
        """Another tool on the same file, when the memory it is expected to need is there."""
        megabytes = path.stat().st_size / 1e6
        needs, free = self.peaks.get(way, 0.0) * megabytes, available_mib()
        if needs > ROOM * free:
            return Row(key, what, None, note=f"not run: expected to need {needs / 1024:.0f} GiB, {free / 1024:.0f} GiB are free")
        say(f"{what}")
        try:
            figure = repeat([python, str(HERE / "loaders.py"), way, str(path)], -self.runs, self.lock)
        except CommandError as error:
            say(str(error))
            return Row(key, what, None, note="failed")
        self.peaks[way] = figure.median("peak_mib") / megabytes
        told = json.loads(figure.output.splitlines()[-1])
        note = f"holds {told['held_mib']:,.0f} MiB" if "held_mib" in told else ""
        if told.get("events", events) != events:
            note = f"{told['events']} events instead of {events}"
        return Row(key, what, figure, events, note, told.get("held_mib"))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def packed(path: Path) -> Path:
    """The file beside itself as .gz, packed as profilers do."""
    place = path.with_name(path.name + ".gz")
    with path.open("rb") as source, gzip.open(place, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return place


def has_cache() -> bool:
    """Whether `explain` keeps what it has read."""
    done = subprocess.run(
        [sys.executable, "-m", "tracediag", "explain", "--help"], env={**os.environ, **OURS}, capture_output=True, text=True
    )
    return "--no-cache" in done.stdout


def explained(bench: Bench, prefix: str, path: Path, events: int) -> Iterator[Row]:
    """`tracediag explain`, and once more out of its cache where it has one."""
    argv = ["-m", "tracediag", "explain", str(path), "--quiet", "--output", os.devnull]
    if not has_cache():
        yield bench.ours(f"{prefix}-explain", "tracediag explain, all rules", argv, events)
        return
    yield bench.ours(f"{prefix}-explain", "tracediag explain --no-cache, all rules", [*argv, "--no-cache"], events)
    yield bench.ours(f"{prefix}-filling", "tracediag explain, first time (fills the cache)", argv, events, fresh=True)
    yield bench.ours(f"{prefix}-cached", "tracediag explain, again", argv, events)


def kineto(bench: Bench, megabytes: int, path: Path) -> Iterator[Row]:
    """Rows of one Kineto file."""
    prefix = f"kineto-{megabytes}"
    first = bench.load(f"{prefix}-load", "tracediag load", path)
    yield first
    yield bench.load(f"{prefix}-gz", "tracediag load, .json.gz", packed(path))
    events = first.events or 0
    yield from explained(bench, prefix, path, events)
    for way, what in NAMES.items():
        if way in bench.peers:
            yield bench.peer(f"{prefix}-{way}", way, what, path, events, bench.peers[way])


def xplane(bench: Bench, megabytes: int, path: Path) -> Iterator[Row]:
    """Rows of one xplane file."""
    prefix = f"xplane-{megabytes}"
    first = bench.load(f"{prefix}-load", "tracediag load", path)
    yield first
    events = first.events or 0
    yield from explained(bench, prefix, path, events)
    for way, what in (("protobuf", "protobuf, parse only"), ("protobuf-walk", "protobuf, parse and visit each event and stat")):
        if "protobuf" in bench.peers:
            yield bench.peer(f"{prefix}-{way}", way, what, path, events, sys.executable)


def start_up(bench: Bench) -> None:
    """Section of what happens before any file is touched."""
    ways = (
        ("python", "python, nothing else", ["-c", "pass"]),
        ("import-tracediag", "import tracediag", ["-c", MODULES]),
        ("import-xplane", "import of the xplane reader", ["-c", "import tracediag.readers.xplane"]),
        ("help", "tracediag --help", ["-m", "tracediag", "--help"]),
    )
    rows = [bench.ours(key, what, argv) for key, what, argv in ways]
    bench.results.sections.append(Section("Start-up", rows))


def arguments() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",") if word]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=numbers, help="sizes of the Kineto traces [200,1000]")
    parser.add_argument("--xplane-megabytes", type=numbers, help="sizes of the xplane traces [the smallest of --megabytes]")
    parser.add_argument("--runs", type=int, help="runs a figure [3]")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"other tools to measure [{','.join(PEERS)}]")
    parser.add_argument("--skip-peers", action="store_true", help="none of them")
    parser.add_argument("--quick", action="store_true", help="20 MB, one run; writes nothing unless --output is given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench", help="where environments are kept [.bench]")
    parser.add_argument("--lock", type=Path, help="lock file of other work on the machine, held during each figure")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for the lock before measuring without it [60]")
    parser.add_argument("--output", type=Path, help="page to write [benchmarks/RESULTS.md]")
    given = parser.parse_args()
    given.megabytes = given.megabytes or ([20] if given.quick else [200, 1000])
    given.xplane_megabytes = given.xplane_megabytes or [min(given.megabytes)]
    given.runs = given.runs or (1 if given.quick else 3)
    given.peers = [] if given.skip_peers else [way for way in PEERS if way in given.peers.split(",")]
    return given


def measure_all(given: argparse.Namespace, folder: Path, peers: dict[str, str]) -> Iterator[Results]:
    """The results so far after each row, small files first: what a run that is broken off leaves behind is true, only shorter."""
    bench = Bench(folder, given.runs, given.seed, Lock(given.lock, given.patience) if given.lock else None, peers)
    bench.results.facts += [*facts({PACKAGES[way]: peers[way] for way in peers if way in PACKAGES}), ("seed", str(given.seed))]
    start_up(bench)
    todo = [(megabytes, "kineto") for megabytes in given.megabytes] + [(megabytes, "xplane") for megabytes in given.xplane_megabytes]
    for megabytes, kind in sorted(todo):
        path = bench.make(kind, megabytes)
        section = Section(f"{TITLES[kind]}, {megabytes} MB", [], kind, megabytes, path.stat().st_size)
        bench.results.sections.append(section)
        for row in (kineto if kind == "kineto" else xplane)(bench, megabytes, path):
            section.rows.append(row)
            bench.results.targets = judge(bench.results)
            yield bench.results


def main() -> None:
    given = arguments()
    peers = dict.fromkeys(given.peers, sys.executable)
    for way in given.peers:
        if way in INSTALLED:
            say(f"environment of {way}")
            peers[way] = str(environment(given.cache.resolve() / way, [INSTALLED[way]]))
    place = given.output or (None if given.quick else HERE / "RESULTS.md")
    page = ""
    with tempfile.TemporaryDirectory(prefix="tracediag-bench-", dir=given.folder) as folder:
        for results in measure_all(given, Path(folder), peers):
            page = render(results)
            if place:
                place.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
