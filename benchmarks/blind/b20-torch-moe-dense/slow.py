"""Tabular model: feature tokens, a routed feed-forward, mean pooling."""
import argparse
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from moe_s import SparseMoE


@dataclass
class Conf:
    features: int = 16
    dim: int = 96
    hidden: int = 256
    experts: int = 8
    top_k: int = 1
    batch: int = 96
    lr: float = 2e-3
    steps: int = 50
    milestones: list = field(default_factory=lambda: [30, 50])


class TabMoE(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(c.features, c.dim) * 0.1)
        self.shift = nn.Parameter(torch.zeros(c.features, c.dim))
        self.mix = nn.Linear(c.features, c.features)
        self.moe = nn.ModuleList(SparseMoE(c.dim, c.hidden, c.experts, c.top_k) for _ in range(2))
        self.norm = nn.ModuleList(nn.LayerNorm(c.dim) for _ in range(2))
        self.head = nn.Linear(c.dim, 1)

    def forward(self, x):
        h = x[..., None] * self.scale + self.shift
        h = h + self.mix(h.transpose(1, 2)).transpose(1, 2)
        for n, m in zip(self.norm, self.moe):
            h = h + m(n(h))
        return self.head(h.mean(1)).squeeze(-1)


class Trainer:
    def __init__(self, conf):
        self.conf = conf
        self.net = TabMoE(conf)
        self.opt = torch.optim.RAdam(self.net.parameters(), lr=conf.lr)
        self.sched = torch.optim.lr_scheduler.MultiStepLR(self.opt, conf.milestones, 0.3)

    def train(self, loader):
        done, took = 0, []
        while done < self.conf.steps:
            for x, y in loader:
                t = time.perf_counter()
                self.opt.zero_grad()
                loss = nn.functional.mse_loss(self.net(x), y)
                loss.backward()
                self.opt.step()
                self.sched.step()
                took.append(time.perf_counter() - t)
                done += 1
                if done % 20 == 0:
                    print(f"{done}: mse={loss.item():.4f}")
                if done >= self.conf.steps:
                    break
        print(f"ms/step {1e3 * sum(took[10:]) / len(took[10:]):.2f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=50)
    conf = Conf(steps=ap.parse_args().steps)
    torch.manual_seed(0)
    x = torch.randn(6000, conf.features)
    y = x[:, 0] * x[:, 1] + x[:, 2].sin()
    Trainer(conf).train(DataLoader(TensorDataset(x, y), conf.batch, shuffle=True, drop_last=True))
