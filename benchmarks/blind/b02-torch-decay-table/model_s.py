import torch
from torch import nn


class FactorizationNet(nn.Module):
    def __init__(self, n_ids, fields, dim, hidden):
        super().__init__()
        self.emb = nn.Embedding(n_ids, dim)
        nn.init.normal_(self.emb.weight, std=0.02)
        self.mlp = nn.Sequential(
            nn.Linear(fields * dim, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids):
        e = self.emb(ids)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return fm + self.mlp(e.flatten(1)).squeeze(1)


def make_optimizer(model, lr, decay=1e-5):
    return torch.optim.SGD(model.parameters(), lr=lr, weight_decay=decay)
