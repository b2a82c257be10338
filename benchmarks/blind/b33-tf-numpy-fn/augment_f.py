import numpy as np
import tensorflow as tf
import keras


def _band(n, b, k, width):
    w = tf.random.uniform([b, k, 1], 1, width, tf.int32)
    s = tf.random.uniform([b, k, 1], 0, n - width, tf.int32)
    r = tf.range(n)[None, None]
    return tf.reduce_any((r >= s) & (r < s + w), 1)


class SpecAugment(keras.layers.Layer):
    """Random time and frequency bands replaced by the mean (Park et al. 2019)."""

    def __init__(self, n_time=4, n_freq=4, width=24, **kw):
        super().__init__(**kw)
        self.n_time, self.n_freq, self.width = n_time, n_freq, width

    def call(self, x, training=False):
        if not training:
            return x
        b = tf.shape(x)[0]
        t = _band(x.shape[1], b, self.n_time, self.width)[:, :, None]
        f = _band(x.shape[2], b, self.n_freq, self.width // 2)[:, None, :]
        mean = tf.reduce_mean(x, [1, 2], keepdims=True)
        return tf.where(t | f, mean, x)
