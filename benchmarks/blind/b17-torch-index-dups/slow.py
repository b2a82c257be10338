import argparse
import time

import torch
import torch.nn.functional as F

from mp_s import GNN


def citation_graph(n, edges, feats, seed=0):
    """Preferential attachment: few nodes are cited by most."""
    g = torch.Generator().manual_seed(seed)
    dst = torch.randint(n, (edges,), generator=g)
    src = (torch.rand(edges, generator=g).pow(4) * n).long()
    x = torch.randn(n, feats, generator=g)
    y = (x[:, :4].argmax(1))
    return x, src, dst, y, torch.rand(n, generator=g) < 0.6


class EarlyStop:
    def __init__(self, patience):
        self.best, self.bad, self.patience = 0.0, 0, patience

    def __call__(self, v):
        self.bad = 0 if v > self.best else self.bad + 1
        self.best = max(v, self.best)
        return self.bad > self.patience


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=4000)
    p.add_argument("--edges", type=int, default=40_000)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--epochs", type=int, default=50)
    a = p.parse_args()
    torch.manual_seed(0)
    x, src, dst, y, train = citation_graph(a.nodes, a.edges, 24)
    net = GNN(24, a.dim, 3, 4)
    opt = torch.optim.Rprop(net.parameters(), lr=1e-3)
    stop = EarlyStop(50)
    took = []
    for epoch in range(a.epochs):
        t = time.perf_counter()
        out = net(x, src, dst)
        loss = F.cross_entropy(out[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        took.append(time.perf_counter() - t)
        if epoch % 20 == 0:
            acc = (out[~train].argmax(1) == y[~train]).float().mean().item()
            print(f"epoch {epoch} loss {loss.item():.3f} val {acc:.3f}")
            if stop(acc):
                break
    print(f"ms/step {1e3 * sum(took[10:]) / len(took[10:]):.2f}")


if __name__ == "__main__":
    main()
