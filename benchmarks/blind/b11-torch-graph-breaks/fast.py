"""Regression of a physical field with a compiled gated MLP."""
import argparse
import logging
import time

import torch

from layers_f import Stack


def sample(n, gen):
    xy = torch.rand(n, 6, generator=gen) * 2 - 1
    return xy, torch.stack([(3 * xy[:, 0]).sin() * xy[:, 1], (xy[:, 2:] ** 2).sum(1)], 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--points", type=int, default=2048)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--depth", type=int, default=5)
    a = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    model = torch.compile(Stack(6, a.width, a.depth, 2))
    opt = torch.optim.NAdam(model.parameters(), lr=2e-3)
    t0 = None
    for s in range(a.steps):
        if s == 20:
            t0 = time.perf_counter()
        x, y = sample(a.points, gen)
        loss = (model(x) - y).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if s % 50 == 0:
            logging.info("step %d mse %.4f", s, loss.item())
    logging.info("ms/step %.2f", 1e3 * (time.perf_counter() - t0) / (a.steps - 20))


if __name__ == "__main__":
    main()
