"""The views `blocking` and `stalls`: which calls hold the host up, why, and how much idle time that brings about."""

from __future__ import annotations

from typing import Any

import pytest

from tracediag.trace import Trace


def step_with(call: list[dict[str, Any]], next_launch: int = 400_000) -> Trace:
    """One kernel of 200 us, then the given rows, then the launch of another kernel, in a step of 1 ms."""
    rows: list[dict[str, Any]] = [
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 0, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 0, "start_ns": 10_000, "dur_ns": 200_000},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": next_launch, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 2, "start_ns": next_launch + 10_000, "dur_ns": 200_000},
    ]
    return Trace.from_rows({"steps": [{"step": 0, "start_ns": 0, "end_ns": 1_000_000}], "ops": [*rows, *call]})


def synchronise(name: str = "cudaStreamSynchronize", start: int = 20_000, end: int = 215_000) -> dict[str, Any]:
    return {"name": name, "role": "runtime", "start_ns": start, "dur_ns": end - start}


def operator(name: str) -> dict[str, Any]:
    return {"name": name, "start_ns": 15_000, "dur_ns": 205_000}


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ([operator("aten::item"), synchronise()], "readback"),
        ([operator("aten::is_nonzero"), synchronise()], "readback"),
        ([operator("aten::nonzero"), synchronise()], "shape"),
        ([operator("aten::copy_"), synchronise()], "copy"),
        ([operator("aten::cudnn_convolution"), synchronise()], "other"),
        ([synchronise("cudaDeviceSynchronize")], "explicit"),
        ([operator("aten::copy_"), synchronise("hipMemcpyWithStream")], "copy"),
    ],
)
def test_cause_is_read_from_what_encloses_the_call(rows: list[dict[str, Any]], cause: str) -> None:
    assert step_with(rows).sql("SELECT cause FROM blocking")["cause"].tolist() == [cause]


@pytest.mark.parametrize("name", ["cudaEventQuery", "cudaStreamWaitEvent", "cudaMemcpyAsync"])
def test_calls_that_return_at_once_do_not_block(name: str) -> None:
    assert len(step_with([operator("aten::copy_"), synchronise(name)]).sql("SELECT * FROM blocking")) == 0


def test_idle_time_behind_the_call_counts_until_the_next_kernel() -> None:
    trace = step_with([synchronise("cudaDeviceSynchronize")])
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) == 410_000 - 215_000


def test_no_more_idle_time_than_the_host_waited() -> None:
    trace = step_with([synchronise("cudaDeviceSynchronize", start=212_000)])  # 3 us: the host was not ahead
    assert len(trace.sql("SELECT * FROM stalls")) == 0


def test_the_wait_itself_is_never_counted() -> None:
    trace = step_with([synchronise("cudaDeviceSynchronize")])
    begins = trace.sql("SELECT min(g.start_ns) AS ns FROM stalls s JOIN gaps g USING (gap_id)")["ns"][0]
    assert begins == 215_000


def test_waiting_for_data_behind_the_call_belongs_to_the_loader() -> None:
    loader = {
        "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "role": "annotation",
        "start_ns": 216_000,
        "dur_ns": 180_000,
    }
    trace = step_with([synchronise("cudaDeviceSynchronize"), loader])
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) < 20_000


def test_a_call_that_nothing_follows_brings_nothing_about() -> None:
    trace = step_with([synchronise("cudaDeviceSynchronize", start=620_000, end=900_000)])
    assert len(trace.sql("SELECT * FROM stalls")) == 0


def test_the_lead_lost_to_one_call_is_missing_after_the_next_as_well() -> None:
    first, second = synchronise("cudaDeviceSynchronize"), synchronise("cudaDeviceSynchronize", start=245_000, end=250_000)
    tiny = [
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 220_000, "dur_ns": 5_000},
        {"name": "tiny_kernel", "place": "device", "launch": 4, "start_ns": 230_000, "dur_ns": 2_000},
    ]
    trace = step_with([*tiny, first, second])
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) == (230_000 - 215_000) + (410_000 - 250_000)
