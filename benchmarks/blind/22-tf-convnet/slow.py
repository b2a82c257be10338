import argparse
import time
import numpy as np
import keras
from keras import layers
import tensorflow as tf


def small_resnet(classes=4):
    inp = keras.Input((16, 16, 3))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inp)
    for width in (16, 24, 32):
        s = layers.Conv2D(width, 1, strides=2)(x)
        x = layers.Conv2D(width, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 3, padding="same")(x)
        x = layers.ReLU()(layers.Add()([x, s]))
    return keras.Model(inp, layers.Dense(classes)(layers.GlobalAveragePooling2D()(x)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=120)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    a = p.parse_args()
    keras.utils.set_random_seed(1)
    model = small_resnet()
    opt = keras.optimizers.AdamW(a.lr, weight_decay=1e-4)
    opt.build(model.trainable_variables)
    xent = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def compute(x, y):
        with tf.GradientTape() as tape:
            loss = xent(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        return loss, grads

    y = np.random.randint(0, 4, 1024).astype("int32")
    x = np.random.randn(1024, 16, 16, 3).astype("float32") + 0.3 * y[:, None, None, None]
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024).repeat().batch(a.batch, drop_remainder=True).prefetch(2)
    for step, (bx, by) in enumerate(ds.take(a.steps)):
        if step == 10:
            t0 = time.perf_counter()
        loss, grads = compute(bx, by)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        if step % 40 == 0:
            print(f"step {step} loss {loss.numpy():.4f}")
    print("STEP_MS", 1000 * (time.perf_counter() - t0) / (a.steps - 10))


if __name__ == "__main__":
    main()
