"""The views `blocking` and `stalls`: which calls hold the host up, why, and how much idle time that brings about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tracediag.depgraph import build_graph
from tracediag.edits import untouched
from tracediag.replay import replay
from tracediag.trace import Trace
from tracediag.waits import Wait


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


def test_idle_time_behind_the_call_counts() -> None:
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


@pytest.mark.parametrize(("iterator", "charged"), [("_MultiProcessingDataLoaderIter", False), ("_SingleProcessDataLoaderIter", True)])
def test_no_lead_outlasts_a_wait_for_other_processes(iterator: str, charged: bool) -> None:
    """The host waits 3 ms for the device, then 1.2 ms for a batch: made by itself it would be made earlier, made by others it would not."""
    rows: list[dict[str, Any]] = [
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 0, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 0, "start_ns": 10_000, "dur_ns": 3_000_000},
        synchronise(end=3_015_000),
        {"name": f"enumerate(DataLoader)#{iterator}.__next__", "role": "annotation", "start_ns": 3_016_000, "dur_ns": 1_200_000},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 4_500_000, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 4, "start_ns": 4_510_000, "dur_ns": 200_000},
    ]
    trace = Trace.from_rows({"steps": [{"step": 0, "start_ns": 0, "end_ns": 5_000_000}], "ops": rows})
    found = int(trace.sql("SELECT coalesce(sum(idle_ns), 0) AS ns FROM stalls")["ns"][0])
    assert (found > 250_000) is charged


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
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) == (230_000 - 215_000) + (245_000 - 232_000) + (
        410_000 - 250_000
    )


def short_kernels(count: int, begin: int = 400_000, every: int = 20_000) -> list[dict[str, Any]]:
    """Launches that the host makes every 20 us, of kernels of 5 us; they stand behind the rows of `step_with`."""
    call = {"name": "cudaLaunchKernel", "role": "runtime", "dur_ns": 5_000}
    kernel = {"name": "tiny_kernel", "place": "device", "dur_ns": 5_000}
    rows: list[dict[str, Any]] = []
    for i in range(count):
        rows += [call | {"start_ns": begin + i * every}, kernel | {"launch": 4 + 2 * i, "start_ns": begin + 6_000 + i * every}]
    return rows


def test_a_lead_lasts_for_many_launches_until_it_is_used_up() -> None:
    """Without the call the host is 195 us ahead: that covers the 185 us before the first kernel, and 10 us of what follows."""
    waited = synchronise("cudaDeviceSynchronize")
    trace = step_with([*short_kernels(12, begin=394_000), waited], next_launch=640_000)
    found = trace.sql("SELECT g.start_ns, s.idle_ns, s.lead_ns FROM stalls s JOIN gaps g USING (gap_id) ORDER BY g.start_ns")
    assert 190_000 <= int(found["idle_ns"].sum()) <= 195_000
    assert len(found) > 3
    assert found["lead_ns"].tolist()[0] == 195_000


def test_without_the_call_a_step_ends_as_much_earlier() -> None:
    """Two steps: 10 short kernels that the host launches too slowly, one of 300 us, a read. What the replay without the wait saves."""
    rows: list[dict[str, Any]] = []
    for begin in (0, 600_000):
        for i in range(10):
            rows.append({"name": "cudaLaunchKernel", "role": "runtime", "start_ns": begin + 20_000 * i, "dur_ns": 5_000})
            kernel = {
                "name": "tiny_kernel",
                "place": "device",
                "launch": len(rows) - 1,
                "start_ns": begin + 20_000 * i + 6_000,
                "dur_ns": 5_000,
            }
            rows.append(kernel)
        rows.append({"name": "cudaLaunchKernel", "role": "runtime", "start_ns": begin + 200_000, "dur_ns": 5_000})
        kernel = {"name": "gemm_kernel", "place": "device", "launch": len(rows) - 1, "start_ns": begin + 206_000, "dur_ns": 300_000}
        rows += [kernel, synchronise("cudaDeviceSynchronize", begin + 210_000, begin + 510_000)]
    steps = [{"step": 0, "start_ns": 0, "end_ns": 600_000}, {"step": 1, "start_ns": 600_000, "end_ns": 1_110_000}]
    trace = Trace.from_rows({"steps": steps, "ops": rows})
    graph = build_graph(trace, -1)
    assert graph is not None
    free = replace(graph, joins=tuple(replace(join, work=()) if isinstance(join, Wait) else join for join in graph.joins))
    saved = replay(trace, graph, [untouched(graph)]).replayed.sum() - replay(trace, free, [untouched(free)]).replayed.sum()
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) == pytest.approx(saved, abs=20_000)


def test_no_call_pays_for_more_than_it_waited() -> None:
    first, second = synchronise("cudaDeviceSynchronize"), synchronise("cudaStreamSynchronize", start=222_000, end=223_000)  # 195 us, 1 us
    found = step_with([first, second]).sql("SELECT op_id, sum(idle_ns)::BIGINT AS ns FROM stalls GROUP BY op_id")
    assert found["op_id"].tolist() == [4]


def test_waiting_for_other_ranks_gains_no_lead() -> None:
    trace = step_with(
        [synchronise("cudaDeviceSynchronize"), {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 6_000, "dur_ns": 5_000}]
    )
    assert len(trace.sql("SELECT * FROM stalls")) > 0
    rows = [
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 6_000, "dur_ns": 5_000},
        {"name": "ncclKernel_AllReduce", "place": "device", "lane": "stream 20", "launch": 4, "start_ns": 12_000, "dur_ns": 202_000},
        synchronise("cudaDeviceSynchronize"),
    ]
    assert len(step_with(rows).sql("SELECT * FROM stalls")) == 0


def test_a_thread_that_launches_no_kernel_holds_nobody_up() -> None:
    assert len(step_with([synchronise() | {"lane": "prefetch"}]).sql("SELECT * FROM stalls")) == 0


def test_no_lead_outlasts_a_call_of_the_allocator() -> None:
    free = {"name": "cudaFree", "role": "runtime", "start_ns": 216_000, "dur_ns": 30_000}
    assert int(step_with([synchronise(), free]).sql("SELECT coalesce(sum(idle_ns), 0) AS ns FROM stalls")["ns"][0]) < 5_000


def fetched(call: int = 212_000, inside: dict[str, Any] | None = None, size: int = 4) -> Trace:
    """TensorFlow: a function with one kernel of 200 us, then a copy of `size` bytes to the host, launched at `call`, then a kernel."""
    rows: list[dict[str, Any]] = [
        {"name": "step", "role": "function", "start_ns": 0, "dur_ns": 8_000},
        {"name": "gemm", "role": "runtime", "start_ns": 1_000, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 1, "start_ns": 10_000, "dur_ns": 200_000},
        {"name": "MemcpyD2H", "role": "runtime", "start_ns": call, "dur_ns": 2_000},
        {"name": "MemcpyD2H", "role": "copy", "place": "device", "launch": 3, "bytes": size, "start_ns": call + 1_000, "dur_ns": 2_000},
        {"name": "gemm", "role": "runtime", "start_ns": 400_000, "dur_ns": 5_000},
        {"name": "gemm_kernel", "place": "device", "launch": 5, "start_ns": 410_000, "dur_ns": 200_000},
    ]
    steps = [{"step": 0, "start_ns": 0, "end_ns": 1_000_000}]
    return Trace.from_rows({"framework": "tensorflow", "steps": steps, "ops": [*rows, *([inside] if inside else [])]})


@pytest.mark.parametrize(("size", "cause"), [(4, "readback"), (1_000_000, "copy")])
def test_eager_tensorflow_waits_in_a_copy_on_the_thread_of_python(size: int, cause: str) -> None:
    trace = fetched(size=size)
    assert trace.sql("SELECT cause FROM blocking")["cause"].tolist() == [cause]
    assert trace.sql("SELECT start_ns, end_ns FROM fetches").iloc[0].tolist() == [8_000, 215_000]
    assert int(trace.sql("SELECT sum(idle_ns) AS ns FROM stalls")["ns"][0]) == 410_000 - 215_000


@pytest.mark.parametrize(
    ("call", "inside"),
    [
        (350_000, None),  # the device had run dry long before: what came between was Python's own work
        (212_000, {"name": "IdentityN", "role": "op", "label": "out/IdentityN", "start_ns": 211_000, "dur_ns": 5_000}),  # a graph's copy
        (212_000, {"name": "other", "role": "function", "start_ns": 9_000, "dur_ns": 240_000}),  # inside the function
    ],
)
def test_other_copies_of_tensorflow_are_not_taken_for_waits(call: int, inside: dict[str, Any] | None) -> None:
    assert len(fetched(call, inside).sql("SELECT * FROM fetches")) == 0
