"""CPU time that the hooks add to a training step outside the window, in microseconds.

usage: python benchmarks/hooks_cost.py [--steps N] [--json FILE]

A step calls one root module, takes one backward pass and one optimizer step; all three are empty, so that only the hooks' own work is
left: the difference between the patched and the unpatched loop, in CPU time of the process, median of five rounds. The regular write of
run.json (every two seconds) is part of it.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "tracediag" / "capture" / "inject"))

import torch
from _tracediag.config import Config
from _tracediag.recorder import Recorder
from _tracediag.torch_adapter import TorchAdapter
from _tracediag.torch_hooks import ModuleCalls, patch_backward, patch_optimizers

ROUNDS = 5


class Empty(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x, y):
        return x


class Optimizer:
    @staticmethod
    def profile_hook_step(function):
        return function

    def _patch_step_function(self):
        pass

    param_groups = ()


class Plain(Optimizer):
    def step(self):
        pass


def nothing(*args, **kwargs):
    pass


def loop(steps, module, backward, optimizer, x, y):
    """CPU seconds of so many steps."""
    start = time.process_time()
    for _ in range(steps):
        module(x, y)
        backward(x)
        optimizer.step()
    return time.process_time() - start


def measure(steps):
    """Microseconds a step: (without hooks, with hooks), one pair a round."""
    x, y = torch.zeros(256, 8), torch.zeros(256)
    rounds = []
    for _ in range(ROUNDS):
        bare = loop(steps, Empty(), nothing, Plain(), x, y)
        with tempfile.TemporaryDirectory() as out:
            recorder = Recorder(Config(out=out, cwd=out, warmup=10**9))
            adapter = TorchAdapter(recorder, torch)
            recorder.register(adapter)
            base = type("Base", (Optimizer,), {})
            fake = SimpleNamespace(autograd=SimpleNamespace(backward=nothing, grad=nothing), optim=SimpleNamespace(Optimizer=base))
            patch_backward(fake, adapter)
            patch_optimizers(fake, adapter)
            hooked = type("Hooked", (base,), {"step": base.profile_hook_step(Plain.step)})()
            calls = ModuleCalls(torch, adapter)
            calls.patch(Empty)
            adapter.idle.state = "discarded"
            loop(20, Empty(), fake.autograd.backward, hooked, x, y)
            module = Empty()
            rounds.append((1e6 * bare / steps, 1e6 * loop(steps, module, fake.autograd.backward, hooked, x, y) / steps))
            assert recorder.open_step == steps + 20
            calls.leave()
            recorder.abandon()
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    added = [with_hooks - bare for bare, with_hooks in measure(args.steps)]
    row = {"steps": args.steps, "rounds": ROUNDS, "added_us_a_step": round(statistics.median(added), 2),
           "least": round(min(added), 2), "most": round(max(added), 2)}  # fmt: skip
    print(f"hooks add {row['added_us_a_step']} us of CPU time a step (of {ROUNDS} rounds: {row['least']} to {row['most']})")
    if args.json:
        args.json.write_text(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
