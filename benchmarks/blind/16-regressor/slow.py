import argparse
import os
import tempfile
import time
import torch
import torch.nn as nn


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--save-every", type=int, default=1)
    ap.add_argument("--outdir", default=None)
    return ap.parse_args()


class Trainer:
    def __init__(self, args, outdir):
        self.args, self.outdir = args, outdir
        self.model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1e-2, momentum=0.9)
        self.loss_fn = nn.SmoothL1Loss()

    def save(self, step):
        state = {"step": step, "model": self.model.state_dict(), "opt": self.opt.state_dict()}
        torch.save(state, os.path.join(self.outdir, "last.pt"))

    def step(self, x, y):
        loss = self.loss_fn(self.model(x).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss

    def fit(self):
        w = torch.randn(256)
        for step in range(self.args.steps):
            if step == 8:
                t0 = time.perf_counter()
            x = torch.randn(self.args.batch, 256)
            loss = self.step(x, x @ w / 16)
            if (step + 1) % self.args.save_every == 0:
                self.save(step)
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}")
        return (time.perf_counter() - t0) / (self.args.steps - 8)


if __name__ == "__main__":
    torch.manual_seed(0)
    a = parse()
    with tempfile.TemporaryDirectory() as tmp:
        ms = Trainer(a, a.outdir or tmp).fit() * 1000
    print("STEP_MS", ms)
