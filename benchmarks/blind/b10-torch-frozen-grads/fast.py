"""Train a segmentation head on a pretrained encoder."""
import argparse
import logging
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from finetune_f import Encoder, Segmenter

log = logging.getLogger("seg")


class Scenes(Dataset):
    def __init__(self, n, size):
        self.x = torch.rand(n, 3, size, size)
        self.y = (self.x.mean(1) * 5).long().clamp(0, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def iou(model, loader, classes=5):
    model.eval()
    inter, union = torch.zeros(classes), torch.zeros(classes)
    with torch.inference_mode():
        for x, y in loader:
            p = F.one_hot(model(x).argmax(1), classes).bool()
            t = F.one_hot(y, classes).bool()
            inter += (p & t).sum((0, 1, 2))
            union += (p | t).sum((0, 1, 2))
    model.train()
    return (inter / union.clamp_min(1)).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=96)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    torch.manual_seed(0)
    model = Segmenter(Encoder())
    opt = torch.optim.AdamW(model.head_parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, a.epochs * 32)
    train = DataLoader(Scenes(176, a.size), a.batch, shuffle=True)
    val = DataLoader(Scenes(16, a.size), 16)
    took = []
    for e in range(a.epochs):
        for x, y in train:
            t = time.perf_counter()
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            took.append(time.perf_counter() - t)
        log.info("epoch %d loss %.3f iou %.3f", e, loss.item(), iou(model, val))
    log.info("ms/step %.2f", 1e3 * sum(took[10:]) / len(took[10:]))


if __name__ == "__main__":
    main()
