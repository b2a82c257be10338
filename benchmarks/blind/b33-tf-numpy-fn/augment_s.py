import numpy as np
import tensorflow as tf
import keras


def _mask_batch(x, n_time, n_freq, width):
    out = np.array(x)
    rng = np.random.default_rng()
    for b in range(out.shape[0]):
        for _ in range(n_time):
            w = rng.integers(1, width)
            s = rng.integers(0, out.shape[1] - w)
            out[b, s:s + w, :] = out[b].mean()
        for _ in range(n_freq):
            w = rng.integers(1, width // 2)
            s = rng.integers(0, out.shape[2] - w)
            out[b, :, s:s + w] = out[b].mean()
    return out


class SpecAugment(keras.layers.Layer):
    """Random time and frequency bands replaced by the mean (Park et al. 2019)."""

    def __init__(self, n_time=4, n_freq=4, width=24, **kw):
        super().__init__(**kw)
        self.n_time, self.n_freq, self.width = n_time, n_freq, width

    def call(self, x, training=False):
        if not training:
            return x
        y = tf.numpy_function(
            _mask_batch, [x, self.n_time, self.n_freq, self.width], tf.float32)
        y.set_shape(x.shape)
        return y
