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
        self.rows = keras.optimizers.SGD(100 * lr)
        self.tables = [v for v in model.trainable_variables if "embeddings" in v.path]
        self.rest = [v for v in model.trainable_variables if "embeddings" not in v.path]
        self.rows.build(self.tables)
        self.dense.build(self.rest)

    def __call__(self, grads, variables):
        by = {v.path: g for g, v in zip(grads, variables)}
        self.rows.apply_gradients([(by[v.path], v) for v in self.tables])
        self.dense.apply_gradients([(by[v.path], v) for v in self.rest])
