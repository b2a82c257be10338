import time
import numpy as np
import keras
from keras import layers
import tensorflow as tf

N_USERS, N_ITEMS, DIM, BATCH = 150_000, 60_000, 32, 256


def build():
    u = keras.Input((), dtype="int32")
    i = keras.Input((), dtype="int32")
    eu = layers.Embedding(N_USERS, DIM)(u)
    ei = layers.Embedding(N_ITEMS, DIM)(i)
    h = layers.Concatenate()([eu, ei])
    for width in (64, 32):
        h = layers.Dense(width, activation="relu")(h)
    return keras.Model([u, i], layers.Dense(1)(h))


model = build()
bce = keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(u, i, y):
    with tf.GradientTape() as tape:
        loss = bce(y, model([u, i], training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main(steps=80):
    rng = np.random.default_rng(0)
    n = steps * BATCH
    users, items = rng.integers(0, N_USERS, n, dtype=np.int32), rng.integers(0, N_ITEMS, n, dtype=np.int32)
    y = ((users + items) % 2).astype("float32")[:, None]
    ds = tf.data.Dataset.from_tensor_slices((users, items, y)).batch(BATCH, drop_remainder=True).prefetch(4)
    for k, batch in enumerate(ds):
        if k == 10:
            t0 = time.perf_counter()
        loss = train_step(*batch)
        if k % 20 == 0:
            print(f"step {k}: bce {float(loss):.4f}")
    print("STEP_MS", (time.perf_counter() - t0) / (steps - 10) * 1e3)


if __name__ == "__main__":
    main()
