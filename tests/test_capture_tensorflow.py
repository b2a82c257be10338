"""TensorFlow and Keras scripts profiled unmodified: steps are found, retracing is seen from step 1, side-car and facts are there."""

import importlib.util
import json
import os
import platform
import sys
import textwrap
from pathlib import Path

import pytest

from tracediag.capture.inject._tracediag import tf_counters, tf_shapes, tf_window
from tracediag.capture.launcher import LaunchRequest, LaunchResult, launch

tensorflow = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")

RETRACING = """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
assert len(tf.config.list_logical_devices("CPU")) == 2
w = tf.Variable(tf.ones((8, 8)))

@tf.function
def train_step(x, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    w.assign_sub(rate * tape.gradient(loss, w))
    return loss

for step in range(14):
    train_step(tf.ones((4, 8)), 0.1 / (step + 1))
"""
EAGER = """
import tensorflow as tf
import keras
table = keras.layers.Embedding(50, 4)
model = keras.Sequential([keras.Input((3,), dtype="int32"), table, keras.layers.Flatten(), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
def same(ids, y):
    return ids, y
data = tf.data.Dataset.from_tensor_slices((tf.ones((100, 3), tf.int32), tf.ones((100, 1))))
data = data.map(same)
data = data.batch(8).map(lambda ids, y: (ids, y), num_parallel_calls=2).prefetch(2).repeat(2)
for ids, y in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(ids) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
FIT = """
import numpy as np
import {keras} as keras
x, y = np.ones((96, 3), "int32"), np.ones((96, 1), "float32")
table = keras.layers.Embedding(50, 4, embeddings_regularizer=keras.regularizers.L2(0.0))
model = keras.Sequential([keras.Input((3,), dtype="int32"), table, keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y))
"""
LOOP = """
import tensorflow as tf
import keras
w = keras.Variable(tf.ones((4, 4)), name="w")
optimizer = keras.optimizers.SGD(0.01)
optimizer.build([w])

@tf.function
def epoch(x):
    for _ in tf.range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w) ** 2)
        optimizer.apply(tape.gradient(loss, [w]), [w])

for _ in range(12):
    epoch(tf.ones((2, 4)))
"""
OUTSIDE = """
import tensorflow as tf
import keras
w = keras.Variable(tf.ones((4, 4)), name="w")
optimizer = keras.optimizers.SGD(0.01)

@tf.function
def gradients(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    return tape.gradient(loss, [w])

for _ in range(12):
    optimizer.apply_gradients(zip(gradients(tf.ones((2, 4))), [w]))
raise SystemExit(3)
"""


def profile(folder: Path, source: str) -> LaunchResult:
    (folder / "train.py").write_text(textwrap.dedent(source))
    old = Path.cwd()
    os.chdir(folder)
    try:
        return launch(LaunchRequest(("train.py",), folder / "run", python=sys.executable, timeout=180, warmup=3, steps=5))
    finally:
        os.chdir(old)


def nodes(run: dict) -> dict[str, list]:
    strings = run["graphs"]["strings"]
    return {
        node[0]: [None if i is None else strings[i] for i in node[1:]]
        for name, graph in run["graphs"].items()
        if name != "strings"
        for node in graph["nodes"]
    }


def line_of(source: str, text: str) -> str:
    return f"train.py:{next(i for i, line in enumerate(source.splitlines(), 1) if text in line)}"


@tensorflow
@pytest.mark.tensorflow
def test_function_that_is_traced_every_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = profile(tmp_path, RETRACING)
    run = result.run
    assert result.exit_code == 0, run["notes"]
    series = run["step_series"]
    assert len(series["wall_ns"]) == 14 and min(series["wall_ns"]) > 0
    assert series["tracings"] == list(range(1, 15))
    assert all(0 < traced <= wall for traced, wall in zip(series["compile_ns"], series["wall_ns"], strict=True))
    assert run["batches"] == ["[[4,8]]"]
    (window,) = run["windows"]
    assert (window["found_by"], window["first_step"], window["steps"]) == ("function", 3, 5)
    (function,) = run["functions"]
    assert (function["name"], function["calls"], function["tracing_count"]) == ("train_step", 14, 14)
    assert function["source"] == line_of(RETRACING, "@tf.function")
    node = nodes(run)["matmul"]
    assert node == ["MatMul", "[[4,8],[8,8]]", '["float32","float32"]', "[[4,8]]", '["float32"]', line_of(RETRACING, "reduce_mean")]
    assert "profiler_session" not in capfd.readouterr().err
    (variable,) = run["variables"]
    assert (variable["shape"], variable["gradient"], variable["device"]) == ("[8,8]", "dense", "CPU:0")
    assert run["flags"]["tf.intra_op_threads"] == 1
    assert run["flags"]["tf.intra_op_threads.source"] == line_of(RETRACING, "set_intra_op")
    file = tmp_path / "run" / window["file"]
    assert file.name == "rank0.xplane.pb" and file.parent.parent.relative_to(tmp_path / "run").as_posix() == "plugins/profile"
    assert str(tmp_path).encode() not in file.read_bytes()
    assert b"tracediag_step" in file.read_bytes()


IN_MAIN = """
import tensorflow as tf

class Trainer:
    def __init__(self):
        self.w = tf.Variable(tf.ones((8, 8)))

    @tf.function
    def train_step(self, x, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.w) ** 2)
        self.w.assign_sub(rate * tape.gradient(loss, self.w))
        return loss

