"""Train a small click model on random data. It is slow for one reason; `tracediag profile examples/slow_embedding.py` names it."""

import time

import torch
from torch import nn

USERS, ITEMS, DIM, BATCH, STEPS = 150_000, 40_000, 32, 256, 60


class ClickModel(nn.Module):
    """Two tables, looked up and multiplied by a small perceptron."""

    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, DIM)
        self.items = nn.Embedding(ITEMS, DIM)
        self.score = nn.Sequential(nn.Linear(2 * DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, user, item):
        pair = torch.cat([self.users(user), self.items(item)], dim=1)
        return self.score(pair).squeeze(1)


def main():
    torch.manual_seed(0)
    model = ClickModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.BCEWithLogitsLoss()
    start = time.perf_counter()
    for step in range(STEPS):
        user = torch.randint(USERS, (BATCH,))
        item = torch.randint(ITEMS, (BATCH,))
        clicked = torch.randint(2, (BATCH,)).float()
        optimizer.zero_grad()
        loss = loss_of(model(user, item), clicked)
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.3f}, {(time.perf_counter() - start) / (step + 1) * 1000:.1f} ms a step")


if __name__ == "__main__":
    main()
