import argparse
import time

import keras
import numpy as np

from data_s import Prices


def tcn(window, horizon, width, depth):
    x = inp = keras.Input((window, 1))
    x = keras.layers.Dense(width)(x)
    for i in range(depth):
        y = keras.layers.Conv1D(width, 3, padding="causal", strides=2, activation="relu")(x)
        x = keras.layers.LayerNormalization()(y)
    x = keras.layers.Flatten()(x)
    return keras.Model(inp, keras.layers.Dense(horizon)(x))


class Speed(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.t = []

    def on_train_batch_end(self, batch, logs=None):
        self.t.append(time.perf_counter())

    def on_train_end(self, logs=None):
        print(f"ms/step {1e3 * np.mean(np.diff(self.t)[10:]):.2f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--window", type=int, default=64)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--steps", type=int, default=45)
    a = ap.parse_args()
    model = tcn(a.window, 8, 16, 3)
    model.compile(keras.optimizers.Nadam(1e-3), keras.losses.Huber())
    model.fit(Prices(50, 2000, a.window, 8).dataset(a.batch), epochs=a.epochs,
              steps_per_epoch=a.steps, verbose=2, callbacks=[Speed()])


if __name__ == "__main__":
    main()
