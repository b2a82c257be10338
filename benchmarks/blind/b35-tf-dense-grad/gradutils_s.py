import tensorflow as tf


def finite(g):
    return tf.where(tf.math.is_finite(g), g, tf.zeros_like(g))


def prepare(grads):
    """Replace inf/nan entries so that a bad example cannot ruin the weights."""
    return [finite(g) for g in grads if g is not None]
