import argparse
import time

import numpy as np
import tensorflow as tf

from model_f import SkipGram, Updater


def pairs(n, vocab, negatives, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.zipf(1.3, n) % vocab
    pos = (c + rng.integers(1, 6, n)) % vocab
    neg = rng.integers(0, vocab, (n, negatives))
    return c.astype("int32"), np.concatenate([pos[:, None], neg], 1).astype("int32")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--vocab", type=int, default=50_000)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--steps", type=int, default=50)
    a = ap.parse_args()
    tf.random.set_seed(0)
    model = SkipGram(a.vocab, a.dim)
    ds = tf.data.Dataset.from_tensor_slices(pairs(40_000, a.vocab, 5)).shuffle(10_000).repeat().batch(a.batch).prefetch(2)
    model(next(iter(ds)))
    update = Updater(model, 1e-3)
    labels = tf.constant([[1.0] + [0.0] * 5])

    @tf.function
    def step(c, ctx):
        with tf.GradientTape() as tape:
            logits = model((c, ctx))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels + 0 * logits, logits))
        update(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    took = []
    for i, (c, ctx) in enumerate(ds.take(a.steps)):
        t = time.perf_counter()
        loss = step(c, ctx).numpy()
        took.append(time.perf_counter() - t)
        if i % 25 == 0:
            print(f"{i}: {loss:.4f}")
    print(f"ms/step {1e3 * np.mean(took[10:]):.2f}")


if __name__ == "__main__":
    main()
