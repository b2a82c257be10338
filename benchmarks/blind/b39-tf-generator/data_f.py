import numpy as np
import tensorflow as tf


class Prices:
    """Sliding windows over many stock series."""

    def __init__(self, series, length, window, horizon, seed=0):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(series, length)).cumsum(1).astype(np.float32)
        self.window, self.horizon, self.rng = window, horizon, rng

    def dataset(self, batch):
        x = tf.constant(self.x)
        span = self.window + self.horizon

        def draw(_):
            s = tf.random.uniform([batch, 1], 0, x.shape[0], tf.int32)
            t = tf.random.uniform([batch, 1], 0, x.shape[1] - span, tf.int32) + tf.range(span)[None]
            w = tf.gather_nd(x, tf.stack([tf.broadcast_to(s, tf.shape(t)), t], -1))
            past, nxt = w[:, :self.window], w[:, self.window:]
            mu = tf.reduce_mean(past, 1, keepdims=True)
            sd = tf.math.reduce_std(past, 1, keepdims=True) + 1e-3
            return ((past - mu) / sd)[..., None], (nxt - mu) / sd

        return tf.data.Dataset.counter().map(draw, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
