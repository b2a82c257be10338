import math


class Anneal:
    """Cyclical KL weight (Fu et al. 2019)."""

    def __init__(self, period=200, ratio=0.5, top=1.0):
        self.period, self.ratio, self.top = period, ratio, top

    def __call__(self, step):
        x = (step % self.period) / (self.period * self.ratio)
        return self.top * 0.5 * (1 - math.cos(math.pi * min(x, 1.0)))
