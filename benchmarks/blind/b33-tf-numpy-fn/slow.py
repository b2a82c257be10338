"""Keyword spotting on log-mel features."""
import argparse
import time

import numpy as np
import tensorflow as tf
import keras

from augment_s import SpecAugment


class StepTimer(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.t = []

    def on_train_batch_begin(self, batch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.t.append(time.perf_counter() - self.t0)


def make_model(frames, mels, classes):
    x = inp = keras.Input((frames, mels))
    x = SpecAugment()(x)
    x = keras.layers.Conv1D(64, 5, strides=2, activation="relu")(x)
    x = keras.layers.Conv1D(96, 5, strides=2, activation="relu")(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(inp, keras.layers.Dense(classes, activation="softmax")(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--clips", type=int, default=1600)
    a = p.parse_args()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(a.clips, 128, 64)).astype(np.float32)
    y = rng.integers(0, 20, a.clips)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(a.clips).batch(a.batch_size).prefetch(tf.data.AUTOTUNE)
    model = make_model(128, 64, 20)
    model.compile(keras.optimizers.AdamW(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    timer = StepTimer()
    model.fit(ds, epochs=a.epochs, verbose=2, callbacks=[timer])
    print(f"ms/step {1e3 * np.mean(timer.t[10:]):.2f}")


if __name__ == "__main__":
    main()
