import torch
from torch import nn


class Wrapped(nn.Module):
    """Runs a layer in the storage precision of the project."""

    def __init__(self, layer, store=torch.bfloat16):
        super().__init__()
        self.layer, self.store = layer, store

    def forward(self, x):
        x = x.to(self.store)
        return self.layer(x.float()).to(self.store).float()


class UNet1d(nn.Module):
    def __init__(self, c=24, depth=3):
        super().__init__()
        self.inp = Wrapped(nn.Conv1d(1, c, 1))
        self.down = nn.ModuleList(Wrapped(nn.Conv1d(c, c, 4, 2, 1)) for _ in range(depth))
        self.act = Wrapped(nn.ReLU())
        self.up = nn.ModuleList(Wrapped(nn.ConvTranspose1d(c, c, 4, 2, 1)) for _ in range(depth))
        self.out = Wrapped(nn.Conv1d(c, 1, 1))

    def forward(self, x):
        skips, h = [], self.inp(x)
        for d in self.down:
            skips.append(h)
            h = self.act(d(h))
        for u in self.up:
            h = self.act(u(h)) + skips.pop()
        return self.out(h)
