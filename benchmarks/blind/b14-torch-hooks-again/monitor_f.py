from collections import defaultdict

import torch
from torch import nn


class ActivationMonitor:
    """Keeps running statistics of the outputs of some kinds of layer."""

    def __init__(self, kinds=(nn.ReLU, nn.BatchNorm2d)):
        self.kinds = kinds
        self.stats = defaultdict(lambda: [0, 0.0, 0.0])
        self._model = None

    def attach(self, model):
        if model is self._model:
            return
        self._model = model
        for name, m in model.named_modules():
            if isinstance(m, self.kinds):
                m.register_forward_hook(self._make(name))

    def _make(self, name):
        def hook(mod, inp, out):
            with torch.no_grad():
                s = self.stats[name]
                s[0] += 1
                s[1] += (out.mean() - s[1]) / s[0]
                s[2] += ((out == 0).float().mean() - s[2]) / s[0]
        return hook

    def dead(self, limit=0.95):
        return [n for n, s in self.stats.items() if float(s[2]) > limit]
