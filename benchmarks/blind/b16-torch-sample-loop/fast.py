"""Multiple-instance learning on cell features."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pool_f import AttentionPool


class MIL(nn.Module):
    def __init__(self, feats, d, classes):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(feats, d), nn.ReLU())
        self.pool = AttentionPool(d, d // 2)
        self.head = nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, classes))

    def forward(self, bags, sizes):
        return self.head(self.pool(self.enc(bags), sizes))


class Loop:
    def __init__(self, model, lr):
        self.model, self.opt = model, torch.optim.Adamax(model.parameters(), lr=lr)
        self.crit = nn.CrossEntropyLoss()
        self.took = []

    def train(self, loader):
        for bags, sizes, y in loader:
            t = time.perf_counter()
            loss = self.crit(self.model(bags, sizes), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.took.append(time.perf_counter() - t)
        return loss.item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=64)
    a = p.parse_args()
    torch.manual_seed(0)
    n = a.batch * 20
    data = TensorDataset(torch.randn(n, 30, 32), torch.randint(5, 31, (n,)), torch.randint(3, (n,)))
    loop = Loop(MIL(32, 64, 3), 2e-3)
    for e in range(a.epochs):
        print(f"epoch {e} loss {loop.train(DataLoader(data, a.batch, shuffle=True)):.3f}")
    print(f"ms/step {1e3 * sum(loop.took[10:]) / len(loop.took[10:]):.2f}")
