"""Neural collaborative filtering on implicit feedback."""
import argparse
import time

import keras
import numpy as np
import tensorflow as tf

from towers_s import ncf


class Rate(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.t = []

    def on_train_batch_end(self, batch, logs=None):
        self.t.append(time.perf_counter())

    def on_train_end(self, logs=None):
        print(f"ms/step {1e3 * np.median(np.diff(self.t)[10:]):.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=200_000)
    p.add_argument("--items", type=int, default=50_000)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    rng = np.random.default_rng(0)
    n = a.batch * 30
    x = {"u": rng.integers(0, a.users, n).astype("int32"), "i": rng.integers(0, a.items, n).astype("int32")}
    y = (rng.random(n) < 0.3).astype("float32")[:, None]
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n).batch(a.batch).prefetch(2)
    model = ncf(a.users, a.items, a.dim, [64, 32])
    model.compile(keras.optimizers.SGD(0.05), keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(ds, epochs=a.epochs, verbose=2, callbacks=[Rate()])


if __name__ == "__main__":
    main()
