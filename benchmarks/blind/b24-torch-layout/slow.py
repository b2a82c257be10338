import argparse
import logging
import time

import torch
import torch.nn.functional as F

from blocks_s import Net

logger = logging.getLogger(__name__)


def fake_images(n, size, classes):
    g = torch.Generator().manual_seed(0)
    x = torch.rand(n, size, size, 3, generator=g)
    return torch.utils.data.TensorDataset(x, torch.randint(classes, (n,), generator=g))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def run(cfg):
    torch.manual_seed(cfg.seed)
    train = torch.utils.data.DataLoader(fake_images(640, cfg.size, 10), cfg.batch, shuffle=True)
    val = torch.utils.data.DataLoader(fake_images(64, cfg.size, 10), 64)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=cfg.epochs * len(train))
    times = []
    for epoch in range(cfg.epochs):
        for x, y in train:
            t = time.perf_counter()
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            times.append(time.perf_counter() - t)
        logger.info("epoch %d loss %.3f val %.3f", epoch, loss.item(), validate(model, val))
    logger.info("ms/step %.2f", 1e3 * sum(times[10:]) / len(times[10:]))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=64)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=0)
    run(ap.parse_args())
