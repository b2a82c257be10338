"""Session-based recommender: next item from the last clicks."""
import argparse
import logging
import time

import numpy as np
import tensorflow as tf

from layers_s import ItemEmbedding, Tower

log = logging.getLogger("rec")


class SessionModel(tf.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.items = ItemEmbedding(n_items, dim)
        self.tower = Tower(dim, 256, dim)

    def loss(self, hist, pos, neg):
        h = self.items(hist)
        n = tf.reduce_sum(tf.cast(hist > 0, tf.float32), 1, keepdims=True) + 1e-6
        u = self.tower(tf.reduce_sum(h, 1) / n)
        cand = self.items(tf.concat([pos[:, None], neg], 1))
        logits = tf.einsum("bd,bkd->bk", u, cand)
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros_like(pos), logits))


def sessions(n, n_items, length, seed=0):
    rng = np.random.default_rng(seed)
    hist = rng.integers(1, n_items, (n, length)).astype(np.int32)
    for i, k in enumerate(rng.integers(3, length, n)):
        hist[i, k:] = 0
    pos = rng.integers(1, n_items, n).astype(np.int32)
    neg = rng.integers(1, n_items, (n, 8)).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((hist, pos, neg))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--items", type=int, default=150_000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=90)
    p.add_argument("--lr", type=float, default=0.1)
    a = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    model = SessionModel(a.items, a.dim)
    opt = tf.keras.optimizers.SGD(a.lr)
    opt.build(model.trainable_variables)
    ds = sessions(20_000, a.items, 20).shuffle(5000).batch(a.batch, drop_remainder=True).repeat().prefetch(2)

    @tf.function
    def train_step(hist, pos, neg):
        with tf.GradientTape() as tape:
            loss = model.loss(hist, pos, neg)
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
        return loss

    it = iter(ds)
    t0 = None
    for step in range(a.steps):
        if step == 10:
            t0 = time.perf_counter()
        loss = train_step(*next(it))
        if step % 30 == 0:
            log.info("step %d loss %.4f", step, float(loss))
    log.info("ms/step %.2f", (time.perf_counter() - t0) * 1e3 / (a.steps - 10))


if __name__ == "__main__":
    main()
