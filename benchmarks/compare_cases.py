"""Profiles pairs of scripts and compares them: is the finding that is gone named, and does the ratio meet the one that the scripts print?

usage: python benchmarks/compare_cases.py [--root FOLDER] [--keep FOLDER] [NAME ...]

--root: a folder of cases, each with slow.py, fast.py and expect.json ("top": rules that are right on slow.py); default: the cases beside
the checkout. Each script is profiled once, slow.py twice. A row a case:

gone       the finding that the verdict rests on, and whether it is one of the right ones
compare    step slow / step fast as compared
printed    the same as the scripts print it (STEP_MS), which counts the recorded steps too
mirrored   the swapped comparison says the same of the other side
itself     a run against itself, and against another run of the same script: no difference
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tracediag import api  # noqa: E402  # the checkout that this file belongs to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.comparison import Comparison

DEFAULT = HERE.parent.parent / "shared" / "cases"
NONE = ("identical", "no-difference")


def profile(script: Path, out: Path) -> float | None:
    """Profile a script into `out` (unless it is there); returns the STEP_MS that it printed."""
    told = out.with_suffix(".txt")
    if not (out / "run.json").exists():
        command = [sys.executable, "-m", "tracediag", "profile", "--no-explain", "--quiet", "--python", sys.executable, "--out", str(out)]
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(
            [*command, script.name], cwd=script.parent, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        told.write_text(done.stdout)
        if done.returncode:
            print(f"{script}: exit code {done.returncode}\n{done.stderr}", file=sys.stderr)
    found = re.search(r"STEP_MS (\S+)", told.read_text())
    return float(found[1]) if found else None


def swapped(text: str) -> str:
    return re.sub(r"(?<!“)\b[AB]\b", lambda found: "BA"["AB".index(found[0])], text)


def judge(case: Path, folder: Path) -> dict[str, Any]:
    places = {name: folder / f"{case.name}-{name}" for name in ("slow", "fast", "slow2")}
    printed = {name: profile(case / f"{name.rstrip('2')}.py", place) for name, place in places.items()}
    runs = {name: api.load(place) for name, place in places.items()}

    def compare(a: str, b: str) -> Comparison:
        return api.compare(runs[a], runs[b])

    told, back = compare("slow", "fast"), compare("fast", "slow")
    top = json.loads((case / "expect.json").read_text())["top"]
    rule = told.fixes[0]["rule"] if told.fixes else None
    slow, fast = printed["slow"], printed["fast"]
    return {
        "case": case.name,
        "gone": f"{rule} ({'right' if rule in top else 'WRONG'})",
        "verdict": told.verdict["outcome"],
        "compare": told.step["ratio"],
        "printed": slow / fast if slow and fast else None,
        "attributed": told.step["attributed"],
        "mirrored": swapped(back.verdict["text"]) == told.verdict["text"],
        "itself": [compare("slow", other).verdict["outcome"] for other in ("slow", "slow2")],
        "text": told.verdict["text"],
    }


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| case | finding that is gone | compare | printed | attributed | mirrored | itself, again |"
    yield "|---|---|--:|--:|--:|---|---|"
    for row in rows:
        numbers = [f"{row[key]:.1f}" if row[key] else "?" for key in ("compare", "printed")]
        known = "" if row["attributed"] is None else f"{100 * row['attributed']:.0f} %"
        same = ", ".join("no difference" if outcome in NONE else f"DIFFERS ({outcome})" for outcome in row["itself"])
        yield f"| {row['case']} | {row['gone']} | {' | '.join(numbers)} | {known} | {'yes' if row['mirrored'] else 'NO'} | {same} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--root", type=Path, default=DEFAULT)
    parser.add_argument("--keep", type=Path, help="keep the run directories here, and use those that are there")
    args = parser.parse_args()
    cases = [path.parent for path in sorted(args.root.glob("*/expect.json")) if not args.names or path.parent.name in args.names]
    cases = [case for case in cases if (case / "fast.py").exists()]
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for case in cases:
            rows.append(judge(case, folder))
            print(f"{case.name}: {rows[-1]['text']}", file=sys.stderr, flush=True)
    print("\n".join(lines(rows)))
    bad = [row for row in rows if "WRONG" in row["gone"] or not row["mirrored"] or any(outcome not in NONE for outcome in row["itself"])]
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
