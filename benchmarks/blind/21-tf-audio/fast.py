"""Keyword spotting on synthetic log-mel frames."""
import time
import numpy as np
import keras
from keras import layers
import tensorflow as tf

FRAMES, MELS, CLASSES, BATCH = 40, 20, 8, 64


def keep_mask(n, size, width):
    start = tf.random.uniform([n, 1], 0, size - width, tf.int32)
    pos = tf.range(size)[None]
    return tf.cast((pos < start) | (pos >= start + width), tf.float32)


def augment(x, y):
    x = x * keep_mask(BATCH, FRAMES, 6)[:, :, None] * keep_mask(BATCH, MELS, 4)[:, None, :]
    return x + tf.random.normal([BATCH, FRAMES, MELS], stddev=0.1), y


def pipeline(x, y):
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=0).repeat()
    ds = ds.batch(BATCH, drop_remainder=True)
    return ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


model = keras.Sequential([
    keras.Input((FRAMES, MELS)),
    layers.Conv1D(32, 5, strides=2, activation="relu"),
    layers.Conv1D(32, 3, activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(CLASSES),
])
optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
optimizer.build(model.trainable_variables)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step_fn(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


def run(steps=150, warm=15):
    rng = np.random.default_rng(1)
    y = rng.integers(0, CLASSES, 2000).astype("int32")
    x = rng.normal(size=(2000, FRAMES, MELS)).astype("float32")
    x[np.arange(2000), :, y] += 1.0
    it = iter(pipeline(x, y))
    for s in range(steps):
        if s == warm:
            t0 = time.perf_counter()
        loss = step_fn(*next(it))
        if s % 50 == 0:
            print("step", s, "loss", float(loss))
    print("STEP_MS", (time.perf_counter() - t0) / (steps - warm) * 1000)


if __name__ == "__main__":
    run()
