from __future__ import annotations

import json

import pytest
from reader_samples import XPLANE, chunk, number, xspace

from tracediag import api
from tracediag.errors import BrokenTraceError
from tracediag.readers import read_all, xplane
from tracediag.readers._wire import WireError, fields, submessages

START = 1_600_000_000_000_000_000


def read(tmp_path, data: bytes):
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(data)
    return read_all([str(path)])[0][0]


def rows(raw):
    columns = ["name", "role", "label", "device", "lane", "in_shapes", "in_dtypes", "detail"]
    lists = {column: getattr(raw, column).to_objects().tolist() for column in columns}
    for column in ("correlation", "bytes", "flops", "step_num"):
        numbers = getattr(raw, column)
        lists[column] = [v if ok else None for v, ok in zip(numbers.values.tolist(), numbers.valid.tolist(), strict=True)]
    lists |= {"start_ns": raw.start_ns.tolist(), "dur_ns": raw.dur_ns.tolist()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def host(*events):
    return [{"name": "/host:CPU", "lines": [{"id": 1, "name": "python", "timestamp_ns": 0, "events": list(events)}]}]


def test_the_columns_of_the_sample(tmp_path):
    raw = read(tmp_path, xspace(XPLANE))
    found = {(row["role"], row["name"]): row for row in rows(raw)}
    assert raw.events == 20
    assert raw.framework == "tensorflow"
    step = found["annotation", "train"]
    assert (step["step_num"], step["start_ns"], step["dur_ns"], step["lane"]) == (4, START + 1005, 900_000, "python")
    assert found["function", "step"]["detail"] == '{"tf_function_call":"traced-nonXla","tracing_count":2}'
    assert [row["label"] for row in rows(raw) if row["name"] == "MatMul"] == [None, "model/dense/MatMul"]  # called eagerly, in a graph
    matmul = found["op", "MatMul"]
    assert (matmul["label"], matmul["in_shapes"], matmul["in_dtypes"]) == (
        "model/dense/MatMul", "[[2,3],[3,4],null]", '["float32","float16",null]',
    )  # fmt: skip
    assert (matmul["start_ns"], matmul["dur_ns"]) == (START + 2001, 4)  # 1999 ps and 5001 ps, both ends rounded down
    assert found["op", "FusedMatMul"]["label"] == "model/dense/BiasAdd"
    assert found["op", "fusion"]["label"] == "fusion.3"
    assert found["op", "fusion"]["detail"] == '{"hlo_module":"jit_f"}'
    assert found["framework", "EagerExecute"]["detail"] == '{"eager_op":"MatMul"}'
    assert found["runtime", "cuLaunchKernel"]["correlation"] == 77
    assert found["runtime", "MemcpyH2D"]["bytes"] == 112
    assert found["python", "train.py(12): main"]["label"] is None


def test_device_work_of_the_sample(tmp_path):
    raw = read(tmp_path, xspace(XPLANE))
    found = {row["role"]: row for row in rows(raw) if row["device"]}
    assert set(found) == {"kernel", "copy", "memset"}
    kernel = found["kernel"]
    assert (kernel["device"], kernel["lane"], kernel["label"]) == ("GPU:1", "gpu 1 stream 13", "model/dense/MatMul")
    assert json.loads(kernel["detail"]) == {
        "block": [1024, 1, 1], "grid": [160, 1, 1], "op_type": "MatMul", "registers per thread": 38, "shared memory": 0,
    }  # fmt: skip
    assert (found["copy"]["bytes"], found["copy"]["detail"]) == (112, '{"async":1,"dest":1}')
    assert raw.facts["devices"] == [
        {"device": "GPU:1", "name": None, "type": "gpu", "sm_count": 80, "memory_bytes": 16, "compute_capability": 7.0, "vendor": "nvidia"},
    ]


def test_memory_of_the_sample(tmp_path):
    memory = read(tmp_path, xspace(XPLANE)).memory
    assert memory.bytes.tolist() == [256, -256]
    assert memory.t_ns.tolist() == [START + 2002, START + 2009]
    assert memory.device.to_objects().tolist() == ["GPU:4", "cpu"]
    assert memory.op.to_objects().tolist() == ["model/dense/MatMul", None]
    assert memory.shape.to_objects().tolist() == ["[2,4]", None]
    assert memory.dtype.to_objects().tolist() == ["float32", None]
    assert memory.region.to_objects().tolist() == ["output", None]
    assert memory.allocated.values.tolist() == [1024, 768]
    assert not memory.reserved.valid.any()


def test_tpu_ops_are_the_work_and_modules_are_annotations(tmp_path):
    lines = [
        {"id": 1, "name": "XLA Modules", "timestamp_ns": 0, "events": [("jit_f(1)", 0, 9000, {})]},
        {"id": 2, "name": "XLA Ops", "timestamp_ns": 0, "events": [("%fusion.12 = f32[2]{0} fusion(f32[] %a)", 1000, 2000, {})]},
        {"id": 3, "name": "Async XLA Ops", "timestamp_ns": 0, "events": [("%copy-start = ()", 0, 9000, {})]},
    ]
    raw = read(tmp_path, xspace([{"name": "/device:TPU:2", "lines": lines}]))
    found = {row["role"]: row for row in rows(raw)}
    assert raw.events == 3
    assert set(found) == {"device_annotation", "kernel"}
    assert (found["kernel"]["name"], found["kernel"]["label"], found["kernel"]["device"]) == ("fusion", "fusion.12", "TPU:2")


def test_lanes_of_the_same_name_stay_apart(tmp_path):
    lines = [{"id": i, "name": "worker", "timestamp_ns": 0, "events": [("a", 0, 1000, {})]} for i in (1, 2)]
    assert len(set(read(tmp_path, xspace([{"name": "/host:CPU", "lines": lines}])).lane.to_objects())) == 2


@pytest.mark.parametrize(
    ("name", "role", "short", "label"),
    [
        ("a/b->c:MatMul", "op", "MatMul", "a/b->c"),
        ("_send_x_0:_Send", "op", "_Send", "_send_x_0"),
        ("__inference_f_12:__inference_f_12", "framework", "__inference_f_12:__inference_f_12", None),
        ("Iterator::Root::Batch", "framework", "Iterator::Root::Batch", None),
        ("EagerLocalExecute: MatMul", "op", "MatMul", None),
        ("PjitFunction(f)", "function", "PjitFunction(f)", None),
        ("hipMemcpyAsync", "runtime", "hipMemcpyAsync", None),
        ("$builtins len", "python", "builtins len", None),
    ],
)
def test_names_of_the_host(tmp_path, name, role, short, label):
    (row,) = rows(read(tmp_path, xspace(host((name, 0, 1000, {})))))
    assert (row["role"], row["name"], row["label"]) == (role, short, label)


def test_jax_is_told_by_its_calls(tmp_path):
    assert read(tmp_path, xspace(host(("PjitFunction(f)", 0, 1000, {})))).framework == "jax"


def test_negative_durations_are_left_out_and_counted(tmp_path):
    raw = read(tmp_path, xspace(host(("a", 0, -1, {}), ("b", 0, 1000, {}))))
    assert raw.name.to_objects().tolist() == ["b"]
    assert [item.id for item in raw.health] == ["bad-durations"]


def test_an_event_of_unknown_metadata_and_fields_is_read(tmp_path):
    event = number(1, 99) + number(2, 5000) + number(3, 1000) + number(15, 1) + chunk(16, "x")
    plane = chunk(2, "/host:CPU") + chunk(3, chunk(2, "t") + chunk(4, event))
    (row,) = rows(read(tmp_path, chunk(1, plane)))
    assert (row["name"], row["start_ns"]) == ("", 5)


@pytest.mark.parametrize("at", [0.6, 0.7, 0.99])
def test_a_truncated_file_gives_the_events_whose_names_are_there(tmp_path, at):
    events = [(f"op{i}:Add", i * 1000, 500, {"group_id": i}) for i in range(500)]
    data = xspace(host(*events) + host(*events))
    raw = read(tmp_path, data[: int(len(data) * at)])
    assert [item.id for item in raw.health] == ["truncated-file"]
    assert 500 < raw.events <= 1000
    assert (len(raw) > 500) == (at > 0.9)
    assert f"; {raw.events - len(raw)} events" in raw.health[0].message
    assert set(raw.name.values) == {"Add"}


@pytest.mark.parametrize("at", [0.05, 0.3])
def test_nothing_whole_is_an_error(tmp_path, at):
    data = xspace(host(*[(f"op{i}:Add", i * 1000, 500, {}) for i in range(500)]))
    with pytest.raises(BrokenTraceError, match="copy it again"):
        read(tmp_path, data[: int(len(data) * at)])


def test_an_xspace_without_events_is_an_empty_trace(tmp_path):
    assert len(read(tmp_path, xspace([{"name": "/host:CPU", "lines": []}]))) == 0


@pytest.mark.parametrize("data", [b"", b"\x0a", b"\x0a\x05hello", b"\x0a\x02\x08", b"{}", b"\x0a\x0a\x0a\x08deviceX", b"\x22\x03abc"])
def test_sniff_refuses_other_messages(data):
    assert not xplane.sniff(data)


def test_the_wire_decoder_refuses_what_is_no_message():
    for data in (b"\x0f", b"\x08", b"\x08" + b"\xff" * 11, b"\x0a\x05ab", b"\x00\x01"):
        with pytest.raises(WireError):
            list(fields(data, 0, len(data)))
    starts, ends, others, whole = submessages(number(3, 7) + chunk(4, "ab") + b"\x22\x7f", 0, 8, 4)
    assert (starts, ends, [(n, a) for n, _, a, _ in others], whole) == ([4], [6], [(3, 7)], False)


def tpu(host=()):
    ops = [
        ("while.2", 0, 900_000, {}), ("fusion.7", 10_000, 300_000, {}), ("%copy-done.1 = f32[8]{0} copy-done(%a)", 320_000, 100_000, {}),
        ("all-reduce.3", 450_000, 50_000, {}),
    ]  # fmt: skip
    lines = [
        {"id": 1, "name": "XLA Ops", "timestamp_ns": 1000, "events": ops},
        {"id": 2, "name": "XLA Modules", "timestamp_ns": 1000, "events": [("jit_f(12)", 0, 950_000, {})]},
        {"id": 3, "name": "Steps", "timestamp_ns": 1000, "events": [("11", 0, 500_000, {}), ("12", 500_000, 450_000, {})]},
        {"id": 4, "name": "Async XLA Ops", "timestamp_ns": 1000, "events": [("copy-start.1", 0, 400_000, {})]},
    ]
    marks = [{"id": 1, "name": "python", "timestamp_ns": 1000, "events": list(host)}]
    return [{"name": "/host:CPU", "lines": marks}, *({"name": f"/device:TPU:{i}", "lines": lines} for i in range(2))]


def test_a_tpu_works_on_xla_ops_and_its_steps_count_once(tmp_path):
    raw = read(tmp_path, xspace(tpu()))
    rows = sorted(zip(raw.role.to_objects(), raw.name.to_objects(), raw.device.to_objects(), strict=True))
    assert [row for row in rows if row[2] == "TPU:1"] == [
        ("device_annotation", "11", "TPU:1"), ("device_annotation", "12", "TPU:1"), ("device_annotation", "jit_f(12)", "TPU:1"),
        ("device_annotation", "while", "TPU:1"), ("kernel", "all-reduce", "TPU:1"), ("kernel", "copy-done", "TPU:1"),
        ("kernel", "fusion", "TPU:1"),
    ]  # fmt: skip
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(xspace(tpu()))
    trace = api.load(str(path))
    assert trace.steps[["step", "dur_ns", "found_by"]].values.tolist() == [[11, 500, "marker"], [12, 450, "marker"]]
    kinds = trace.sql("select distinct name, kind from ops where place = 'device' order by 1").values.tolist()
    assert kinds == [["all-reduce", "collective"], ["copy-done", "copy_d2d"], ["fusion", "elementwise"]]


def test_steps_of_the_host_come_before_those_of_the_device(tmp_path):
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(xspace(tpu([("train", 0, 800_000, {"step_num": 11, "_r": 1})])))
    assert api.load(str(path)).steps[["step", "dur_ns"]].values.tolist() == [[11, 800]]
