import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RecordStore:
    """Stand-in for our blob store client."""

    def __init__(self, n, length):
        self.n, self.length = n, length

    def get(self, key):
        time.sleep(0.001)
        rng = np.random.default_rng(key)
        label = key % 4
        t = np.arange(self.length, dtype=np.float32)
        x = np.sin(t * (0.05 + 0.05 * label)) + rng.standard_normal(self.length, dtype=np.float32)
        return x.astype(np.float32), label


class SensorDataset(Dataset):
    def __init__(self, store):
        self.store = store

    def __len__(self):
        return self.store.n

    def __getitem__(self, idx):
        x, y = self.store.get(idx)
        x = (x - x.mean()) / (x.std() + 1e-6)
        return torch.from_numpy(x)[None], y


def build_model():
    return nn.Sequential(
        nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.ReLU(),
        nn.Conv1d(16, 48, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv1d(48, 48, 5, padding=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 4),
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(0)

    ds = SensorDataset(RecordStore(args.batch_size * args.steps, 512))
    loader = DataLoader(ds, batch_size=args.batch_size, shuffle=True, num_workers=0)
    model = build_model()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    lossfn = nn.CrossEntropyLoss()

    for step, (x, y) in enumerate(loader):
        if step == 10:
            start = time.time()
        opt.zero_grad()
        loss = lossfn(model(x), y)
        loss.backward()
        opt.step()
        if (step + 1) % 40 == 0:
            print("step", step + 1, "loss", loss.item())
    print("STEP_MS", (time.time() - start) / (args.steps - 10) * 1000)


if __name__ == "__main__":
    main()
