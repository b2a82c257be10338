"""Slow-down of a training loop by the hooks outside the window: interleaved pairs of runs, with a 95 % interval.

usage: python benchmarks/hooks_pairs.py [--pairs N] [--best-of N] [--python PATH] [--json FILE]

Each pair runs one script without tracediag and under its hooks with a warm-up that never ends (so no window opens), in an order that
alternates, each side a few times, of which the fastest counts (where a process happens to lie in memory moves its speed by several
percent). The script times its own steps after a warm-up, on one thread, in blocks of 16 (so that what the hooks do only now and
then is in every block), and reports the mean of the fastest tenth of the blocks: what other work on the machine disturbs least. The step
is many small operations, some 2 ms long: what the hooks add weighs most there, and matrix kernels, whose speed depends on where their
memory happens to lie, stay out of it. The interval is Wilcoxon's for the median of the ratios (Walsh averages), which a few disturbed
pairs do not widen.
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
model = nn.Sequential(*[layer for _ in range(40) for layer in (nn.Linear(16, 16), nn.Tanh())], nn.Linear(16, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 16), torch.randint(10, (8,))
def step():
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
for _ in range(30): step()
cpu, wall = [], []
for _ in range(40):
    c, w = time.process_time(), time.perf_counter()
    for _ in range(16): step()
    cpu.append(time.process_time() - c)
    wall.append(time.perf_counter() - w)
with open(sys.argv[1], "w") as stream:
    print(*(statistics.mean(sorted(blocks)[:4]) / 16 for blocks in (cpu, wall)), file=stream)
"""


def run(folder, python, hooked, number):
    """(CPU seconds, wall seconds) of a step of one run."""
    result = folder / f"time{number}{hooked}"
    if hooked:
        request = LaunchRequest(("loop.py", str(result)), folder / f"run{number}", python=python, warmup=10**9, stacks=False)
        assert launch(request).exit_code == 0
    else:
        subprocess.run([python, "loop.py", str(result)], check=True)
    return tuple(float(word) for word in result.read_text().split())


def interval(ratios):
    """Median of the ratios and its 95 % interval, in percent of slow-down: Hodges and Lehmann's estimate, Wilcoxon's bounds."""
    logs = [math.log(ratio) for ratio in ratios]
    n = len(logs)
    walsh = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    rank = n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    cut = max(int(rank), 0)
    bounds = walsh[cut], statistics.median(walsh), walsh[-1 - cut]
    return tuple(round(100 * (math.exp(value) - 1), 2) for value in bounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--best-of", type=int, default=2)
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
            times = {False: (math.inf, math.inf), True: (math.inf, math.inf)}
            for again in range(args.best_of):
                for hooked in order:
                    took = run(folder, args.python, hooked, number * args.best_of + again)
                    times[hooked] = tuple(min(a, b) for a, b in zip(times[hooked], took, strict=True))
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
