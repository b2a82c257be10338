import torch
from torch import nn


Norm = nn.LayerNorm


class MixerLayer(nn.Module):
    """Token mixing over time, then channel mixing."""

    def __init__(self, steps, dim, p):
        super().__init__()
        self.n1, self.n2 = Norm(dim), Norm(dim)
        self.time = nn.Linear(steps, steps)
        self.chan = nn.Linear(dim, dim)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        h = self.time(self.n1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.drop(torch.relu(h))
        return x + torch.relu(self.chan(self.n2(x)))


class Forecaster(nn.Module):
    def __init__(self, series, steps, horizon, dim, layers, p=0.05):
        super().__init__()
        self.inp = nn.Linear(series, dim)
        self.layers = nn.ModuleList(MixerLayer(steps, dim, p) for _ in range(layers))
        self.norm = Norm(dim)
        self.out = nn.Linear(dim, series)
        self.head = nn.Linear(steps, horizon)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.out(self.norm(x)).transpose(1, 2)).transpose(1, 2)
