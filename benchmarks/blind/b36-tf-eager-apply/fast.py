"""Node classification on sampled subgraphs."""
import argparse

import keras
import numpy as np
import tensorflow as tf

from trainer_f import GraphTrainer


class GraphConv(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.own, self.nbr = keras.layers.Dense(units), keras.layers.Dense(units, use_bias=False)
        self.norm = keras.layers.LayerNormalization()

    def call(self, adj, h):
        return keras.ops.relu(self.norm(self.own(h) + self.nbr(tf.matmul(adj, h))))


def build(nodes, feats, classes, width, depth):
    adj, x = keras.Input((nodes, nodes)), keras.Input((nodes, feats))
    h = x
    for _ in range(depth):
        h = GraphConv(width)(adj, h)
    return keras.Model([adj, x], keras.layers.Dense(classes)(h))


def subgraphs(n, nodes, feats, classes, seed=0):
    rng = np.random.default_rng(seed)
    adj = (rng.random((n, nodes, nodes)) < 0.15).astype("float32")
    adj /= adj.sum(-1, keepdims=True) + 1
    return (adj, rng.normal(size=(n, nodes, feats)).astype("float32"),
            rng.integers(0, classes, (n, nodes)), (rng.random((n, nodes)) < 0.5).astype("float32"))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--depth", type=int, default=8)
    ap.add_argument("--width", type=int, default=32)
    ap.add_argument("--steps", type=int, default=60)
    a = ap.parse_args()
    keras.utils.set_random_seed(1)
    ds = tf.data.Dataset.from_tensor_slices(subgraphs(256, 24, 16, 6)).shuffle(256).repeat().batch(8).prefetch(2)
    model = build(24, 16, 6, a.width, a.depth)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    GraphTrainer(model, keras.optimizers.AdamW(1e-3, weight_decay=1e-4), loss).fit(ds, a.steps)
