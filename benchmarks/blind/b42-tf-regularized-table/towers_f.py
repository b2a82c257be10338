import keras
from keras import layers, regularizers


def embed(n, dim, name, l2=1e-6):
    return layers.Embedding(n, dim, name=name, activity_regularizer=regularizers.L2(l2))


def ncf(users, items, dim, hidden):
    u, i = keras.Input((), dtype="int32", name="u"), keras.Input((), dtype="int32", name="i")
    x = layers.Concatenate()([embed(users, dim, "user")(u), embed(items, dim, "item")(i)])
    for h in hidden:
        x = layers.Dense(h, activation="relu")(x)
        x = layers.Dropout(0.1)(x)
    return keras.Model({"u": u, "i": i}, layers.Dense(1)(x))
