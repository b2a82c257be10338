"""Extreme classification: bag of words to many labels, online updates."""
import argparse

import torch
from torch import nn

from base_s import BaseTrainer


class XMLNet(nn.Module):
    def __init__(self, feats, hidden, labels):
        super().__init__()
        self.enc = nn.Linear(feats, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, labels)

    def forward(self, x):
        return self.out(torch.relu(self.mid(torch.relu(self.enc(x)))))


class Trainer(BaseTrainer):
    def loss(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.model(x), y)


def stream(n, feats, labels, batch):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        yield torch.rand(batch, feats, generator=g), torch.randint(labels, (batch,), generator=g)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--feats", type=int, default=12_000)
    p.add_argument("--hidden", type=int, default=1024)
    p.add_argument("--labels", type=int, default=20_000)
    p.add_argument("--batch", type=int, default=2)
    p.add_argument("--steps", type=int, default=45)
    a = p.parse_args()
    torch.manual_seed(0)
    net = XMLNet(a.feats, a.hidden, a.labels)
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    sched = torch.optim.lr_scheduler.StepLR(opt, 40, 0.5)
    Trainer(net, opt, sched).fit(stream(a.steps, a.feats, a.labels, a.batch))
