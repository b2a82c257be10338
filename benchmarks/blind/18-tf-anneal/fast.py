import argparse
import math
import time
import tensorflow as tf


class DenoisingAE(tf.Module):
    def __init__(self, n=64, h=128):
        super().__init__()
        init = tf.random.stateless_normal
        self.w1 = tf.Variable(init([n, h], [1, 2]) / math.sqrt(n))
        self.b1 = tf.Variable(tf.zeros([h]))
        self.w2 = tf.Variable(init([h, n], [3, 4]) / math.sqrt(h))
        self.b2 = tf.Variable(tf.zeros([n]))

    def __call__(self, x):
        return tf.nn.relu(x @ self.w1 + self.b1) @ self.w2 + self.b2


model = DenoisingAE()


@tf.function
def train_step(x, noise, lr):
    noisy = x + noise * tf.random.normal(tf.shape(x))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(noisy) - x))
    variables = model.trainable_variables
    for v, g in zip(variables, tape.gradient(loss, variables)):
        v.assign_sub(lr * g)
    return loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--lr", type=float, default=0.2)
    args = ap.parse_args()
    tf.random.set_seed(0)
    basis = tf.random.normal([8, 64])
    spent = []
    for step in range(args.steps):
        x = tf.tanh(tf.random.normal([args.batch, 8]) @ basis)
        frac = step / args.steps
        lr = 0.5 * args.lr * (1 + math.cos(math.pi * frac))
        noise = 0.5 * (1 - frac)
        t0 = time.perf_counter()
        loss = train_step(x, tf.constant(noise, tf.float32), tf.constant(lr, tf.float32))
        spent.append(time.perf_counter() - t0)
        if step % 20 == 0:
            print(f"step {step} loss {float(loss):.4f} lr {lr:.4f}")
    print("STEP_MS", sum(spent[5:]) / len(spent[5:]) * 1000)


if __name__ == "__main__":
    main()
