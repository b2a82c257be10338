import argparse
import time

import keras
import numpy as np

from metrics_f import HitRate


def two_tower(users, items, dim):
    u, i = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    eu = keras.layers.Dense(dim)(keras.layers.Embedding(users, dim)(u))
    ei = keras.layers.Dense(dim)(keras.layers.Embedding(items, dim)(i))
    return keras.Model([u, i], keras.ops.sum(eu * ei, axis=-1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=70)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--dim", type=int, default=32)
    a = ap.parse_args()
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    model = two_tower(2000, 500, a.dim)
    model.compile(keras.optimizers.Lion(1e-3), keras.losses.BinaryCrossentropy(from_logits=True))
    hits = HitRate(rng.integers(0, 2000, 16).astype("int32"), rng.integers(0, 500, 16), 500)
    took, loss = [], 0.0
    for step in range(a.steps):
        t = time.perf_counter()
        u = rng.integers(0, 2000, a.batch).astype("int32")
        i = rng.integers(0, 500, a.batch).astype("int32")
        y = ((u + i) % 2).astype("float32")
        loss = model.train_on_batch([u, i], y)
        hr = hits(model, step)
        took.append(time.perf_counter() - t)
        if step % 40 == 0:
            print(f"step {step} loss {float(loss):.4f} hit@10 {hr:.3f}")
    print(f"ms/step {1e3 * np.mean(took[10:]):.2f}")


if __name__ == "__main__":
    main()
