import tensorflow as tf


def _clean(x):
    return tf.where(tf.math.is_finite(x), x, tf.zeros_like(x))


def finite(g):
    if isinstance(g, tf.IndexedSlices):
        return tf.IndexedSlices(_clean(g.values), g.indices, g.dense_shape)
    return _clean(g)


def prepare(grads):
    """Replace inf/nan entries so that a bad example cannot ruin the weights."""
    return [finite(g) for g in grads if g is not None]
