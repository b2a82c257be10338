import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim, sparse=True)
        self.item = nn.Embedding(n_items, dim, sparse=True)
        self.user_mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 32))
        self.item_mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, u, i):
        a = F.normalize(self.user_mlp(self.user(u)), dim=-1)
        b = F.normalize(self.item_mlp(self.item(i)), dim=-1)
        return a @ b.t() / 0.1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=250_000)
    p.add_argument("--items", type=int, default=60_000)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.02)
    args = p.parse_args()
    torch.manual_seed(0)

    clicks_u = torch.randint(args.users, (args.steps, args.batch_size))
    clicks_i = torch.randint(args.items, (args.steps, args.batch_size))
    model = TwoTower(args.users, args.items, args.dim)
    opt = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    target = torch.arange(args.batch_size)

    warmup = 10
    for step in range(args.steps):
        if step == warmup:
            t0 = time.perf_counter()
        scores = model(clicks_u[step], clicks_i[step])
        loss = F.cross_entropy(scores, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("STEP_MS", round((time.perf_counter() - t0) * 1000 / (args.steps - warmup), 3))


if __name__ == "__main__":
    main()
