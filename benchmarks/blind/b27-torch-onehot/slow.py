"""Log anomaly detection: predict the next event key."""
import argparse
import time

import torch
from torch import nn

from embed_s import TokenEmbedding


class DeepLog(nn.Module):
    def __init__(self, keys, dim, hidden):
        super().__init__()
        self.emb = TokenEmbedding(keys, dim)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, keys)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h[:, -1])


def windows(keys, n, h):
    seq = (torch.randn(n + h).cumsum(0) * 7).long() % keys
    return seq.unfold(0, h + 1, 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--keys", type=int, default=3000)
    p.add_argument("--window", type=int, default=16)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--steps", type=int, default=50)
    a = p.parse_args()
    torch.manual_seed(0)
    data = windows(a.keys, 20_000, a.window)
    model = DeepLog(a.keys, 48, 64)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    t0 = None
    for s in range(a.steps):
        if s == 10:
            t0 = time.perf_counter()
        rows = data[torch.randint(len(data), (a.batch,))]
        loss = nn.functional.cross_entropy(model(rows[:, :-1]), rows[:, -1])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if s % 20 == 0:
            print(f"step {s} loss {loss.item():.3f}")
    print(f"ms/step {1e3 * (time.perf_counter() - t0) / (a.steps - 10):.2f}")


if __name__ == "__main__":
    main()
