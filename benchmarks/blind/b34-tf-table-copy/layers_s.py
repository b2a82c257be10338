import tensorflow as tf


class ItemEmbedding(tf.Module):
    """Item vectors; id 0 is padding and always maps to zeros."""

    def __init__(self, n_items, dim, seed=0):
        super().__init__()
        init = tf.random.stateless_normal([n_items, dim], seed=[seed, 1], stddev=0.05)
        self.table = tf.Variable(init, name="items")

    def __call__(self, ids):
        pad = tf.zeros([1, self.table.shape[1]])
        rows = tf.concat([pad, self.table], axis=0)
        return tf.gather(rows, ids)


class Tower(tf.Module):
    def __init__(self, din, hidden, dout):
        super().__init__()
        k = tf.keras.initializers.GlorotUniform(seed=3)
        self.w1 = tf.Variable(k((din, hidden)))
        self.b1 = tf.Variable(tf.zeros([hidden]))
        self.w2 = tf.Variable(k((hidden, dout)))

    def __call__(self, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.w1) + self.b1), self.w2)
