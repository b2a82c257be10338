"""Give thousands of spoilt files to every reader: none may end in a traceback, hang, fill the memory or write a file.

usage: python tools/fuzz.py [--count 20000] [--first 0] [--seed 1] [--jobs 2] [--number N ...] [--save FOLDER]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz_inputs import make_input  # noqa: E402 - found by the line above
from fuzz_run import Outcome, run_inputs  # noqa: E402

EVERY = 2000


def main() -> int:
    """Run the inputs, print what became of them; 1 when one was not taken well."""
    asked = _arguments()
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])  # workers are new processes
    numbers = asked.number or range(asked.first, asked.first + asked.count)
    begin = time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="tracediag-fuzz-") as folder:
        for outcome in run_inputs(asked.seed, numbers, asked.jobs, Path(folder) / "inputs"):
            outcomes.append(outcome)
            if outcome.problem:
                _tell(outcome, asked.seed, asked.save)
            if len(outcomes) % EVERY == 0:
                print(f"{len(outcomes)} inputs, {time.monotonic() - begin:.0f} s", flush=True)
    bad = [outcome for outcome in outcomes if outcome.problem]
    ended = ", ".join(f"{count} {name}" for name, count in Counter(outcome.ended for outcome in outcomes).most_common())
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    largest = max(outcomes, key=lambda outcome: outcome.peak)
    print(f"{len(outcomes)} inputs of seed {asked.seed} in {time.monotonic() - begin:.0f} s: {ended}")
    print(f"CPU: {sum(o.seconds for o in outcomes):.0f} s")
    print(f"slowest: number {slowest.number} ({slowest.what}), {slowest.seconds:.1f} CPU s; most memory: number {largest.number}"
          f" ({largest.what}), {largest.peak >> 20} MiB")  # fmt: skip
    print(f"{len(bad)} not taken well: {', '.join(str(outcome.number) for outcome in bad[:50]) or 'none'}")
    return int(bool(bad))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--number", type=int, action="append", help="only this input; may be given again")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), help="where inputs that were not taken well are left")
    return parser.parse_args()


def _tell(outcome: Outcome, seed: int, save: Path) -> None:
    """Print a problem, and leave the input for a closer look."""
    place = save / f"{seed}-{outcome.number}"
    made = make_input(seed, outcome.number)
    for name, data in made.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    place.joinpath("problem.txt").write_text(f"{made.what}\n{outcome.problem}\n", encoding="utf-8", errors="replace")
    last = (outcome.problem or "").strip().splitlines()[-1][:200]
    print(f"NUMBER {outcome.number} ({made.what}, {outcome.ended}): {last}; left in {place}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
