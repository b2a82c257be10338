"""MoCo-like pretraining of a sensor encoder."""
import argparse
import copy
import time

import torch
from torch import nn
import torch.nn.functional as F

from bank_s import MemoryBank


def encoder(cin, dim):
    return nn.Sequential(nn.Conv1d(cin, 32, 5, 2), nn.ReLU(), nn.Conv1d(32, 64, 5, 2), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, dim))


class MoCo(nn.Module):
    def __init__(self, cin, dim, m=0.99, temp=0.1):
        super().__init__()
        self.q = encoder(cin, dim)
        self.k = copy.deepcopy(self.q).requires_grad_(False)
        self.m, self.temp = m, temp
        self.bank = MemoryBank(dim)

    @torch.no_grad()
    def momentum(self):
        torch._foreach_lerp_(list(self.k.parameters()), [p.detach() for p in self.q.parameters()], 1 - self.m)

    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.k(b), dim=1)
        out = self.bank.logits(q, k, self.temp)
        self.bank.push(k)
        return out


def jitter(x):
    return x * (1 + 0.1 * torch.randn(len(x), 1, 1)) + 0.05 * torch.randn_like(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=192)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--dim", type=int, default=128)
    a = p.parse_args()
    torch.manual_seed(0)
    data = torch.randn(4000, 6, 64)
    model = MoCo(6, a.dim)
    opt = torch.optim.SGD(model.q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    zero = torch.zeros(a.batch, dtype=torch.long)
    took = []
    for s in range(a.steps):
        t = time.perf_counter()
        x = data[torch.randint(len(data), (a.batch,))]
        loss = F.cross_entropy(model(jitter(x), jitter(x)), zero)
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.momentum()
        took.append(time.perf_counter() - t)
        if s % 25 == 0:
            print(f"{s:4d} nce {loss.item():.3f}")
    print(f"ms/step {1e3 * sum(took[10:]) / len(took[10:]):.2f}")


if __name__ == "__main__":
    main()
