"""Fine-tune a small head on top of a small CNN, images from a folder."""
import argparse
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

import pipeline_s as pipeline


def cnn(size, classes):
    return keras.Sequential([
        keras.Input((size, size, 3)),
        keras.layers.Conv2D(12, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(24, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(classes),
    ])


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.at = []

    def on_train_batch_end(self, batch, logs=None):
        self.at.append(time.perf_counter())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=64)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--steps-per-epoch", type=int, default=25)
    a = ap.parse_args()
    ds = pipeline.image_dataset(pipeline.write_images(400, 256), a.size, a.batch)
    model = cnn(a.size, 10)
    model.compile(keras.optimizers.Adam(3e-4),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    clock = Clock()
    model.fit(ds, epochs=a.epochs, steps_per_epoch=a.steps_per_epoch, verbose=2, callbacks=[clock])
    print(f"ms/step {1e3 * np.mean(np.diff(clock.at)[10:]):.2f}")


if __name__ == "__main__":
    main()
