import io
import os
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image


def write_images(n, size, seed=0):
    """Stands for the image folder on disk."""
    rng = np.random.default_rng(seed)
    root = tempfile.mkdtemp(prefix="imgs")
    base = rng.integers(0, 255, (size // 8, size // 8, 3), dtype=np.uint8)
    for i in range(n):
        im = Image.fromarray(np.roll(base, i, 0)).resize((size, size), Image.BICUBIC)
        im.save(os.path.join(root, f"{i % 10}_{i:05d}.jpg"), quality=92)
    return os.path.join(root, "*.jpg")


def parse(path, size):
    img = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    img = tf.image.convert_image_dtype(img, tf.float32)
    img = tf.image.random_flip_left_right(img)
    img = tf.image.random_brightness(img, 0.2)
    img = tf.image.resize(img, (size, size))
    name = tf.strings.split(path, os.sep)[-1]
    return img, tf.strings.to_number(tf.strings.substr(name, 0, 1), tf.int32)


def image_dataset(pattern, size, batch, shuffle=512):
    ds = tf.data.Dataset.list_files(pattern, shuffle=False).shuffle(shuffle).repeat()
    ds = ds.map(lambda p: parse(p, size))
    return ds.batch(batch, drop_remainder=True)
