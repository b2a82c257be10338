import argparse
import time

import numpy as np
import tensorflow as tf

from batches_f import SensorWindows


class Net(tf.Module):
    def __init__(self, cin, width, classes):
        super().__init__()
        g = tf.keras.initializers.HeNormal(seed=0)
        self.k1 = tf.Variable(g((1 * cin, width)))
        self.k2 = tf.Variable(g((width, width)))
        self.k3 = tf.Variable(g((width, width)))
        self.out = tf.Variable(g((width, classes)))
        self.gain = tf.Variable(tf.ones([width]))

    def __call__(self, x, mask):
        h = tf.nn.gelu(x @ self.k1)
        h = h + tf.nn.gelu(h @ self.k2) * self.gain
        a = tf.nn.softmax(tf.reduce_sum(h, -1) + (mask - 1.0) * 1e9)
        h = h + tf.nn.gelu(h @ self.k3)
        return tf.reduce_sum(h * a[..., None], 1) @ self.out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=45)
    p.add_argument("--batch", type=int, default=6)
    p.add_argument("--width", type=int, default=256)
    args = p.parse_args()

    net = Net(32, args.width, 2)
    velocity = [tf.Variable(tf.zeros_like(v)) for v in net.trainable_variables]

    @tf.function(jit_compile=True, reduce_retracing=True)
    def update(x, mask, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=net(x, mask)))
        for v, m, g in zip(net.trainable_variables, velocity, tape.gradient(loss, net.trainable_variables)):
            m.assign(0.9 * m + g)
            v.assign_sub(1e-3 * m)
        return loss

    seen, losses = [], []
    for step, (x, mask, y) in zip(range(args.steps), SensorWindows(4000, 32, args.batch)):
        t = time.perf_counter()
        loss = update(tf.constant(x), tf.constant(mask), tf.constant(y))
        losses.append(float(loss))
        seen.append(time.perf_counter() - t)
        if step % 20 == 19:
            print(f"step {step + 1}: loss {np.mean(losses[-20:]):.4f}")
    print(f"ms/step {1e3 * np.mean(seen[10:]):.2f}")


if __name__ == "__main__":
    main()
