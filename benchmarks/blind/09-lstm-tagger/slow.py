import argparse
import time
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim, hidden):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.LSTMCell(dim, hidden)
        self.proj = nn.Linear(hidden, tags)

    def forward(self, tokens):
        x = self.embed(tokens)
        h = x.new_zeros(x.size(0), self.hidden)
        c = x.new_zeros(x.size(0), self.hidden)
        outs = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            outs.append(h)
        return self.proj(torch.stack(outs, dim=1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--seq", type=int, default=120)
    p.add_argument("--batch", type=int, default=16)
    a = p.parse_args()
    torch.manual_seed(2)
    model = Tagger(500, 12, 32, 48)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    ce = nn.CrossEntropyLoss()
    data = torch.randint(500, (256, a.seq))
    tags = data % 12
    dur = []
    for s in range(a.steps):
        t0 = time.perf_counter()
        pick = torch.randint(256, (a.batch,))
        logits = model(data[pick])
        loss = ce(logits.reshape(-1, 12), tags[pick].reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        dur.append(time.perf_counter() - t0)
        if s % 15 == 0:
            print(f"step {s:3d} loss {loss.item():.4f}")
    print(f"STEP_MS {1000 * sum(dur[8:]) / len(dur[8:]):.3f}")


if __name__ == "__main__":
    main()
