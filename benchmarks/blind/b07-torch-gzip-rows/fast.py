import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from store_f import ECG, make_archive


class ResBlock(nn.Module):
    def __init__(self, c, stride):
        super().__init__()
        self.a = nn.Conv1d(c, 2 * c, 7, stride, 3)
        self.b = nn.BatchNorm1d(2 * c)
        self.c = nn.Conv1d(c, 2 * c, 1, stride)

    def forward(self, x):
        return torch.relu(self.b(self.a(x)) + self.c(x))


class ECGNet(nn.Sequential):
    def __init__(self, leads, classes):
        super().__init__(nn.Conv1d(leads, 16, 15, 2, 7), nn.ReLU(), ResBlock(16, 2), ResBlock(32, 2),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, classes))


class Trainer:
    def __init__(self, model, lr, epochs):
        self.model, self.epochs = model, epochs
        self.opt = torch.optim.Adam(model.parameters(), lr=lr, foreach=True)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.9)

    def epoch(self, loader):
        loss_sum = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            loss_sum += loss.detach()
            self.marks.append(time.perf_counter())
        self.sched.step()
        return loss_sum.item() / len(loader)

    def fit(self, loader):
        self.marks = []
        for e in range(self.epochs):
            print(f"epoch {e}: {self.epoch(loader):.4f}")
        d = [b - a for a, b in zip(self.marks[10:], self.marks[11:])]
        print(f"ms/step {1e3 * sum(d) / len(d):.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--records", type=int, default=1024)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.manual_seed(0)
    data = ECG(make_archive(a.records, 4, 1000))
    Trainer(ECGNet(4, 5), 1e-3, a.epochs).fit(DataLoader(data, a.batch, shuffle=True, drop_last=True))


if __name__ == "__main__":
    main()
