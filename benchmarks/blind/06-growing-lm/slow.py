"""Character LM trained with a sequence-length curriculum."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch._dynamo

torch._dynamo.config.recompile_limit = 200
VOCAB, DIM, BATCH, STEPS = 64, 64, 8, 100


class GatedConvLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.a = nn.Linear(DIM, 4 * DIM)
        self.b = nn.Linear(2 * DIM, DIM)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tok):
        h = self.emb(tok)
        ctx = torch.cumsum(h, 1) / torch.arange(1, tok.shape[1] + 1)[None, :, None]
        u, g = self.a(h + ctx).chunk(2, dim=-1)
        h = h + self.b(u * torch.sigmoid(g))
        return self.head(h)


def seq_len(step):
    return 24 + step // 6


def main():
    torch.manual_seed(0)
    corpus = torch.randint(VOCAB, (20000,))
    model = GatedConvLM()
    net = torch.compile(model, backend="aot_eager", dynamic=False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    elapsed = []
    for step in range(STEPS):
        n = seq_len(step)
        pos = torch.randint(len(corpus) - n - 1, (BATCH, 1)) + torch.arange(n + 1)
        chunk = corpus[pos]
        t0 = time.perf_counter()
        logits = net(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        elapsed.append(time.perf_counter() - t0)
        if step % 20 == 0:
            print(f"step {step} len {n} loss {loss.item():.3f}")
    elapsed = elapsed[10:]
    print("STEP_MS", sum(elapsed) / len(elapsed) * 1000)


if __name__ == "__main__":
    main()
