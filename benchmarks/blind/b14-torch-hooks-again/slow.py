import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from monitor_s import ActivationMonitor


class Digits(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.rand(n, 1, 28, 28, generator=g)
        self.y = torch.randint(10, (n,), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, 2, 1), nn.BatchNorm2d(cout), nn.ReLU())


class Callback:
    def on_batch(self, trainer): ...
    def on_epoch(self, trainer): ...


class Stats(Callback):
    def __init__(self):
        self.mon = ActivationMonitor()

    def on_batch(self, trainer):
        self.mon.attach(trainer.model)

    def on_epoch(self, trainer):
        print("dead layers:", self.mon.dead())


class Trainer:
    def __init__(self, model, opt, callbacks):
        self.model, self.opt, self.callbacks = model, opt, callbacks
        self.loss = nn.CrossEntropyLoss()

    def train_batch(self, x, y):
        for c in self.callbacks:
            c.on_batch(self)
        out = self.model(x)
        loss = self.loss(out, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self, loader, epochs):
        took = []
        for e in range(epochs):
            self.model.train()
            total = 0
            for x, y in loader:
                t = time.perf_counter()
                total = total + self.train_batch(x, y)
                took.append(time.perf_counter() - t)
            for c in self.callbacks:
                c.on_epoch(self)
            print(f"epoch {e} loss {total.item() / len(loader):.3f}")
        print(f"ms/step {1e3 * sum(took[10:]) / len(took[10:]):.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch", type=int, default=64)
    a = p.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(conv(1, 16), conv(16, 32), conv(32, 64), nn.Flatten(), nn.Linear(1024, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    Trainer(model, opt, [Stats()]).fit(DataLoader(Digits(1600, 0), a.batch, shuffle=True), a.epochs)


if __name__ == "__main__":
    main()
