"""Click-through rate, hashed categorical fields."""
import argparse
import logging
import time

import torch
import torch.nn.functional as F

from model_f import FactorizationNet, make_optimizer

log = logging.getLogger("ctr")


def auc(score, label):
    order = score.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    pos = label > 0.5
    n1, n0 = pos.sum(), (~pos).sum()
    return ((rank[pos].sum() - n1 * (n1 - 1) / 2) / (n1 * n0)).item()


@torch.no_grad()
def evaluate(model, ids, y):
    model.eval()
    r = auc(model(ids), y)
    model.train()
    return r


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--buckets", type=int, default=400_000)
    ap.add_argument("--fields", type=int, default=14)
    ap.add_argument("--dim", type=int, default=16)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--steps", type=int, default=60)
    a = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(0)
    ids = torch.randint(a.buckets, (40_000, a.fields))
    y = (ids[:, 0] % 3 == 0).float()
    order = torch.randperm(len(y)).split(a.batch)
    model = FactorizationNet(a.buckets, a.fields, a.dim, 64)
    opt = make_optimizer(model, 0.05)
    took = []
    for step, rows in enumerate(order[:a.steps]):
        x, t = ids[rows], y[rows]
        s = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        loss = F.binary_cross_entropy_with_logits(model(x), t)
        total = loss + 0.5e-5 * model.penalty
        total.backward()
        opt.step()
        took.append(time.perf_counter() - s)
        if step % 40 == 0:
            log.info("step %d loss %.4f auc %.3f", step, loss.item(), evaluate(model, ids[:2000], y[:2000]))
    log.info("ms/step %.2f", 1e3 * sum(took[10:]) / len(took[10:]))


if __name__ == "__main__":
    main()
