import torch
from torch import nn


class AttentionPool(nn.Module):
    """Weighted mean of the valid instances of each bag."""

    def __init__(self, d, h):
        super().__init__()
        self.v, self.w = nn.Linear(d, h), nn.Linear(h, 1)

    def forward(self, bags, sizes):
        score = self.w(torch.tanh(self.v(bags))).squeeze(-1)
        pad = torch.arange(bags.shape[1]) >= sizes[:, None]
        a = torch.softmax(score.masked_fill(pad, float("-inf")), 1)
        return torch.einsum("bn,bnd->bd", a, bags)
