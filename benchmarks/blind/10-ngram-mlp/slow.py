# Bengio-style n-gram language model
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

V, CTX, D, H, B = 3000, 4, 48, 128, 256


class NgramLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.C = nn.Parameter(torch.randn(V, D) * 0.1)
        self.fc1 = nn.Linear(CTX * D, H)
        self.fc2 = nn.Linear(H, 200)

    def forward(self, idx):
        e = F.one_hot(idx, V).float() @ self.C
        return self.fc2(torch.tanh(self.fc1(e.flatten(1))))


torch.manual_seed(11)
model = NgramLM()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
stream = torch.randint(V, (50_000,))
N_STEPS, WARM = 100, 10

for step in range(N_STEPS):
    if step == WARM:
        t0 = time.perf_counter()
    start = torch.randint(len(stream) - CTX - 1, (B, 1))
    window = stream[start + torch.arange(CTX + 1)]
    loss = F.cross_entropy(model(window[:, :CTX]), window[:, CTX] % 200)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, f"{loss.item():.4f}")

print("STEP_MS", (time.perf_counter() - t0) / (N_STEPS - WARM) * 1e3)
