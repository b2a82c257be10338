import torch
from torch import nn


def pick(h, idx):
    return h[idx]


class EdgeConv(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg = nn.Linear(d, d)
        self.upd = nn.Linear(2 * d, d)

    def forward(self, h, src, dst):
        m = pick(torch.relu(self.msg(h)), src)
        agg = torch.zeros_like(h).index_add(0, dst, m)
        return h + torch.relu(self.upd(torch.cat([h, agg], 1)))


class GNN(nn.Module):
    def __init__(self, feats, d, layers, classes):
        super().__init__()
        self.inp = nn.Linear(feats, d)
        self.convs = nn.ModuleList(EdgeConv(d) for _ in range(layers))
        self.out = nn.Linear(d, classes)

    def forward(self, x, src, dst):
        h = torch.relu(self.inp(x))
        for c in self.convs:
            h = c(h, src, dst)
        return self.out(h)
