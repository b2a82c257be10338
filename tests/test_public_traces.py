"""Real GPU traces that other people recorded: read whole, linked, named, and in agreement with what was worked out by hand."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tracediag import api
from tracediag.depgraph import build_graph
from tracediag.edits import untouched
from tracediag.gaps import OWNERS
from tracediag.intervals import intersect, merge, total
from tracediag.replay import replay
from tracediag.savings import TOLERANCE

ROOT = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [pytest.mark.traces, pytest.mark.skipif(not ROOT.is_dir(), reason="needs the folder of public traces beside the checkout")]

FILES = [
    str(path.relative_to(ROOT))
    for folder in ("kineto-cuda", "kineto-cuda-8rank-dlrm", "xplane-tf")
    for path in sorted((ROOT / folder).glob("*.*"))
]
OWNER_OF = {
    "loader": "input", "in_op": "op", "python/no_op": "python", "long_launch(>1ms: lazy load/queue full)": "long_launch",
    "launch_call": "launch", "queued_or_latency": "queue", "alloc": "alloc", "sync": "sync", "runtime_call": "runtime",
}  # fmt: skip
"""Owners of idle time as the key names them."""
WHOLE = 0.03
NO_KIND = "spin_kernel"  # torch.cuda._sleep: waits on purpose, which is none of the kinds


def _keys():
    if not ROOT.is_dir():
        return {}
    entries = json.loads((ROOT / "KEYS.json").read_text(encoding="utf-8"))
    return {entry["file"]: entry["facts"] for entry in entries if isinstance(entry["file"], str) and entry["file"] in FILES}


KEYS = _keys()


@pytest.fixture(scope="module")
def load():
    """Each file is read once for all tests."""
    known = {}

    def one(name):
        if name not in known:
            known[name] = api.load(ROOT / name)
        return known[name]

    return one


def records(name):
    """The event records of a Kineto file by the standard library; None for other formats."""
    if ".json" not in name:
        return None
    data = (ROOT / name).read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    content = json.loads(text.decode("utf-8", "replace"), strict=False)
    return content["traceEvents"] if isinstance(content, dict) else content


@pytest.mark.parametrize("name", FILES)
def test_every_event_of_the_file_is_counted(load, name):
    plain = records(name)
    wanted = KEYS[name]["events"] if plain is None else len(plain)
    assert sum(entry["events"] for entry in load(name).inputs) == wanted


@pytest.mark.parametrize("name", [name for name in FILES if ".json" in name])
def test_every_kernel_of_the_file_is_a_device_op_with_its_time(load, name):
    trace = load(name)
    work = [row for row in records(name) if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and row.get("ph") == "X"]
    assert int(trace.device_mask.sum()) == len(work)
    assert trace.col("dur_ns")[trace.device_mask].sum() == sum(round(float(row["dur"]) * 1000) for row in work)


@pytest.mark.parametrize("name", FILES)
def test_nearly_all_device_time_has_a_kind(load, name):
    trace = load(name)
    time, kind, names = trace.col("dur_ns"), trace.strings("kind"), trace.strings("name")
    work = trace.device_mask & ~names.where([NO_KIND in value for value in names.values])
    assert time[work & (kind.codes < 0)].sum() < 0.05 * max(time[work].sum(), 1)


@pytest.mark.parametrize("name", [name for name in FILES if ".json" in name])
def test_device_work_is_linked_as_far_as_the_file_tells(load, name):
    """Every correlation id that a host call of the file has too, gives a link."""
    trace = load(name)
    rows = records(name)
    calls = [row["args"] for row in rows if row.get("cat") in ("cuda_runtime", "cuda_driver") and row.get("args")]
    host = {args["correlation"] for args in calls if "correlation" in args}
    work = [row for row in rows if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and row.get("ph") == "X"]
    possible = sum(row.get("args", {}).get("correlation") in host for row in work)
    assert int((trace.launch[trace.device_mask] >= 0).sum()) >= possible


@pytest.mark.parametrize("name", FILES)
def test_shares_and_parts_are_whole_on_real_files(load, name):
    trace = load(name)
    assert sum(round(row["share"] * 10_000) for row in trace.breakdown()) == 10_000
    assert (trace.col("self_ns") >= 0).all()
    steps, gaps = merge(trace.step_table.start, trace.step_table.end), trace.gap_table
    assert (gaps.end > gaps.start).all()
    for key in range(len(trace.device_names)):
        idle = int((gaps.end - gaps.start)[gaps.device == key].sum())
        assert idle + total(intersect(trace.busy(key), steps)) == total(steps)


@pytest.mark.parametrize("name", sorted(KEYS))
def test_kernels_and_busy_time_agree_with_the_key(load, name):
    device, facts = load(name).device_stats(), KEYS[name]
    assert abs(device["kernels"] - facts["kernels"]) <= 0.02 * facts["kernels"]
    if "gpu_busy_share" in facts:
        assert abs(device["busy_share"] - facts["gpu_busy_share"]) <= WHOLE


@pytest.mark.parametrize("name", [name for name in sorted(KEYS) if "idle_split" in KEYS[name]])
def test_owners_of_idle_time_agree_with_the_key(load, name):
    trace, split = load(name), KEYS[name]["idle_split"]
    if trace.step_table.found_by not in ("marker", "window"):
        pytest.skip("steps found without markers: gaps cover less than the window of the key")
    window = trace.device_stats()["window_ms"] * 1e6
    gaps = trace.gap_table
    for theirs, ours in OWNER_OF.items():
        share = (gaps.end - gaps.start)[gaps.owner == OWNERS.index(ours)].sum() / window
        assert abs(share - split.get(theirs, 0.0)) <= WHOLE, (ours, share)


def test_ranks_of_one_job_lie_beside_each_other():
    files = [ROOT / name for name in FILES if name.startswith("kineto-cuda-8rank")]
    trace = api.load(*files)
    assert [int(rank) for rank in trace.steps["rank"]] == list(range(8))
    assert trace.device_stats()["devices"] == 8
    each = [api.load(path) for path in files]
    assert len(trace) == sum(len(one) for one in each)
    assert int((trace.launch >= 0).sum()) == sum(int((one.launch >= 0).sum()) for one in each)
    assert sorted(trace.steps["busy_ns"]) == sorted(int(one.steps["busy_ns"].iloc[0]) for one in each)
    own = trace.subtree_claim(np.flatnonzero(trace.device_mask))
    assert sum(own[1] - own[0]) == sum(sum(one.busy(0)[1] - one.busy(0)[0]) for one in each)


GPU_FILES = [
    str(path.relative_to(ROOT))
    for folder in ("kineto-cuda", "kineto-cuda-8rank-dlrm", "kineto-cuda-legacy", "kineto-npu", "kineto-rocm")
    for path in sorted((ROOT / folder).glob("*.*"))
]
NOT_REPLAYED = {
    "kineto-cuda/3416a6.json.gz": "cut down: 16 of 18 device ops without their launch, some of them 50 ms after the last step",
    "kineto-rocm/b6a467.json.gz": "thinned: the launches of 15 of 558 device ops only",
}
"""Files whose replay misses the recorded steps by more than 5 %, and why: nothing is predicted from them."""


@pytest.mark.parametrize("name", GPU_FILES)
def test_the_untouched_replay_meets_the_recorded_steps(load, name):
    trace = load(name)
    graphs = [build_graph(trace, rank) for rank in sorted(set(trace.step_table.rank.tolist()))]
    runs = [replay(trace, graph, [untouched(graph)]) for graph in graphs if graph is not None]
    recorded = np.median(np.concatenate([run.recorded for run in runs]))
    replayed = np.median(np.concatenate([run.replayed[0] for run in runs]))
    assert (abs(replayed / recorded - 1) <= TOLERANCE) == (name not in NOT_REPLAYED), (recorded, replayed)
