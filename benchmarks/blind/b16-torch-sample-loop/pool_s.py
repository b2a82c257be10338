import torch
from torch import nn


class AttentionPool(nn.Module):
    """Weighted mean of the valid instances of each bag."""

    def __init__(self, d, h):
        super().__init__()
        self.v, self.w = nn.Linear(d, h), nn.Linear(h, 1)

    def forward(self, bags, sizes):
        out = []
        for bag, n in zip(bags, sizes.tolist()):
            inst = bag[:n]
            a = torch.softmax(self.w(torch.tanh(self.v(inst))), 0)
            out.append((a * inst).sum(0))
        return torch.stack(out)
