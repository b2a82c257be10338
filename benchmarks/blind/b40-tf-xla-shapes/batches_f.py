import numpy as np


class SensorWindows:
    """Variable-length recordings, padded to the longest of the batch."""

    def __init__(self, n, channels, batch, seed=0, max_len=192):
        self.rng = np.random.default_rng(seed)
        self.lens = self.rng.integers(max_len // 4, max_len, n)
        self.lens[::97] = max_len
        self.channels, self.batch, self.max_len = channels, batch, max_len

    def __iter__(self):
        while True:
            idx = self.rng.choice(len(self.lens), self.batch)
            lens = self.lens[idx]
            n = self.max_len
            x = self.rng.standard_normal((self.batch, n, self.channels), dtype=np.float32)
            mask = (np.arange(n)[None] < lens[:, None]).astype(np.float32)
            y = (x[:, 0, 0] > 0).astype(np.int32)
            yield x * mask[..., None], mask, y
