"""Verdicts on pairs of scripts whose writer knew only the names of the causes, not the rules: benchmarks/blind/results.json.

usage: python benchmarks/blind_pairs.py [NAME ...]     (names of folders; default: all; others keep their row)

Each script is profiled in a process of its own and explained, as a user would; `make truth` puts the result in docs/truth.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "blind"
RESULTS = HERE / "results.json"
LOUD = ("high", "medium")
NOTE = """\
Written by someone who was given the names of the causes below and had seen neither rules nor thresholds nor fixtures
(`benchmarks/blind`); profiled and explained once, by `benchmarks/blind_pairs.py`, after the rules were frozen. Misses stay as they are."""
CAUSES = {
    "01": ("emb-dense-grad-torch",),
    "02": ("opt-single-tensor",),
    "03": ("input-bound", "loader-synchronous"),
    "04": ("float64",),
    "05": ("grad-for-unoptimized",),
    "06": ("dynamo-recompile",),
    "07": ("growing-graph",),
    "08": ("denormals",),
    "09": ("rnn-not-cudnn",),
    "10": ("emb-onehot-matmul",),
    "11": ("loop-indexing",),
    "12": ("debug-mode",),
    "13": ("loader-worker-restart",),
    "14": ("attention-unfused",),
    "15": ("per-sample-loop",),
    "16": ("io-between-steps",),
    "17": ("recompute-share",),
    "18": ("tf-retrace",),
    "19": ("tf-eager-hot-loop",),
    "20": ("opt-sparse-full-table", "emb-grad-densified"),
    "21": ("tf-py-function", "tfdata-python", "input-bound"),
    "22": ("optimizer-outside-graph",),
    "23": ("framework-call-overhead",),
    "24": ("predict-in-loop",),
}
"""Number of a pair -> rules that name its cause."""


def report(script):
    """The report on one script."""
    command = os.environ.get("TRACEDIAG", f"{sys.executable} -m tracediag").split()
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        subprocess.run(
            [*command, "profile", "--no-explain", "--quiet", "--out", run, script.name], cwd=script.parent, capture_output=True, check=True
        )
        done = subprocess.run([*command, "explain", "--no-cache", "--format", "json", run], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def judge(folder):
    """One row of the results."""
    top = CAUSES[folder.name[:2]]
    slow, fast = report(folder / "slow.py"), report(folder / "fast.py")
    loud = [finding for finding in slow["findings"] if finding["severity"] in LOUD]
    fast_rules = list(dict.fromkeys(finding["rule"] for finding in fast["findings"] if finding["severity"] in LOUD))
    times = [side["steps"].get("unprofiled_mean_ms") for side in (slow, fast)]
    right = bool(loud) and loud[0]["rule"] in top
    speedup = loud[0]["speedup"] if right else None
    return {
        "name": folder.name,
        "cause": (folder / "cause.txt").read_text().strip(),
        "first": loud[0]["rule"] if loud else None,
        "loud": [finding["rule"] for finding in loud],
        "right": right,
        "alarms": [rule for rule in fast_rules if rule in top],
        "others": [rule for rule in fast_rules if rule not in top],
        "predicted": [speedup["low"], speedup["high"]] if speedup else None,
        "measured": round(times[0] / times[1], 2) if all(times) else None,
    }


def main():
    wanted = sys.argv[1:]
    rows = {row["name"]: row for row in json.loads(RESULTS.read_text())["pairs"]} if RESULTS.exists() else {}
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        if wanted and folder.name not in wanted:
            continue
        rows[folder.name] = row = judge(folder)
        print(row["name"], row["first"], row["right"], row["alarms"], row["others"], row["predicted"], row["measured"], flush=True)
        RESULTS.write_text(json.dumps({"note": NOTE, "pairs": [rows[name] for name in sorted(rows)]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
