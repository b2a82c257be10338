import time
import numpy as np
import keras
import tensorflow as tf

LATENT = 8


class VAE(keras.Model):
    def __init__(self, dim=64):
        super().__init__()
        self.enc1 = keras.layers.Dense(96, activation="relu")
        self.enc2 = keras.layers.Dense(64, activation="relu")
        self.stats = keras.layers.Dense(2 * LATENT)
        self.dec1 = keras.layers.Dense(64, activation="relu")
        self.dec2 = keras.layers.Dense(96, activation="relu")
        self.out = keras.layers.Dense(dim)

    def call(self, x):
        mu, logvar = tf.split(self.stats(self.enc2(self.enc1(x))), 2, axis=-1)
        z = mu + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mu))
        return self.out(self.dec2(self.dec1(z))), mu, logvar


def elbo_loss(x, rec, mu, logvar):
    rec_term = tf.reduce_sum(tf.square(rec - x), axis=-1)
    kl = -0.5 * tf.reduce_sum(1 + logvar - tf.square(mu) - tf.exp(logvar), axis=-1)
    return tf.reduce_mean(rec_term + kl)


vae = VAE()
optimizer = keras.optimizers.Adam(1e-3)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        rec, mu, logvar = vae(x, training=True)
        loss = elbo_loss(x, rec, mu, logvar)
    grads = tape.gradient(loss, vae.trainable_variables)
    optimizer.apply_gradients(zip(grads, vae.trainable_variables))
    return loss


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    data = np.random.randn(4096, 6).astype("float32") @ np.random.randn(6, 64).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(data).shuffle(4096).repeat().batch(128).prefetch(2)
    n_steps = 80
    for i, x in enumerate(ds.take(n_steps)):
        if i == 10:
            t0 = time.perf_counter()
        loss = train_step(x)
        if i % 30 == 0:
            print("step", i, "elbo loss", float(loss))
    print("STEP_MS", (time.perf_counter() - t0) / (n_steps - 10) * 1000)
