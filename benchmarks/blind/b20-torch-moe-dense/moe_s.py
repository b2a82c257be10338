import torch
from torch import nn


class Expert(nn.Sequential):
    def __init__(self, d, h):
        super().__init__(nn.Linear(d, h), nn.SiLU(), nn.Linear(h, d))


class SparseMoE(nn.Module):
    """Top-k routed feed-forward layer."""

    def __init__(self, d, hidden, n_experts, k):
        super().__init__()
        self.k = k
        self.router = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(d, hidden) for _ in range(n_experts))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        w, idx = self.router(flat).topk(self.k, dim=-1)
        w = w.softmax(-1)
        gates = torch.zeros(len(flat), len(self.experts), dtype=w.dtype).scatter(1, idx, w)
        outs = torch.stack([e(flat) for e in self.experts], dim=1)
        return (outs * gates[..., None]).sum(1).view_as(x)
