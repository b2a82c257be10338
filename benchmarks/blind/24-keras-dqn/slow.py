import time
import numpy as np
import keras
from keras import layers
import tensorflow as tf

N_STATE, N_ACT, GAMMA, BATCH = 12, 4, 0.95, 64


def q_net():
    return keras.Sequential([keras.Input((N_STATE,)), layers.Dense(64, activation="relu"),
                             layers.Dense(64, activation="relu"), layers.Dense(N_ACT)])


class Agent:
    def __init__(self):
        self.q, self.target = q_net(), q_net()
        self.target.set_weights(self.q.get_weights())
        self.opt = keras.optimizers.Adam(1e-3)
        self.opt.build(self.q.trainable_variables)

    @tf.function
    def update(self, s, a, tgt):
        with tf.GradientTape() as tape:
            q = tf.gather(self.q(s, training=True), a, batch_dims=1)
            loss = tf.reduce_mean(keras.losses.huber(tgt[:, None], q[:, None]))
        g = tape.gradient(loss, self.q.trainable_variables)
        self.opt.apply_gradients(zip(g, self.q.trainable_variables))
        return loss

    def next_values(self, s):
        return self.target.predict(s, verbose=0)

    def learn(self, s, a, r, s2):
        tgt = r + GAMMA * np.max(self.next_values(s2), axis=1)
        return self.update(tf.constant(s), tf.constant(a), tf.constant(tgt, tf.float32))


def replay(rng, n=5000):
    s = rng.normal(size=(n, N_STATE)).astype("float32")
    a = rng.integers(0, N_ACT, n).astype("int32")
    return s, a, s[np.arange(n), a].astype("float32"), np.roll(s, 1, axis=1)


if __name__ == "__main__":
    keras.utils.set_random_seed(2)
    rng = np.random.default_rng(2)
    buf = replay(rng)
    agent = Agent()
    N = 80
    for step in range(N):
        if step == 8:
            t0 = time.perf_counter()
        pick = rng.integers(0, 5000, BATCH)
        loss = agent.learn(*(b[pick] for b in buf))
        if step % 20 == 0:
            print(f"step {step} td loss {float(loss):.4f}")
            agent.target.set_weights(agent.q.get_weights())
    print("STEP_MS", (time.perf_counter() - t0) / (N - 8) * 1000)
