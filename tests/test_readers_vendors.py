"""Torch traces of accelerators other than CUDA: how devices are called, what is work, what belongs to which op."""

from __future__ import annotations

from pathlib import Path

import pytest
from format_samples import ascend, dumped
from reader_samples import kineto, kineto_bytes
from reference_reader import rows_of

from tracediag import api
from tracediag.readers import read_all

TRACES = Path(__file__).parents[2] / "shared" / "traces"
real = [pytest.mark.traces, pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside this checkout")]


def read(tmp_path, data, name="t.json"):
    path = tmp_path / name
    path.write_bytes(data)
    return read_all([str(path)])[0][0]


def devices(raw):
    return sorted(set(raw.device.to_objects().tolist()) - {None})


def renamed(old, new, **changes):
    document = kineto(**changes)
    for event in document["traceEvents"]:
        event["cat"] = new if event.get("cat") == old else event.get("cat", "")
    return document


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (kineto(), "cuda:0"),
        (renamed("cuda_runtime", "xpu_runtime"), "xpu:0"),
        (renamed("cuda_runtime", "mtia_runtime"), "mtia:0"),
        (kineto(deviceProperties=[{"id": 0, "name": "Intel(R) Data Center GPU Max 1550"}]), "xpu:0"),
        (
            kineto(traceEvents=[*kineto()["traceEvents"], {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "XPU 0"}}]),
            "xpu:0",
        ),
        (
            kineto(traceEvents=[*kineto()["traceEvents"], {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "NPU"}}]),
            "npu:0",
        ),
    ],
)
def test_devices_are_called_as_their_vendor_calls_them(tmp_path, document, name):
    raw = read(tmp_path, kineto_bytes(document))
    assert devices(raw) == [name]
    assert [row["device"] for row in raw.facts["devices"]] == [name]
    assert raw.facts["devices"][0]["type"] == ("gpu" if name == "cuda:0" else name.split(":")[0])


def test_device_properties_that_went_through_python_are_read(tmp_path):
    raw = read(tmp_path, kineto_bytes(kineto(deviceProperties="[{'id': 0, 'name': 'NVIDIA A100', 'numSms': 108}]")))
    assert (raw.facts["devices"][0]["name"], raw.facts["devices"][0]["sm_count"]) == ("NVIDIA A100", 108)
    assert "devices" not in read(tmp_path, kineto_bytes(kineto(deviceProperties="[open('x')]"))).facts


def test_mtia_waits_are_no_work_and_copies_have_direction_and_size(tmp_path):
    def event(name, ts, **args):
        return {
            "ph": "X",
            "cat": "mtia_ccp_events",
            "name": name,
            "pid": 17,
            "tid": 90,
            "ts": ts,
            "dur": 2,
            "args": {"stream": 108, **args},
        }

    events = [event("event_wait", 1), event("pe_exe", 4, correlation=5), event("dma_request", 8, direction="HOST_TO_DEVICE", size=1024)]
    raw = read(tmp_path, dumped({"schemaVersion": 1, "traceEvents": events}))
    assert rows_of(raw, ("role", "name", "device", "lane", "bytes")) == [
        ("copy", "dma_request HOST_TO_DEVICE", "mtia:17", "gpu 17 stream 108", 1024),
        ("device_sync", "event_wait", "mtia:17", "gpu 17 stream 108", None),
        ("kernel", "pe_exe", "mtia:17", "gpu 17 stream 108", None),
    ]


def test_events_without_category_are_told_by_their_names(tmp_path):
    names = ("aten::mm", "zeCommandListAppendLaunchKernel", "gemm_kernel<float>[SIMD32 {64; 1; 1} {16; 16; 1}]", "something")
    events = [{"ph": "X", "name": name, "ts": i, "dur": 1, "pid": 1, "tid": 2} for i, name in enumerate(names)]
    raw = read(tmp_path, dumped({"traceEvents": events}))
    assert raw.role.to_objects().tolist() == ["op", "runtime", "kernel", "framework"]
    assert devices(raw) == ["xpu"]
    assert raw.health == ()
    assert [item.id for item in read(tmp_path, dumped({"traceEvents": events[2:]})).health] == ["no-categories"]


def test_ranges_of_counters_are_no_kernels(tmp_path):
    raw = read(tmp_path, kineto_bytes(renamed("kernel", "cuda_profiler_range")))
    assert raw.role.isin(["kernel"]).sum() == 0
    assert [item.id for item in raw.health] == ["counter-ranges"]


def test_a_trace_of_the_host_alone_on_a_machine_with_a_gpu_says_so(tmp_path):
    events = [event for event in kineto()["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    raw = read(tmp_path, kineto_bytes(kineto(traceEvents=events)))
    assert [item.id for item in raw.health] == ["host-only"]
    assert "NVIDIA A100" in raw.health[0].message


def test_ascend_tasks_belong_to_their_ops_and_derived_rows_are_left_out(tmp_path):
    raw = read(tmp_path, dumped(ascend()))
    assert (raw.format, raw.framework, raw.events, devices(raw)) == ("ascend", "torch", 16, ["npu:0"])
    assert rows_of(raw, ("role", "name", "lane", "dur_ns", "correlation", "step_num")) == [
        ("annotation", "ProfilerStep#3", "thread 50", 900_500, None, 3),
        ("copy", "MEMCPY_ASYNC", "npu 0 stream 4", 1000, 4, None),
        ("device_sync", "EVENT_WAIT", "npu 0 stream 4", 1000, None, None),
        ("framework", "Enqueue", "thread 50", 1000, None, None),
        ("kernel", "aclnnMm_CastAiCore_Cast", "npu 0 stream 3", 1000, 9, None),
        ("kernel", "aclnnMm_MatMulCommon_MatMulV2", "npu 0 stream 3", 2500, 8, None),
        ("op", "aten::mm", "thread 50", 20_250, None, None),
        ("runtime", "aclrtMemcpy", "thread 51", 5400, 4, None),
    ]
    path = tmp_path / "a.json"
    path.write_bytes(dumped(ascend()))
    launched = api.load(str(path)).sql("select d.name, h.name from ops d join ops h on d.launch_id = h.op_id order by 1").values.tolist()
    assert launched == [
        ["MEMCPY_ASYNC", "aclrtMemcpy"], ["aclnnMm_CastAiCore_Cast", "aten::mm"], ["aclnnMm_MatMulCommon_MatMulV2", "aten::mm"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "device", "kernels"),
    [
        pytest.param("kineto-mtia/4c9b67.json.gz", ["mtia:17"], 97, marks=real),
        pytest.param("kineto-npu/f622e9.json.gz", ["npu:0"], 274, marks=real),
        pytest.param("xpu/87d134.json", ["xpu"], 4, marks=real),
        pytest.param("kineto-rocm/941dea.json.gz", ["cuda:2"], 2360, marks=real),
        pytest.param("kineto-cuda-legacy/8fb4fb.json.gz", ["cuda:0"], 4, marks=real),
    ],
)
def test_real_files_name_their_devices(name, device, kernels):
    raw = read_all([str(TRACES / name)])[0][0]
    assert (devices(raw), int(raw.role.isin(["kernel"]).sum())) == (device, kernels)
