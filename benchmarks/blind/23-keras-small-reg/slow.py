import time
import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(1600, 10)).astype("float32")
y = (np.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]).astype("float32")

model = keras.Sequential([
    keras.Input((10,)),
    layers.Dense(32, activation="tanh"),
    layers.Dense(32, activation="tanh"),
    layers.Dense(1),
])
model.compile(optimizer=keras.optimizers.Nadam(1e-3), loss="mse")


class EpochClock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.times = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self.t)


BATCH = 16
clock = EpochClock()
model.fit(x, y, batch_size=BATCH, epochs=4, verbose=2, callbacks=[clock])
steps = len(x) // BATCH
print("STEP_MS", 1000 * sum(clock.times[1:]) / (len(clock.times[1:]) * steps))
