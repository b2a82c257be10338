"""Slow-down of a training loop by the hooks outside the window: interleaved pairs of runs, with a 95 % interval.

usage: python benchmarks/hooks_pairs.py [--step small|tiny] [--pairs N] [--python PATH] [--json FILE]

Each pair runs one script twice at the same time, without tracediag and under its hooks with a warm-up that never ends (so that no
window opens). The two take turns: one block of steps here, one there, while the other waits, so that whatever else the machine does,
now or for minutes, falls on both. A block is some steps (16 of tiny ones), so that what the hooks do only now and then is in every block.
The slow-down of a pair is the median over the blocks of the hooked one's time by the mean of its two neighbours'. Where a process happens
to lie in memory moves its speed by a few percent, hence many pairs; which one goes first alternates. Both run on one thread and one
processor.

small: 160 layers of 16 units, 5 to 6 ms of nothing but calls of tiny operations. tiny: half as many layers. What the hooks add weighs most
there; matrix kernels, whose speed depends on where their memory lies, stay out of it.

The interval is Wilcoxon's for the median of the pairs (Walsh averages), which a few disturbed pairs do not widen.
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
import json, os, sys, time
import torch
from torch import nn
result, mine, other, size = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(1)
layers, steps = (40, 16) if size == "tiny" else (80, 8)
model = nn.Sequential(*[layer for _ in range(layers) for layer in (nn.Linear(16, 16), nn.Tanh())], nn.Linear(16, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 16), torch.randint(10, (8,))
def step():
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
turn, pass_on = os.open(mine, os.O_RDWR), os.open(other, os.O_RDWR)
for _ in range(30): step()
blocks = []
for _ in range(44):
    os.read(turn, 1)
    c, w = time.process_time(), time.perf_counter()
    for _ in range(steps): step()
    blocks.append((time.process_time() - c, time.perf_counter() - w))
    os.write(pass_on, b"x")
with open(result, "w") as stream:
    json.dump([steps, blocks], stream)
"""
SETTLING = 8
"""Blocks at the start that do not count."""


def pair(folder, python, number, size):
    """(CPU ratio, wall ratio, seconds of a plain step) of one pair of runs that take turns."""
    names = [folder / f"{what}{number}" for what in ("plain", "hooked", "turn-plain", "turn-hooked")]
    plain, hooked, turn_plain, turn_hooked = map(str, names)
    for fifo in (turn_plain, turn_hooked):
        os.mkfifo(fifo)
    first = os.open((turn_plain, turn_hooked)[number % 2], os.O_RDWR)
    os.write(first, b"x")
    other = subprocess.Popen([python, "loop.py", plain, turn_plain, turn_hooked, size])
    request = LaunchRequest(
        ("loop.py", hooked, turn_hooked, turn_plain, size), folder / f"run{number}", python=python, warmup=10**9, stacks=False
    )
    ended = launch(request).exit_code, other.wait()
    os.close(first)
    assert ended == (0, 0)
    (steps, without), (_, under) = (json.loads(Path(name).read_text()) for name in (plain, hooked))
    ratios = (slow_down(without, under, kind, number % 2) for kind in (0, 1))
    return *ratios, statistics.median(wall for _, wall in without) / steps


def slow_down(plain, hooked, kind, hooked_first):
    """Median over the hooked blocks of their time by the mean of the two plain blocks around them."""
    ratios = []
    for i in range(SETTLING, len(hooked) - 1):
        around = plain[i - 1 : i + 1] if hooked_first else plain[i : i + 2]
        ratios.append(hooked[i][kind] / statistics.mean(block[kind] for block in around))
    return statistics.median(ratios)


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
    parser.add_argument("--step", choices=("small", "tiny"), default="small")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "loop.py").write_text(SCRIPT)
        os.chdir(folder)
        pairs = [pair(folder, args.python, number, args.step) for number in range(args.pairs)]
        os.chdir(Path(__file__).parent)
    row = {
        "step": args.step,
        "step_ms": round(1e3 * statistics.median(pair[2] for pair in pairs), 2),
        "pairs": args.pairs,
        "cpu_percent": interval([pair[0] for pair in pairs]),
        "wall_percent": interval([pair[1] for pair in pairs]),
    }
    for kind in ("cpu", "wall"):
        low, mean, high = row[f"{kind}_percent"]
        said = f"{mean:+.2f} % (95 % interval {low:+.2f} to {high:+.2f} %, {args.pairs} pairs)"
        print(f"{args.step} step of {row['step_ms']} ms, {kind} time with hooks: {said}")
    if args.json:
        args.json.write_text(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
