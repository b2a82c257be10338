import argparse
import time
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tf_keras as keras

import gradutils_f as gradutils


@dataclass
class Config:
    vocab: int = 300_000
    dim: int = 48
    classes: int = 12
    length: int = 40
    batch: int = 64
    lr: float = 0.05
    steps: int = 90


def build(cfg):
    ids = keras.Input((cfg.length,), dtype="int32")
    x = keras.layers.Embedding(cfg.vocab, cfg.dim)(ids)
    x = keras.layers.Conv1D(96, 5, activation="relu")(x)
    x = keras.layers.GlobalMaxPooling1D()(x)
    x = keras.layers.Dropout(0.1)(x)
    return keras.Model(ids, keras.layers.Dense(cfg.classes)(x))


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.opt = keras.optimizers.legacy.Adagrad(cfg.lr)
        self.loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.acc = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def step(self, x, y):
        with tf.GradientTape() as tape:
            out = self.model(x, training=True)
            loss = self.loss_fn(y, out)
        tv = self.model.trainable_variables
        grads = gradutils.prepare(tape.gradient(loss, tv))
        self.opt.apply_gradients(zip(grads, tv))
        self.acc.update_state(y, out)
        return loss

    def fit(self, ds):
        times = []
        for i, (x, y) in enumerate(ds.take(self.cfg.steps)):
            t = time.perf_counter()
            loss = self.step(x, y)
            times.append(time.perf_counter() - t)
            if i % 30 == 0:
                print(f"[{i}/{self.cfg.steps}] loss={loss.numpy():.3f} acc={self.acc.result().numpy():.3f}")
        print(f"ms/step {1e3 * np.mean(times[10:]):.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=90)
    cfg = Config(steps=p.parse_args().steps)
    rng = np.random.default_rng(0)
    x = (rng.zipf(1.2, (8000, cfg.length)) % cfg.vocab).astype(np.int32)
    y = rng.integers(0, cfg.classes, 8000)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(8000).repeat().batch(cfg.batch).prefetch(2)
    Trainer(build(cfg), cfg).fit(ds)


if __name__ == "__main__":
    main()
