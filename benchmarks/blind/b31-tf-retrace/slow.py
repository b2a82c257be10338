"""Beta-VAE on tabular sensor snapshots."""
import argparse
import time

import keras
import numpy as np
import tensorflow as tf

from schedule_s import Anneal


class VAE(keras.Model):
    def __init__(self, d, hidden, z):
        super().__init__()
        self.enc = keras.Sequential([keras.layers.Dense(hidden, "relu"), keras.layers.Dense(2 * z)])
        self.dec = keras.Sequential([keras.layers.Dense(hidden, "relu"), keras.layers.Dense(d)])

    def call(self, x):
        mu, logvar = tf.split(self.enc(x), 2, -1)
        z = mu + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mu))
        kl = 0.5 * tf.reduce_sum(tf.exp(logvar) + mu**2 - 1 - logvar, -1)
        return self.dec(z), kl


class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt, self.beta = model, opt, Anneal()

    @tf.function
    def step(self, x, beta):
        with tf.GradientTape() as tape:
            y, kl = self.model(x, training=True)
            loss = tf.reduce_mean(tf.reduce_sum((x - y) ** 2, -1) + beta * kl)
        g = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(g, self.model.trainable_variables))
        return loss

    def run(self, ds, steps):
        took = []
        for i, x in enumerate(ds.take(steps)):
            t = time.perf_counter()
            loss = self.step(x, self.beta(i))
            took.append(time.perf_counter() - t)
            if i % 20 == 0:
                print(f"{i} elbo {-float(loss):.3f}")
        print(f"ms/step {1e3 * np.mean(took[10:]):.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=50)
    a = p.parse_args()
    keras.utils.set_random_seed(0)
    x = np.random.randn(20_000, 64).astype("float32")
    model = VAE(64, 256, 8)
    model(x[:2])
    opt = keras.optimizers.Adam(1e-3)
    opt.build(model.trainable_variables)
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(5000).repeat().batch(256).prefetch(2)
    Trainer(model, opt).run(ds, a.steps)


if __name__ == "__main__":
    main()
