"""Slow-down of a training loop by the hooks outside the window: interleaved pairs of runs, with a 95 % interval.

usage: python benchmarks/hooks_pairs.py [--pairs N] [--python PATH] [--json FILE]

Each pair runs one script twice, without tracediag and under its hooks with a warm-up that never ends (so no window opens), in an order
alternates. The script times its own steps after a warm-up, on one thread: the median of their CPU times, which other work disturbs least,
and of their wall times. The interval is Student's, on the logarithms of the ratios.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tracediag.capture.launcher import LaunchRequest, launch

SCRIPT = """
import statistics, sys, time
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU())], nn.Linear(256, 10))
opt = torch.optim.Adam(model.parameters())
x, y = torch.randn(64, 256), torch.randint(10, (64,))
def step():
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
for _ in range(30): step()
cpu, wall = [], []
for _ in range(600):
    c, w = time.process_time(), time.perf_counter()
    step()
    cpu.append(time.process_time() - c)
    wall.append(time.perf_counter() - w)
with open(sys.argv[1], "w") as stream:
    print(statistics.median(cpu), statistics.median(wall), file=stream)
"""
STUDENT_95 = {9: 2.262, 14: 2.145, 19: 2.093, 29: 2.045, 39: 2.023, 59: 2.001}


def run(folder, python, hooked, number):
    """Median (CPU seconds, wall seconds) of a step of one run."""
    result = folder / f"time{number}{hooked}"
    if hooked:
        request = LaunchRequest(("loop.py", str(result)), folder / f"run{number}", python=python, warmup=10**9, stacks=False)
        assert launch(request).exit_code == 0
    else:
        subprocess.run([python, "loop.py", str(result)], check=True)
    return tuple(float(word) for word in result.read_text().split())


def interval(ratios):
    """Geometric mean and its 95 % interval, in percent of slow-down."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.mean(logs)
    half = STUDENT_95.get(len(logs) - 1, 2.26) * statistics.stdev(logs) / math.sqrt(len(logs))
    return tuple(round(100 * (math.exp(value) - 1), 2) for value in (mean - half, mean, mean + half))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "loop.py").write_text(SCRIPT)
        os.chdir(folder)
        for number in range(args.pairs):
            order = (False, True) if number % 2 else (True, False)
            times = {hooked: run(folder, args.python, hooked, number) for hooked in order}
            pairs.append(tuple(times[True][kind] / times[False][kind] for kind in (0, 1)))
        os.chdir(Path(__file__).parent)
    row = {"pairs": args.pairs, "cpu_percent": interval([cpu for cpu, _ in pairs]), "wall_percent": interval([wall for _, wall in pairs])}
    for kind in ("cpu", "wall"):
        low, mean, high = row[f"{kind}_percent"]
        print(f"{kind} time with hooks: {mean:+.2f} % (95 % interval {low:+.2f} to {high:+.2f} %, {args.pairs} pairs)")
    if args.json:
        args.json.write_text(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
