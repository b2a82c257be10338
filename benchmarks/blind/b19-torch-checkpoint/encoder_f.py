import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, blocks, low_memory=False):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.low_memory = low_memory

    def run(self, x):
        for blk in self.blocks:
            if self.low_memory and self.training:
                x = checkpoint(blk, x, use_reentrant=False)
            else:
                x = blk(x)
        return x


class Block(nn.Module):
    def __init__(self, d, heads, mult=4):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, mult * d), nn.ReLU(), nn.Linear(mult * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class CharLM(Backbone):
    def __init__(self, vocab, d, heads, depth, ctx):
        super().__init__([Block(d, heads) for _ in range(depth)])
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(ctx, d))
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.out(self.run(self.tok(ids) + self.pos[: ids.shape[1]]))
