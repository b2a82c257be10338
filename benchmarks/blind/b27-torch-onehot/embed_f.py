import torch
from torch import nn
import torch.nn.functional as F


class TokenEmbedding(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.vocab = vocab
        self.weight = nn.Parameter(torch.randn(vocab, dim) * 0.02)

    def forward(self, ids):
        return F.embedding(ids, self.weight)
