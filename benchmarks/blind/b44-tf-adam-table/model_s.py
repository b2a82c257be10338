import keras
import tensorflow as tf


class SkipGram(keras.Model):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = keras.layers.Embedding(vocab, dim)
        self.proj = keras.layers.Dense(dim)
        self.context = keras.layers.Embedding(vocab, dim)

    def call(self, inputs):
        c, ctx = inputs
        return tf.einsum("bd,bkd->bk", self.proj(self.center(c)), self.context(ctx))


class Updater:
    """Applies gradients; tables may be treated apart."""

    def __init__(self, model, lr):
        self.dense = keras.optimizers.Adam(lr)
        self.dense.build(model.trainable_variables)

    def __call__(self, grads, variables):
        self.dense.apply_gradients(zip(grads, variables))
