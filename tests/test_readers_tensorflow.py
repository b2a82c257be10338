"""TensorFlow's lesser formats: what is counted once, what is linked, what is a run, and agreement with a second reader."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from format_samples import NODES, dumped, local_trace, run_metadata, timeline, trace_json
from reference_formats import COLUMNS, local_trace_count, run_metadata_rows, timeline_rows, trace_json_rows
from reference_reader import rows_of

from tracediag import api
from tracediag.errors import NotATraceError
from tracediag.readers import read_all, tftracejson
from tracediag.readers._prototree import parse_text

TRACES = Path(__file__).parents[2] / "shared" / "traces"
real = [pytest.mark.traces, pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside this checkout")]


def read(tmp_path, data, name="t"):
    path = tmp_path / name
    path.write_bytes(data)
    return read_all([str(path)])[0][0]


def rows(raw, columns=COLUMNS):
    """Rows of a Raw without those of the runs."""
    return [row for row in rows_of(raw, columns) if row[0] != "annotation"]


def column(raw, name):
    return getattr(raw, name).to_objects().tolist()


@pytest.mark.parametrize(("data", "reference"), [(dumped(timeline()), timeline_rows), (run_metadata(), run_metadata_rows)])
def test_step_statistics_agree_with_the_reference(tmp_path, data, reference):
    raw = read(tmp_path, data)
    assert (raw.events, rows(raw)) == reference(data)


def test_timeline_and_run_metadata_of_one_run_say_the_same(tmp_path):
    a, b = read(tmp_path, dumped(timeline()), "a"), read(tmp_path, run_metadata(), "b")
    columns = (*COLUMNS, "lane", "correlation", "step_num")
    assert rows_of(a, columns) == rows_of(b, columns)
    assert {x for x in column(a, "out_shapes") if x} == {x for x in column(b, "out_shapes") if x} == {"[[3,4]]"}
    assert {x for x in column(b, "out_dtypes") if x} == {'["float32"]'}
    assert {x for x in column(b, "detail") if x} == {'{"block":[64,1,1],"grid":[1,1,1],"registers per thread":17,"shared memory":0}'}


def test_each_kernel_counts_once_and_belongs_to_its_dispatch(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(dumped(timeline()))
    trace = api.load(str(path))
    work = trace.sql("select name, lane, launch_id from ops where place = 'device' order by start_ns").values.tolist()
    assert [(name, lane) for name, lane, _ in work] == [
        ("MEMCPYHtoD", "gpu 0 stream 13"), ("MatMul", "gpu 0 stream 12"), ("MatMul", "gpu 0 stream 12"),
    ]  # fmt: skip
    launched = trace.sql("select d.name, h.label, h.lane from ops d join ops h on d.launch_id = h.op_id").values.tolist()
    matmul = ("MatMul", "layer/MatMul", "GPU:0 dispatch/0")
    assert sorted(map(tuple, launched)) == [("MEMCPYHtoD", "_arg_x_0", "CPU:0 dispatch/0"), matmul, matmul]


def test_each_session_run_is_a_step(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(dumped(timeline()))
    trace = api.load(str(path))
    assert trace.steps[["step", "start_ns", "end_ns"]].values.tolist() == [[0, 0, 75_000], [1, 4_000_000, 4_031_000]]
    assert api.load(str(path)).step_stats()["found_by"] == "marker"


def test_a_device_without_numbered_streams_keeps_its_other_lanes(tmp_path):
    document = timeline()
    gone = {e["pid"] for e in document["traceEvents"] if e["ph"] == "M" and ("stream:12" in str(e) or "stream:13" in str(e))}
    document["traceEvents"] = [e for e in document["traceEvents"] if e["pid"] not in gone]
    raw = read(tmp_path, dumped(document))
    assert sorted(set(column(raw, "lane"))) == [
        "CPU:0 dispatch/0", "GPU:0 dispatch/0", "GPU:0 dispatch/1", "gpu 0 memcpy", "gpu 0 stream all", "session",
    ]  # fmt: skip
    assert raw.role.isin(["kernel", "copy"]).sum() == 3


def test_memory_counters_become_changes(tmp_path):
    memory = read(tmp_path, dumped(timeline())).memory
    assert list(zip(memory.t_ns.tolist(), memory.bytes.tolist(), memory.allocated.values.tolist(), strict=True)) == [
        (1_010_000, 48, 48), (1_090_000, -48, 0),
    ]  # fmt: skip
    asked = read(tmp_path, run_metadata()).memory
    assert (asked.bytes.tolist(), column(asked, "op")) == ([48, 48], ["layer/MatMul"] * 2)


def test_run_metadata_without_statistics_says_how_to_record_them(tmp_path):
    with pytest.raises(NotATraceError, match="FULL_TRACE"):
        read(tmp_path, b"step_stats { }")


def test_a_bare_step_stats_is_read_too(tmp_path):
    inner = run_metadata()[3:-4]
    assert rows(read(tmp_path, inner)) == rows(read(tmp_path, run_metadata()))


def test_a_cut_run_metadata_keeps_its_whole_nodes(tmp_path):
    raw = read(tmp_path, run_metadata()[:600])
    assert 0 < raw.events < len(NODES)
    assert [item.id for item in raw.health] == ["truncated-file"]


def test_text_format():
    tree, whole = parse_text("a: 1 b { c: 'x\\n' d <e: -2.5> } # end\n l: [1, 2] m [ { n: 3 } ]")
    assert whole
    assert tree == {"a": [1], "b": [{"c": ["x\n"], "d": [{"e": ["-2.5"]}]}], "l": [1, 2], "m": [{"n": [3]}]}
    for broken in ("a {", "a: ", "} ", "a { b: 1 >", "a: [1", "?", "a { " * 100):
        assert not parse_text(broken)[1]


def test_local_trace_names_what_ran(tmp_path):
    raw = read(tmp_path, local_trace())
    assert raw.events == local_trace_count(local_trace()) == 11
    assert rows_of(raw, ("role", "name", "label", "lane", "dur_ns")) == [
        ("framework", "EagerKernelExecute", None, "python3/9", 820),
        ("framework", "Iterator::Model", None, "tf_data_iterator_get_next/8", 9),
        ("framework", "Iterator::Shuffle", None, "tf_data_iterator_get_next/8", 5),
        ("function", "__inference_train_12", None, "python3/9", 800),
        ("kernel", "dense/MatMul", "dense/MatMul", "gpu 0 stream 12", 60),
        ("op", "Const", "dense/Const", "CPU:0 dispatch/1", 1),
        ("op", "FusedConv2D", None, "tf_Compute/7", 99),
        ("op", "MatMul", "dense/MatMul", "tf_Compute/7", 120),
        ("op", "NoOp", "_SOURCE", "CPU:0 dispatch/1", 22),
    ]


def test_trace_json_agrees_with_the_reference_and_says_that_it_is_lossy(tmp_path):
    data = dumped(trace_json())
    raw = read(tmp_path, data)
    assert (raw.events, sorted(zip(raw.start_ns.tolist(), raw.dur_ns.tolist(), strict=True))) == trace_json_rows(data)
    assert [item.id for item in raw.health] == ["lossy-format"]
    assert rows_of(raw, ("role", "name", "label", "device", "lane", "correlation", "step_num", "in_shapes")) == [
        ("annotation", "train", None, None, "python3", None, 4, None),
        ("copy", "MemcpyH2D", None, "GPU:0", "gpu 0 stream 13", 78, None, None),
        ("framework", "ExecutorState::Process", None, None, "tf_Compute", None, None, None),
        ("function", "step", None, None, "python3", None, None, None),
        ("kernel", "volta_sgemm", "dense/MatMul", "GPU:0", "gpu 0 stream 13", 77, None, None),
        ("op", "MatMul", "dense/MatMul", None, "tf_Compute", None, None, "[[2,3],[3,4],null]"),
        ("runtime", "cuLaunchKernel", None, None, "tf_Compute", 77, None, None),
    ]


def test_a_trace_json_that_was_cut_at_its_cap_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tftracejson, "CAP", 9)
    assert [item.id for item in read(tmp_path, dumped(trace_json())).health] == ["lossy-format", "event-cap"]


def test_a_trace_json_of_jax_is_jax(tmp_path):
    document = trace_json()
    renamed = {"step": "PjitFunction(step)", "ExecutorState::Process": "PjRtCpuExecutable::Execute"}
    for event in document["traceEvents"]:
        event["name"] = renamed.get(event.get("name", ""), event.get("name", ""))
    assert read(tmp_path, dumped(document)).framework == "jax"
    assert read(tmp_path, dumped(trace_json())).framework == "tensorflow"


def unpacked(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@pytest.mark.parametrize("folder", [pytest.param(f, marks=real) for f in ("tf1-timeline-cpu", "tf1-timeline-gpu", "tf2-trace-json")])
def test_real_json_agrees_with_the_reference(folder):
    for path in sorted((TRACES / folder).iterdir()):
        data = unpacked(path)
        raw = read_all([str(path)])[0][0]
        if folder == "tf2-trace-json":
            assert (raw.events, sorted(zip(raw.start_ns.tolist(), raw.dur_ns.tolist(), strict=True))) == trace_json_rows(data), path
        else:
            assert (raw.events, rows(raw)) == timeline_rows(data), path


@pytest.mark.parametrize("name", [pytest.param("eaea62", marks=real)])
def test_real_run_metadata_agrees_with_the_reference(name):
    path = TRACES / "tf1-runmetadata" / name
    raw = read_all([str(path)])[0][0]
    assert (raw.events, rows(raw)) == run_metadata_rows(path.read_bytes())


@pytest.mark.parametrize("name", [pytest.param("tf1-timeline-gpu/a0b126.json.gz", marks=real)])
def test_five_runs_merged_by_hand_agree_with_their_key(name):
    facts = next(key["facts"] for key in json.loads((TRACES / "KEYS.json").read_text()) if key["file"] == name)
    trace = api.load(str(TRACES / name))
    device = trace.device_stats()
    assert trace.inputs[0]["events"] == facts["events"]
    assert [round(ns / 1e6, 2) for ns in trace.steps.dur_ns] == pytest.approx(facts["run_ms"], abs=0.011)
    assert device["kernels"] == facts["kernels"]
    assert round(device["busy_share"], 3) == facts["gpu_busy_share"]
    assert round(device["window_ms"], 2) == facts["window_ms"]
    copies = trace.sql("select kind, count(*) n from ops where role = 'copy' and kind like 'copy%' group by 1 order by 1").values.tolist()
    assert copies == [["copy_d2h", 5 * facts["d2h_per_step"]], ["copy_h2d", 5 * facts["h2d_per_step"]]]
