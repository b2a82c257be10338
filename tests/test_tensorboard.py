"""TensorBoard with its profile plugin lists a TensorFlow run directory and serves its data, over HTTP on loopback."""

import contextlib
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tracediag.capture.launcher import LaunchRequest, launch

NEEDED = ("tensorflow", "tensorboard", "tensorboard_plugin_profile")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in NEEDED), reason="needs " + ", ".join(NEEDED)),
]

SCRIPT = """
import tensorflow as tf
w = tf.Variable(tf.ones((8, 8)))

@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))

for step in range(14):
    train_step(tf.ones((4, 8)))
"""


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[str]:
    """Run TensorBoard on a folder; gives its address."""
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--load_fast",
        "false",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, "")), daemon=True)
    reader.start()
    try:
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:\d+", "".join(lines))
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, "".join(lines)[-2000:]
        yield found.group()
    finally:
        process.terminate()
        process.wait(timeout=30)
        reader.join(timeout=5)


def get(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        data = bytes(answer.read())
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_tensorboard_lists_the_run_and_serves_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    old = Path.cwd()
    os.chdir(tmp_path)
    try:
        result = launch(LaunchRequest(("train.py",), tmp_path / "run", python=sys.executable, timeout=180, warmup=3, steps=5))
    finally:
        os.chdir(old)
    folder = (tmp_path / "run" / result.run["windows"][0]["file"]).parent.name
    with tensorboard(tmp_path / "run") as address:
        plugin = address + "/data/plugin/profile"
        runs = json.loads(get(plugin + "/runs"))
        assert any(folder in run for run in runs), runs
        run = quote(runs[0])
        assert "overview_page" in json.loads(get(f"{plugin}/run_tools?run={run}"))
        hosts = json.loads(get(f"{plugin}/hosts?run={run}&tag=overview_page"))
        assert {"hostname": "rank0"} in hosts, hosts
        assert b"rows" in get(f"{plugin}/data?run={run}&tag=overview_page&host=rank0")
        events = json.loads(get(f"{plugin}/data?run={run}&tag=trace_viewer&host=rank0"))
        assert any(event.get("name", "").startswith("tracediag_step") for event in events["traceEvents"])
