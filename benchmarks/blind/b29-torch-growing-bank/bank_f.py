import torch
import torch.nn.functional as F


class MemoryBank:
    """Negatives from earlier batches."""

    def __init__(self, dim, size=1024):
        self.feats = F.normalize(torch.randn(256, dim), dim=1)
        self.size = size

    @torch.no_grad()
    def push(self, z):
        self.feats = torch.cat([self.feats, z.detach()])[-self.size:]

    def logits(self, q, k, temp):
        pos = (q * k).sum(1, keepdim=True)
        return torch.cat([pos, q @ self.feats.t()], 1) / temp
