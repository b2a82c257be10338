import time
import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(B, T, D))


class Encoder(nn.Module):
    def __init__(self, d=64, heads=4, classes=3):
        super().__init__()
        self.inp = nn.Linear(4, d)
        self.ln = nn.LayerNorm(d)
        self.attn = SelfAttention(d, heads)
        self.cls = nn.Linear(d, classes)

    def forward(self, x):
        h = self.inp(x)
        h = h + self.attn(self.ln(h))
        return self.cls(h.mean(dim=1))


def main():
    torch.manual_seed(4)
    B, T, steps = 1, 1024, 50
    model = Encoder()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    labels = torch.randint(3, (steps, B))
    clock = []
    for i in range(steps):
        x = torch.randn(B, T, 4) + labels[i][:, None, None] * 0.1
        s = time.perf_counter()
        loss = F.cross_entropy(model(x), labels[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.append(time.perf_counter() - s)
        if i % 10 == 0:
            print(f"{i:03d} loss {loss.item():.4f}")
    print("STEP_MS", sum(clock[5:]) / len(clock[5:]) * 1000)


if __name__ == "__main__":
    main()
