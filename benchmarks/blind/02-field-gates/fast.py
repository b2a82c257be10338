"""CTR model with one small weight vector per categorical/numeric field."""
import time
import torch
from torch import nn

N_FIELDS = 300
K = 8
BATCH = 64
STEPS = 150


class FieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.ParameterList([nn.Parameter(torch.randn(K) * 0.1) for _ in range(N_FIELDS)])
        self.shift = nn.ParameterList([nn.Parameter(torch.zeros(K)) for _ in range(N_FIELDS)])
        self.out = nn.Linear(K, 1)

    def forward(self, x):
        w = torch.stack(list(self.scale))
        b = torch.stack(list(self.shift))
        pooled = (x @ w + b.sum(0)) / N_FIELDS ** 0.5
        return self.out(torch.tanh(pooled)).squeeze(-1)


def batches(n):
    g = torch.Generator().manual_seed(1)
    true_w = torch.randn(N_FIELDS, generator=g)
    for _ in range(n):
        x = torch.randn(BATCH, N_FIELDS, generator=g)
        yield x, (x @ true_w > 0).float()


torch.manual_seed(1)
net = FieldNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4, fused=True)
criterion = nn.BCEWithLogitsLoss()

times = []
for it, (x, y) in enumerate(batches(STEPS)):
    t = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - t)
    if it % 50 == 0:
        print(f"{it:4d}  bce={loss.item():.4f}")

times = times[10:]
print("STEP_MS", 1e3 * sum(times) / len(times))
