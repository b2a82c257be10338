"""Verdicts on pairs of scripts whose writer knew only the names of the causes, not the rules: benchmarks/blind/results.json.

usage: python benchmarks/blind_pairs.py [NAME ...]     (names of folders; default: all; others keep their row)

Each script is profiled in a process of its own and explained, as a user would; `make truth` puts the results, a table a round, in
docs/truth.md. They stand as they were when the rules had not seen the pairs: run it to look, and keep what it writes apart.
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
    "b02": ("emb-decay-dense",),
    "b04": ("optimizer-many-groups",),
    "b07": ("chunked-storage-reads",),
    "b10": ("grad-for-unoptimized",),
    "b11": ("dynamo-graph-break",),
    "b14": ("growing-hooks",),
    "b16": ("per-sample-loop",),
    "b17": ("index-backward",),
    "b19": ("recompute-share",),
    "b20": ("dense-experts",),
    "b22": ("norm-not-fused",),
    "b24": ("conv-layout-transposes",),
    "b26": ("cast-churn",),
    "b27": ("emb-onehot-matmul",),
    "b28": ("zero-grad-not-none",),
    "b29": (
        "growing-tensor",
        "memory-growth",
    ),
    "b31": ("tf-retrace",),
    "b33": ("tf-py-function",),
    "b34": ("emb-dense-variable-read",),
    "b35": ("emb-grad-densified",),
    "b36": ("optimizer-outside-graph",),
    "b37": ("predict-in-loop",),
    "b38": ("tfdata-serial",),
    "b39": ("tfdata-python",),
    "b40": ("xla-recompile-in-timed-region",),
    "b42": ("emb-regularizer-dense",),
    "b44": ("opt-sparse-full-table",),
}
"""Number of a pair -> rules that name its cause; those of the second round begin with b."""


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
    top = CAUSES[folder.name.split("-")[0]]
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
    rounds = json.loads(RESULTS.read_text())["rounds"]
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        if wanted and folder.name not in wanted:
            continue
        row = judge(folder)
        print(row["name"], row["first"], row["right"], row["alarms"], row["others"], row["predicted"], row["measured"], flush=True)
        for one in rounds:
            one["pairs"] = [row if old["name"] == row["name"] else old for old in one["pairs"]]
        RESULTS.write_text(json.dumps({"rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
