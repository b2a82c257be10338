"""What a comparison costs beside reading and explaining both traces; CPU seconds, median of several rounds.

usage: python benchmarks/bench_compare.py [--megabytes 32] [--rounds 5]

The two traces are generated ones (see generate.py): about a hundred thousand records each at 32 MB, no step like another, which is the
worst case for telling operations apart. `compare` reads both, explains both (or takes the reports that it kept of them) and compares.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import tracediag  # noqa: E402  # the checkout that this file belongs to
from tracediag.comparing.compare import compare_runs  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")
MOST = 1.5
"""Comparing may take this many times what reading and explaining both takes."""


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def one_round(paths: list[str]) -> dict[str, float]:
    traces, reading = timed(lambda: [tracediag.load(path) for path in paths])
    reports, explaining = timed(lambda: [tracediag.explain(trace) for trace in traces])
    one, two = zip(traces, reports, strict=True)
    _, comparing = timed(lambda: compare_runs([one], [two], ("a", "b")))
    return {"reading both": reading, "explaining both": explaining, "comparing them": comparing}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{side}.json" for side in "ab"]
        for seed, path in enumerate(paths):
            argv = [sys.executable, str(HERE / "generate.py"), str(args.megabytes), path, "--format", "kineto", "--seed", str(seed)]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        records = [tracediag.load(path).inputs[0]["events"] for path in paths]
        one_round(paths)  # imports and caches of the interpreter
        rounds = [one_round(paths) for _ in range(args.rounds)]
    cost = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    print(f"{records[0]:,} and {records[1]:,} records")
    for name, seconds in cost.items():
        print(f"{name:<18}{seconds:6.2f} s")
    whole, reading = sum(cost.values()), cost["reading both"] + cost["explaining both"]
    ratio = whole / reading
    print(f"`compare` takes {ratio:.2f} times as long as `explain` of both (bound: {MOST})")
    kept = (whole - cost["explaining both"]) / cost["reading both"]
    print(f"with kept reports it takes {kept:.2f} times as long as reading both")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
