"""Toy glitch classifier on strain power spectrogram segments."""
import time
import numpy as np
import torch
from torch import nn

UNIT = 1.0          # strain unit of the stored segments
REF = 4e-21 * UNIT  # typical noise floor


def load_segments(n, width, seed=5):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    strain = rng.uniform(1e-21, 7e-21, (n, width)) * (1 + 0.1 * label[:, None])
    power = (strain * UNIT) ** 2
    return torch.tensor(power, dtype=torch.float32), torch.tensor(label)


class GlitchNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, power):
        amplitude = torch.sqrt(power) / REF
        return self.net(amplitude - 1.0)


def fit(steps=150, batch=256, width=4096):
    torch.manual_seed(5)
    x, y = load_segments(1024, width)
    model = GlitchNet(width)
    opt = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    t0 = None
    for i in range(steps):
        if i == 10:
            t0 = time.perf_counter()
        lo = (i * batch) % len(x)
        opt.zero_grad()
        loss = loss_fn(model(x[lo:lo + batch]), y[lo:lo + batch])
        loss.backward()
        opt.step()
        if i % 30 == 0:
            print(f"{i}: {loss.item():.4f}")
    return (time.perf_counter() - t0) / (steps - 10)


if __name__ == "__main__":
    print("STEP_MS", fit() * 1e3)
