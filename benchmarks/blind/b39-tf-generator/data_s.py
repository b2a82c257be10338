import numpy as np
import tensorflow as tf


class Prices:
    """Sliding windows over many stock series."""

    def __init__(self, series, length, window, horizon, seed=0):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(series, length)).cumsum(1).astype(np.float32)
        self.window, self.horizon, self.rng = window, horizon, rng

    def __call__(self):
        while True:
            s = self.rng.integers(len(self.x))
            t = self.rng.integers(self.x.shape[1] - self.window - self.horizon)
            past = self.x[s, t:t + self.window]
            nxt = self.x[s, t + self.window:t + self.window + self.horizon]
            mu, sd = past.mean(), past.std() + 1e-3
            yield ((past - mu) / sd)[:, None], (nxt - mu) / sd

    def dataset(self, batch):
        sig = (tf.TensorSpec((self.window, 1), tf.float32), tf.TensorSpec((self.horizon,), tf.float32))
        return tf.data.Dataset.from_generator(self, output_signature=sig).batch(batch).prefetch(2)
