import argparse
import time
import torch
import torch.nn as nn


class MixerLayer(nn.Module):
    def __init__(self, patches, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.ch = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, patches=16, dim=32, depth=4, classes=5):
        super().__init__()
        self.stem = nn.Linear(48, dim)
        self.layers = nn.Sequential(*[MixerLayer(patches, dim) for _ in range(depth)])
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean(1))


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=0.02)
    return p.parse_args()


if __name__ == "__main__":
    args = get_args()
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = Mixer()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    x_all, y_all = torch.randn(600, 16, 48), torch.randint(5, (600,))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    acc_t = 0.0
    for it in range(args.steps):
        tick = time.perf_counter()
        sel = torch.randint(600, (args.batch,))
        opt.zero_grad()
        loss = criterion(model(x_all[sel]), y_all[sel])
        loss.backward()
        opt.step()
        if it >= 10:
            acc_t += time.perf_counter() - tick
        if it % 50 == 0:
            print(f"it {it}: loss {loss.item():.4f}")
    print("STEP_MS", acc_t / (args.steps - 10) * 1000)
