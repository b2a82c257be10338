import time

import tensorflow as tf


class GraphTrainer:
    def __init__(self, model, optimizer, loss, clip=1.0):
        self.model, self.optimizer, self.loss, self.clip = model, optimizer, loss, clip
        self.optimizer.build(model.trainable_variables)

    @tf.function
    def forward_backward(self, batch):
        adj, feats, labels, mask = batch
        with tf.GradientTape() as tape:
            logits = self.model([adj, feats], training=True)
            losses = self.loss(labels, logits)
            loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def apply(self, grads):
        grads, norm = tf.clip_by_global_norm(grads, self.clip)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return norm

    def train_step(self, batch):
        loss, grads = self.forward_backward(batch)
        return loss, self.apply(grads)

    def fit(self, data, steps):
        spent = []
        for i, batch in enumerate(data):
            if i == steps:
                break
            t = time.perf_counter()
            loss, norm = self.train_step(batch)
            spent.append(time.perf_counter() - t)
            if i % 50 == 0:
                print(f"step {i} loss {float(loss):.4f} |g| {float(norm):.3f}")
        print(f"ms/step {1e3 * sum(spent[10:]) / len(spent[10:]):.2f}")
