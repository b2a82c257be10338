"""Few-shot style training: small training set, many passes."""
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Glyphs(Dataset):
    def __init__(self, n=128):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(6, (n,), generator=g)
        self.x = torch.randn(n, 1, 20, 20, generator=g) + self.y[:, None, None, None] * 0.2

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if torch.rand(()) < 0.5:
            img = img.flip(-1)
        return img, self.y[i]


def train(epochs=20):
    torch.manual_seed(0)
    data = Glyphs()
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    cnn = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(128, 6),
    )
    opt = torch.optim.Adam(cnn.parameters(), lr=1e-3)
    lf = nn.CrossEntropyLoss()
    steps = 0
    for epoch in range(epochs):
        if epoch == 1:
            t0, steps = time.perf_counter(), 0
        running = 0.0
        for x, y in loader:
            loss = lf(cnn(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.detach()
            steps += 1
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {float(running) / len(loader):.4f}")
    return (time.perf_counter() - t0) / steps


if __name__ == "__main__":
    print("STEP_MS", train() * 1e3)
