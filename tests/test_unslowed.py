"""The share of a claim in a step without the profiler: what recording adds, and what held up the claimed time only."""

import numpy as np
import pytest

from tracediag.trace import Trace
from tracediag.unslowed import rest_follows, without_profiler

CLAIMED = [50, 80, 120, 200, 250, 60, 90, 150]
"""Claimed ms of each recorded step; none is so long that shares leave it out."""


def recorded(rest, free_ms):
    """Steps of CLAIMED and rest(claimed) ms, and the same run without the profiler; the claim is on the first operator of each."""
    steps, rows, clock = [], [], 0
    for number, claimed in enumerate(CLAIMED):
        ends = [clock + claimed * 10**6, clock + round((claimed + rest(claimed)) * 10**6)]
        rows += [{"name": "aten::mm", "start_ns": clock, "dur_ns": ends[0] - clock}]
        rows += [{"name": "aten::add", "start_ns": ends[0], "dur_ns": ends[1] - ends[0]}]
        steps.append({"step": number, "start_ns": clock, "end_ns": ends[1]})
        clock = ends[1]
    series = [{"wall_ns": round(free_ms * 10**6), "profiled": False}] * 20
    trace = Trace.from_rows({"ops": rows, "steps": steps, "step_series": series})
    ids = np.arange(0, 2 * len(CLAIMED), 2)
    spans = trace.subtree_claim(ids)
    total = sum(CLAIMED) + sum(rest(claimed) for claimed in CLAIMED)
    return trace, ids, sum(CLAIMED) / total, spans


def test_time_that_holds_up_only_what_is_claimed_leaves_the_rest_as_it_was():
    trace, ids, share, spans = recorded(lambda claimed: 10, free_ms=70)
    assert rest_follows(trace, spans) < 0.05
    assert without_profiler(trace, ids, share, spans) == pytest.approx(1 - 10 / 70, abs=0.01)


def test_time_that_holds_up_all_of_a_step_leaves_the_share_as_it_was():
    trace, ids, share, spans = recorded(lambda claimed: claimed / 9, free_ms=70)
    assert rest_follows(trace, spans) == pytest.approx(1)
    assert without_profiler(trace, ids, share, spans) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("count", [1, 4, 8])
def test_steps_that_are_few_or_alike_tell_nothing(count):
    steps = [{"step": n, "start_ns": n * 1000, "end_ns": n * 1000 + 1000} for n in range(count)]
    trace = Trace.from_rows(
        {"ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": 900, "repeat": count, "every_ns": 1000}], "steps": steps}
    )
    spans = trace.subtree_claim(np.arange(count))
    assert rest_follows(trace, spans) == 1.0
    assert without_profiler(trace, np.arange(count), 0.9, spans) == 0.9  # and nothing was timed without the profiler


def test_a_share_stays_between_nothing_and_all():
    trace, ids, share, spans = recorded(lambda claimed: 10, free_ms=5)
    assert without_profiler(trace, ids, share, spans) == 0.0
    trace, ids, share, spans = recorded(lambda claimed: 0.001, free_ms=10_000)
    assert 0.99 < without_profiler(trace, ids, share, spans) <= 1.0


@pytest.mark.parametrize("free_ms", [0, 1e-6, 200, 1e9])
def test_a_series_that_fits_no_trace_gives_a_share_still(free_ms):
    trace, ids, share, spans = recorded(lambda claimed: 300 - claimed, free_ms=free_ms)
    assert 0 <= without_profiler(trace, ids, share, spans) <= 1
