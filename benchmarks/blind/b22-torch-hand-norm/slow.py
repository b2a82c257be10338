"""Multivariate load forecasting, TSMixer style."""
import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

from nets_s import Forecaster


class Windows(Dataset):
    def __init__(self, length, series, steps, horizon):
        t = torch.arange(length)[:, None] / 24
        phase = torch.rand(series, generator=torch.Generator().manual_seed(3))
        self.x = torch.sin(6.283 * (t + phase)) + 0.1 * torch.randn(length, series)
        self.steps, self.horizon = steps, horizon

    def __len__(self):
        return len(self.x) - self.steps - self.horizon

    def __getitem__(self, i):
        j = i + self.steps
        return self.x[i:j], self.x[j:j + self.horizon]


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = Forecaster(24, args.window, 24, args.dim, args.layers)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.loss = torch.nn.HuberLoss()

    def fit(self, loader):
        spent, n = 0.0, 0
        for i, (x, y) in enumerate(loader):
            if i >= self.args.steps:
                break
            t = time.perf_counter()
            self.opt.zero_grad(set_to_none=True)
            loss = self.loss(self.model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            if i >= 10:
                spent += time.perf_counter() - t
                n += 1
            if i % 25 == 0:
                print(f"{i:5d} {loss.item():.4f}")
        print(f"ms/step {1e3 * spent / n:.2f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--window", type=int, default=96)
    p.add_argument("--dim", type=int, default=192)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--steps", type=int, default=50)
    a = p.parse_args()
    torch.manual_seed(0)
    data = Windows(5000, 24, a.window, 24)
    Trainer(a).fit(DataLoader(data, 32, shuffle=True))