def main():
    trainer = Trainer()
    for step in range(14):
        trainer.train_step(tf.ones((4, 8)), 0.1 / (step + 1))

main()
"""


@tensorflow
@pytest.mark.tensorflow
def test_functions_outlive_the_main_function(tmp_path: Path) -> None:
    run = profile(tmp_path, IN_MAIN).run
    (function,) = run["functions"]
    assert (function["calls"], function["tracing_count"]) == (14, 14)
    assert function["source"] == line_of(IN_MAIN, "    @tf.function")
    assert function["caller"] == line_of(IN_MAIN, "trainer.train_step(")
    (variable,) = run["variables"]
    assert variable["shape"] == "[8,8]"


@tensorflow
@pytest.mark.tensorflow
def test_eager_loop(tmp_path: Path) -> None:
    run = profile(tmp_path, EAGER).run
    assert run["notes"] == []
    series = run["step_series"]
    assert len(series["wall_ns"]) == 26 and min(series["wall_ns"]) > 0
    assert all(ns > 0 for ns in series["loader_ns"])
    assert sorted(run["batches"]) == ["[[4,3],[4,1]]", "[[8,3],[8,1]]"] and None not in series["batch"]
    assert run["windows"][0]["found_by"] == "optimizer"
    (optimizer,) = run["optimizers"]
    assert (optimizer["class"], optimizer["momentum"], optimizer["steps"]) == ("SGD", 0.9, 26)
    assert optimizer["source"] == line_of(EAGER, "apply_gradients")
    (loader,) = run["loaders"]
    assert (loader["batch_size"], loader["prefetch_factor"], loader["source"]) == (8, 2, line_of(EAGER, "for ids"))
    assert (loader["made"], loader["item_source"]) == (line_of(EAGER, "map(same)"), line_of(EAGER, "def same"))
    table = next(row for row in run["variables"] if row["layer"] == "Embedding")
    assert (table["gradient"], table["slots"], table["embedding"], table["optimizer"]) == ("indexed_slices", 1, True, 0)


@tensorflow
@pytest.mark.tensorflow
@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_fit(tmp_path: Path, keras: str) -> None:
    if importlib.util.find_spec(keras) is None:
        pytest.skip(f"needs {keras}")
    source = FIT.format(keras=keras)
    run = profile(tmp_path, source).run
    assert run["notes"] == []
    assert len(run["step_series"]["wall_ns"]) == 24  # 12 an epoch; the validation steps are none
    assert run["windows"][0]["found_by"] == "function"
    table = next(row for row in run["variables"] if row["layer"] == "Embedding")
    assert (table["regularizer"], table["regularizer_zero"], table["gradient"], table["slots"]) == ("L2", True, "dense", 2)
    assert table["source"] == line_of(source, "layers.Embedding")  # its operators have no line but that of fit
    (optimizer,) = run["optimizers"]
    assert (optimizer["class"], optimizer["module"], optimizer["steps"]) == ("Adam", keras, 24)
    matmuls = [node for name, node in nodes(run).items() if node[0] == "MatMul" and not name.startswith("gradient")]
    assert matmuls and all(node[5] == line_of(source, "model.fit") for node in matmuls)


EAGER_FIT = """
import numpy as np
import keras
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.compile(
    "sgd",
    "mse",
    run_eagerly=True,
)
model.fit(np.ones((96, 3)), np.ones((96, 1)), batch_size=8, verbose=0)
"""


@tensorflow
@pytest.mark.tensorflow
def test_line_that_asks_for_eager_steps(tmp_path: Path) -> None:
    run = profile(tmp_path, EAGER_FIT).run
    assert run["notes"] == []
    assert run["flags"]["keras.run_eagerly.source"] == "train.py:6"
    assert run["optimizers"][0]["function"] is None


@tensorflow
@pytest.mark.tensorflow
def test_loop_inside_a_function(tmp_path: Path) -> None:
    run = profile(tmp_path, LOOP).run
    assert len(run["step_series"]["wall_ns"]) == 12
    assert run["windows"][0]["steps_per_call"] == 20
    assert run["optimizers"][0]["steps"] == 240
    assert run["optimizers"][0]["source"] == line_of(LOOP, "optimizer.apply")


@tensorflow
@pytest.mark.tensorflow
def test_gradients_in_a_function_applied_outside_it(tmp_path: Path) -> None:
    result = profile(tmp_path, OUTSIDE)
    assert result.exit_code == 3
    assert len(result.run["step_series"]["wall_ns"]) == 12
    assert result.run["windows"][0]["found_by"] == "optimizer"


@tensorflow
@pytest.mark.tensorflow
@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_keras_on_torch(tmp_path: Path) -> None:
    run = profile(tmp_path, "import os\nos.environ['KERAS_BACKEND'] = 'torch'\n" + FIT.format(keras="keras")).run
    assert run["framework"] == "torch"
    assert len(run["step_series"]["wall_ns"]) == 24
    assert run["windows"][0]["found_by"] == "optimizer"
    assert run["optimizers"][0]["class"] == "Adam"
    assert run["flags"]["keras.backend"] == "torch"


def record(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2, len(content)]) + content


def test_source_files_of_xla_modules_are_made_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setattr(tf_window.os, "getcwd", lambda: "/data/job")
    data = record(1, record(6, b"/data/job/train.py") + record(6, b"/home/someone/lib/ops.py"))
    clean = tf_window.nameless(data, "/data/job/run")
    assert clean == record(1, record(6, b"./////////train.py"[:18]) + record(6, b"~/////////////lib/ops.py"))


def test_host_names_and_paths_are_taken_out() -> None:
    name = (platform.node() or "box").encode()[:100]
    plane = record(2, b"/host:CPU") + record(6, b"/home/someone/run")
    data = record(1, plane) + record(4, name) + record(4, b"another")
    clean = tf_window.nameless(data, "/home/someone/run")
    assert clean == record(1, record(2, b"/host:CPU") + record(6, b"." * 17))
    assert tf_window.nameless(b"\x08\x01nonsense", "/x") == b"\x08\x01nonsense"


def test_shapes_of_arguments() -> None:
    class Tensor:
        def __init__(self, *shape: int) -> None:
            self.shape = shape

    shapes = tf_shapes.Shapes()
    shapes.of_call((Tensor(2, 3), {"y": [Tensor(2)]}, 0.5, "name"), {"mask": Tensor()})
    assert json.loads(shapes.text() or "") == [[2, 3], [2], []]
    assert shapes.text() is None
    shapes.of_loader((Tensor(4), None))
    assert shapes.text() == "[[4]]"


def test_counters_of_a_step_that_is_told_late() -> None:
    counters = tf_counters.Counters(tf_shapes.Shapes())
    counters.tracings, counters.compile_ns = 1, 50
    counters.keep(1000)
    counters.tracings, counters.compile_ns, counters.loader_ns = 2, 70, 5
    counters.keep(2000)
    first, second = counters.sample(1000), counters.sample(2000)
    assert (first["tracings"], first["compile_ns"], first["loader_ns"]) == (1, 50, 0)
    assert (second["tracings"], second["compile_ns"], second["loader_ns"]) == (2, 20, 5)
    counters.forget()
    counters.compile_ns = 100
    counters.skip()
    assert counters.sample(3000)["compile_ns"] == 0
