import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)


class Embedder(nn.Module):
    def __init__(self, n_in=40, width=128, out=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, out))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


def triplet_loss(a, p, n, margin=0.3):
    loss = 0.0
    for i in range(a.shape[0]):
        d_pos = (a[i] - p[i]).pow(2).sum()
        d_neg = (a[i] - n[i]).pow(2).sum()
        loss = loss + F.relu(d_pos - d_neg + margin)
    return loss / a.shape[0]


def sample(batch, centers):
    ca = torch.randint(len(centers), (batch,))
    cn = (ca + torch.randint(1, len(centers), (batch,))) % len(centers)
    noise = torch.randn(3, batch, centers.shape[1])
    return centers[ca] + noise[0], centers[ca] + noise[1], centers[cn] + noise[2]


centers = torch.randn(20, 40)
net = Embedder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
n_steps, batch, warm = 100, 96, 10
t_sum = 0.0
for step in range(n_steps):
    a, p, n = sample(batch, centers)
    t = time.perf_counter()
    za, zp, zn = net(torch.cat([a, p, n])).chunk(3)
    loss = triplet_loss(za, zp, zn)
    opt.zero_grad()
    loss.backward()
    opt.step()
    t_sum += (time.perf_counter() - t) if step >= warm else 0.0
    if step % 30 == 0:
        print(f"step {step}, triplet loss {loss.item():.4f}")
print("STEP_MS", t_sum / (n_steps - warm) * 1000)
