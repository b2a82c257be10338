import time
import torch
from torch import nn

VOCAB, MASK = 120, 119


def corrupt(tokens, rate=0.15):
    noisy = tokens.clone()
    labels = torch.full_like(tokens, -100)
    probs = torch.rand(tokens.shape)
    for i in range(tokens.shape[0]):
        for j in range(tokens.shape[1]):
            if probs[i, j] < rate:
                labels[i, j] = tokens[i, j]
                u = torch.rand(())
                if u < 0.8:
                    noisy[i, j] = MASK
                elif u < 0.9:
                    noisy[i, j] = torch.randint(110, ())
    return noisy, labels


class TinyBert(nn.Module):
    def __init__(self, d=32, T=40):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(torch.zeros(T, d))
        layer = nn.TransformerEncoderLayer(d, 2, 64, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(d, VOCAB)

    def forward(self, x):
        return self.head(self.enc(self.tok(x) + self.pos))


def main(steps=120, batch=32, T=40):
    torch.manual_seed(0)
    docs = (torch.arange(T)[None] * 7 + torch.randint(110, (512, 1))) % 110
    net = TinyBert(T=T)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    ce = nn.CrossEntropyLoss()
    spent = []
    for step in range(steps):
        t = time.perf_counter()
        x, y = corrupt(docs[torch.randint(512, (batch,))])
        loss = ce(net(x).view(-1, VOCAB), y.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        spent.append(time.perf_counter() - t)
        if step % 30 == 0:
            print(f"step={step} mlm_loss={loss.item():.3f}")
    print("STEP_MS", sum(spent[10:]) / len(spent[10:]) * 1000)


if __name__ == "__main__":
    main()
