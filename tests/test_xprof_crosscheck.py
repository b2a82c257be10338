"""Our xplane reader against xprof's own converter, on a file recorded here: the total time of every op must agree.

What differs, and why (each is asserted below, so that a change on either side is noticed):

- xprof adds a row IDLE, the time of the host not covered by ops: not an event.
- tf.data iterators are "ops" of type Dataset there and `framework` here. Their totals are inclusive and nested
  ('Iterator::Root' holds 'Iterator::Root::Prefetch'), so that adding up xprof's total_time counts the same time twice.
- The node that calls a compiled function ('__inference_f_12:__inference_f_12') is an op there and `framework` here: it covers
  the ops of the function, and would double their time.
- Transfers between subgraphs (_Send, _Recv and their kin) are left out there and ops here.
- Ops that Python calls one by one ('EagerLocalExecute: MatMul') are ops here, without a label; xprof does not list them.
- XLA ops on the host are not among xprof's framework ops; here they are ops with their HLO name.
- xprof adds picoseconds; we cut both ends of an event to whole nanoseconds: less than 1 ns of difference for each occurrence.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict

import pytest

from tracediag.readers import read_all

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None or importlib.util.find_spec("xprof") is None, reason="needs TensorFlow and xprof"
    ),
]

RECORD = """
import sys
import tensorflow as tf

w, table = tf.Variable(tf.ones((32, 8))), tf.Variable(tf.ones((100, 32)))

@tf.function
def step(ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(tf.gather(table, ids) @ w))
    for variable, grad in zip((w, table), tape.gradient(loss, (w, table))):
        variable.assign_sub(0.1 * tf.convert_to_tensor(grad))
    return loss

@tf.function(jit_compile=True)
def compiled(x):
    return tf.reduce_sum(tf.nn.relu(x @ x))

data = tf.data.Dataset.range(64).batch(16).map(lambda x: x % 100).prefetch(1)
compiled(tf.ones((8, 8)))
tf.profiler.experimental.start(sys.argv[1])
for number, ids in enumerate(data):
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step(ids)
        compiled(tf.ones((8, 8)))
        tf.matmul(tf.ones((4, 4)), tf.ones((4, 4)))
tf.profiler.experimental.stop()
"""
CONVERT = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "framework_op_stats", {})
sys.stdout.write(data if isinstance(data, str) else data.decode())
"""
TRANSFERS = ("_Send", "_Recv", "_HostSend", "_HostRecv")


def run(script: str, argument: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, argument], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def xplane(tmp_path_factory) -> str:
    """A profile of four steps on the CPU."""
    folder = tmp_path_factory.mktemp("run")
    run(RECORD, str(folder))
    (path,) = folder.glob("plugins/profile/*/*.xplane.pb")
    return str(path)


@pytest.fixture(scope="module")
def theirs(xplane) -> dict[tuple[str, str], tuple[int, float]]:
    """xprof: (name, type) -> (occurrences, total ns)."""
    table = json.loads(run(CONVERT, xplane))[0]
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, [cell.get("v") for cell in row["c"]], strict=True)) for row in table["rows"]]
    return {(row["operation"], row["type"]): (int(row["occurrences"]), row["total_time"] * 1000) for row in rows}


@pytest.fixture(scope="module")
def raw(xplane):
    """What our reader makes of the file."""
    return read_all([xplane])[0][0]


def totals(raw, role: str) -> dict[tuple[str | None, str], tuple[int, int]]:
    """(label, name) -> (occurrences, total ns) of a role."""
    found: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    mine = raw.role.isin([role])
    for label, name, dur in zip(
        raw.label.take(mine).to_objects(), raw.name.take(mine).to_objects(), raw.dur_ns[mine].tolist(), strict=True
    ):
        found[label, name].append(dur)
    return {key: (len(durs), sum(durs)) for key, durs in found.items()}


def test_every_framework_op_has_the_same_count_and_total_time(raw, theirs):
    ours = {key: value for key, value in totals(raw, "op").items() if key not in only_ours(raw)}
    ops = {key: value for key, value in theirs.items() if key[1] not in ("IDLE", "Dataset") and not key[1].startswith("__inference_")}
    assert set(ours) == set(ops)
    assert len(ours) > 10
    for key, (count, total) in ours.items():
        assert ops[key][0] == count, key
        assert abs(ops[key][1] - total) <= count + 0.5, key  # their microseconds have three decimals


def only_ours(raw) -> set[tuple[str | None, str]]:
    """Ops that xprof does not list: of XLA, called eagerly, transfers between subgraphs."""
    return hlo_ops(raw) | {(label, name) for label, name in totals(raw, "op") if label is None or name in TRANSFERS}


def hlo_ops(raw) -> set[tuple[str | None, str]]:
    """Ops of XLA: those that name their module."""
    of_xla = raw.role.isin(["op"]) & raw.detail.where(["hlo_module" in value for value in raw.detail.values])
    return set(zip(raw.label.take(of_xla).to_objects(), raw.name.take(of_xla).to_objects(), strict=True))


def test_iterators_agree_and_are_counted_twice_there(raw, theirs):
    ours = {name: value for (_, name), value in totals(raw, "framework").items() if name.startswith("Iterator::")}
    iterators = {key[0]: value for key, value in theirs.items() if key[1] == "Dataset"}
    assert set(iterators) == set(ours)
    for name, (count, total) in ours.items():
        assert iterators[name][0] == count, name
        assert abs(iterators[name][1] - total) <= count + 0.5, name
    nested = [name for name in iterators if any(name != other and name.startswith(f"{other}::") for other in iterators)]
    assert nested, "xprof's total_time of the outer iterator holds that of the inner one"


def test_what_only_one_side_calls_an_op(raw, theirs):
    ours = totals(raw, "op")
    only_there = {kind for _, kind in set(theirs) - set(ours)}
    assert all(kind in ("IDLE", "Dataset") or kind.startswith("__inference_") for kind in only_there)
    assert set(ours) - set(theirs) == only_ours(raw)
    assert hlo_ops(raw)
    assert ours[None, "MatMul"][0] == 4


def test_each_call_of_a_function_and_each_step_is_there(raw):
    functions = {name: count for (_, name), (count, _) in totals(raw, "function").items()}
    assert functions == {"step": 4, "compiled": 4}
    assert sorted(raw.step_num.values[raw.step_num.valid].tolist()) == [0, 1, 2, 3]
