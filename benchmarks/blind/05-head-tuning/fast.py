import argparse
import time
import torch
import torch.nn as nn
import torch.nn.functional as F


def block(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=s, padding=1, bias=False),
                         nn.GroupNorm(4, o), nn.ReLU(inplace=True))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(block(3, 16, 1), block(16, 32, 2), block(32, 32, 1), block(32, 64, 2))

    def forward(self, x):
        return self.layers(x).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x):
        return self.head(self.backbone(x))


parser = argparse.ArgumentParser(description="tune the classification head")
parser.add_argument("--steps", default=80, type=int)
parser.add_argument("--batch", default=16, type=int)
parser.add_argument("--classes", default=10, type=int)
opts = parser.parse_args()

torch.manual_seed(7)
model = Classifier(opts.classes)
model.backbone.requires_grad_(False)
images = torch.randn(512, 3, 32, 32)
labels = torch.randint(opts.classes, (512,))
optim = torch.optim.SGD(model.head.parameters(), lr=0.05, momentum=0.9)

total, counted = 0.0, 0
for step in range(opts.steps):
    begin = time.perf_counter()
    idx = torch.randint(512, (opts.batch,))
    model.zero_grad()
    loss = F.cross_entropy(model(images[idx]), labels[idx])
    loss.backward()
    optim.step()
    if step >= 10:
        total += time.perf_counter() - begin
        counted += 1
    if step % 20 == 0:
        print("iter", step, "loss %.4f" % loss.item())
print("STEP_MS", total / counted * 1e3)
