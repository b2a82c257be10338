import numpy as np


class HitRate:
    """Share of held-out users whose item is in the top k."""

    def __init__(self, users, items, n_items, k=10, every=1):
        self.users, self.items, self.k, self.every = users, items, k, every
        self.all_items = np.arange(n_items, dtype="int32")
        self.last = 0.0

    def __call__(self, model, step):
        if step % self.every == 0:
            u = np.repeat(self.users, len(self.all_items))
            i = np.tile(self.all_items, len(self.users))
            s = model.predict([u, i], batch_size=1024, verbose=0).reshape(len(self.users), -1)
            top = np.argpartition(-s, self.k, axis=1)[:, :self.k]
            self.last = float(np.mean(np.any(top == self.items[:, None], axis=1)))
        return self.last
