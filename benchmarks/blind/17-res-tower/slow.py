import time
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class ResBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = self.drop(torch.tanh(self.up(self.norm(x))))
        return x + self.drop(self.down(h))


class ResTower(nn.Module):
    def __init__(self, n_in=20, d=64, depth=8):
        super().__init__()
        self.stem = nn.Linear(n_in, d)
        self.blocks = nn.ModuleList(ResBlock(d) for _ in range(depth))
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        x = self.stem(x)
        for blk in self.blocks:
            x = checkpoint(blk, x, use_reentrant=False)
        return self.head(x).squeeze(-1)


def fit_regression(n_steps=150, bs=64):
    torch.manual_seed(21)
    model = ResTower().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=5e-3, momentum=0.9, nesterov=True)
    X = torch.randn(4096, 20)
    Y = torch.sin(X[:, 0]) * X[:, 1] + 0.1 * torch.randn(4096)
    t_total = 0.0
    for k in range(n_steps):
        t = time.perf_counter()
        ids = torch.randint(4096, (bs,))
        loss = (model(X[ids]) - Y[ids]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k >= 15:
            t_total += time.perf_counter() - t
        if k % 50 == 0:
            print("step", k, "mse", f"{loss.item():.4f}")
    return t_total / (n_steps - 15)


if __name__ == "__main__":
    print("STEP_MS", fit_regression() * 1000)
