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
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            tok, slot = (idx == e).nonzero(as_tuple=True)
            out = out.index_add(0, tok, expert(flat[tok]) * w[tok, slot, None])
        return out.view_as(x)
