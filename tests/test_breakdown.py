from fractions import Fraction

import numpy as np
import pytest

from tracediag.breakdown import ORDER, host_layers, split_window
from tracediag.intervals import total
from tracediag.stats import _rank_split, _shares
from tracediag.trace import Trace


def spans(*pairs):
    return np.asarray([a for a, _ in pairs], np.int64), np.asarray([b for _, b in pairs], np.int64)


def layers(window, *rows):
    start, end = (np.asarray([row[i] for row in rows], np.int64) for i in (0, 1))
    return host_layers(start, end, np.asarray([ORDER.index(row[2]) for row in rows], np.int64), window)


def test_holes_between_events_of_one_phase_belong_to_it_and_the_rest_is_other():
    host = layers(spans((0, 100)), (10, 20, "forward"), (30, 40, "forward"), (50, 60, "backward"))
    assert {name: total(layer) for name, layer in zip(ORDER, host, strict=True)} == {
        "optimizer": 0, "backward": 10, "forward": 30, "comm": 0, "input": 0, "other": 60,
    }  # fmt: skip


def test_the_busy_device_comes_before_the_gap_and_the_gap_before_the_host():
    window = spans((0, 100))
    host = layers(window, (0, 100, "forward"))
    split = split_window(window, host, {"backward": spans((0, 40))}, {"input": spans((30, 60))})
    assert split.device["backward"] == 40
    assert split.idle["input"] == 20
    assert split.host["forward"] == 40


def test_shares_of_any_parts_are_whole():
    for owned in ([1, 1, 1], [0, 0, 7], [10**15 + 1, 3, 5], [2, 3, 5, 7, 11, 13]):
        shares = _shares(owned)
        assert sum(Fraction(str(share)) for share in shares) == 1
        assert all(abs(share - part / sum(owned)) <= 1e-4 for share, part in zip(shares, owned, strict=True))
    assert _shares([0, 0]) == [0.0, 0.0]


def given(device):
    rows = [
        {"name": "enumerate(DataLoader)#_It.__next__", "role": "annotation", "start_ns": 3000, "dur_ns": 90_000},
        {"name": "aten::mm", "start_ns": 100_000, "dur_ns": 101_000},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 117_000, "dur_ns": 20_000},
        {"name": "Optimizer.step#SGD.step", "role": "annotation", "start_ns": 307_000, "dur_ns": 50_000},
    ]
    work = [
        {"name": "sgemm", "place": "device", "launch": 2, "start_ns": 143_000, "dur_ns": 77_000},
        {"name": "sgemm", "place": "device", "launch": 2, "start_ns": 150_000, "dur_ns": 100_000, "lane": "stream 8"},
    ]
    return {"ops": rows + work * device, "steps": [{"step": n, "start_ns": n * 200_000, "end_ns": n * 200_000 + 197_003} for n in range(3)]}


@pytest.mark.parametrize("device", [0, 1])
def test_parts_add_up_to_the_window_and_shares_to_one(device):
    trace = Trace.from_rows(given(device))
    split = _rank_split(trace, -1)
    assert sum(sum(part.values()) for part in (split.host, split.device, split.idle)) == 3 * 197_003
    rows = trace.breakdown()
    assert sum(Fraction(str(row["share"])) for row in rows) == 1
    assert bool(sum(row["device_ms"] for row in rows)) == bool(device)


def test_a_file_without_a_rank_does_not_count_for_rank_0():
    ranked = [{**row, "rank": 0} for row in given(0)["ops"][:2]]
    bare = [{"name": "aten::mm", "start_ns": 0, "dur_ns": 10, "rank": None}]
    trace = Trace.from_rows({"ops": ranked + bare})
    forward = _rank_split(trace, -1).host
    assert sum(forward.values()) == 10
    assert forward["forward"] == 10
