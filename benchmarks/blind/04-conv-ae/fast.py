import time
import numpy as np
import torch
import torch.nn as nn


class ConvAE(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, ch, 3, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1), nn.GELU(),
        )
        self.dec = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.Conv2d(2 * ch, ch, 3, padding=1), nn.GELU(),
            nn.Upsample(scale_factor=2), nn.Conv2d(ch, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.dec(self.enc(x))


def make_images(n, size=32, seed=0):
    rng = np.random.RandomState(seed)
    yy, xx = np.mgrid[0:size, 0:size] / size
    cx, cy, r = rng.rand(3, n, 1, 1)
    img = np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / (0.02 + 0.05 * r))
    return img[:, None].astype(np.float32)


def train(steps=70, batch=24, lr=1e-3):
    images = torch.from_numpy(make_images(1024))
    model = ConvAE().to(images.dtype)
    opt = torch.optim.RMSprop(model.parameters(), lr=lr)
    perm = torch.randint(len(images), (steps, batch))
    spent = 0.0
    for i in range(steps):
        t = time.perf_counter()
        x = images[perm[i]]
        loss = nn.functional.mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i >= 8:
            spent += time.perf_counter() - t
        if i % 20 == 0:
            print(f"[{i:03d}] mse {loss.item():.5f}")
    return spent / (steps - 8)


if __name__ == "__main__":
    torch.manual_seed(3)
    print(f"STEP_MS {train() * 1000:.2f}")
