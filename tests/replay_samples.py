"""Recordings written by hand whose replay is known: operators with their launch calls and kernels."""

MS = 1_000_000
US = 1_000


def launch(name, start, length, device_start, device_length, *, at, lane="thread 1", stream="stream 7", op=True):
    """An operator with its launch call (row `at` + 1) and the kernel."""
    return [
        *([{"name": name, "start_ns": start, "dur_ns": length, "lane": lane}] if op else []),
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": start + US, "dur_ns": length - 2 * US, "lane": lane},
        {"name": name.replace("aten::", "kernel_"), "place": "device", "lane": stream, "start_ns": device_start, "dur_ns": device_length,
         "launch": at + (1 if op else 0)},
    ]  # fmt: skip


def device_bound(steps=3):
    """Each step: two launches of 10 us, kernels of 400 and 600 us, a synchronise until they are done."""
    rows = []
    for n in range(steps):
        t = n * MS
        rows += launch("aten::mm", t, 10 * US, t + 8 * US, 400 * US, at=len(rows))
        rows += launch("aten::add", t + 10 * US, 10 * US, t + 409 * US, 580 * US, at=len(rows))
        rows.append({"name": "cudaDeviceSynchronize", "role": "runtime", "start_ns": t + 25 * US, "dur_ns": 969 * US})
    return {"ops": rows, "steps": [{"step": n, "start_ns": n * MS, "end_ns": n * MS + MS} for n in range(steps)]}


def two_ranks(steps=3, work=(700, 200), transfer=275):
    """Two ranks, each step: one kernel of its own length (us), then a collective that both end together `transfer` us after the last has
    come, and a synchronise until that is done."""
    rows, marks = [], []
    done = [(max(work) + transfer + 10) * US] * 2
    for rank, length in enumerate(work):
        lanes = {"lane": f"thread {rank}", "stream": f"stream {rank}"}
        for n in range(steps):
            t = n * MS
            first = len(rows)
            rows += launch("aten::mm", t, 10 * US, t + 8 * US, length * US, at=len(rows), **lanes)
            begin = t + (8 + length + 1) * US
            rows += launch("aten::reduce", t + 10 * US, 10 * US, begin, t + done[rank] - begin, at=len(rows), **lanes)
            rows[-1]["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            rows.append(
                {"name": "cudaDeviceSynchronize", "role": "runtime", "start_ns": t + 25 * US, "dur_ns": MS - 31 * US, "lane": lanes["lane"]}
            )
            for row in rows[first:]:
                row.update(rank=rank, device=f"cuda:{rank}" if row.get("place") == "device" else None)
            marks.append({"step": n, "start_ns": t, "end_ns": t + MS, "rank": rank})
    return {"ops": rows, "steps": marks}
