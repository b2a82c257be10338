from types import SimpleNamespace

import numpy as np
import pytest

from tracediag.rule import Saving
from tracediag.trace import Trace
from tracediag.whatif import predict

ROWS = {"ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": 500}, {"name": "aten::add", "start_ns": 500, "dur_ns": 300}]}
STEPS = [{"step": n, "start_ns": n * 1000, "end_ns": n * 1000 + 1000} for n in range(4)]


def rule(transform="drop"):
    return SimpleNamespace(saving=Saving(transform))


def claim(share, by_series=False, keep=(None, None), ops=(0,)):
    return SimpleNamespace(share=share, by_series=by_series, keep_low=keep[0], keep_high=keep[1], op_ids=np.asarray(ops, np.int64))


@pytest.fixture(scope="module")
def trace():
    return Trace.from_rows({**ROWS, "steps": STEPS})


def test_nothing_is_predicted_without_a_saving_or_for_a_trifle(trace):
    assert predict(trace, claim(0.5), rule("none")) is None
    assert predict(trace, claim(0.005), rule()) is None


@pytest.mark.parametrize("by_series", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_the_interval_holds_the_plain_estimate(trace, share, by_series):
    speedup = predict(trace, claim(share, by_series), rule())
    assert 1 <= speedup.low <= round(1 / (1 - share), 2)
    assert speedup.high is None or round(1 / (1 - share), 2) <= speedup.high


@pytest.mark.parametrize("by_series", [False, True])
def test_a_claim_of_the_whole_step_has_no_upper_end(trace, by_series):
    speedup = predict(trace, claim(1.0, by_series), rule())
    assert speedup.high is None
    assert 1 < speedup.low < 1000


def test_what_stays_narrows_the_gain(trace):
    some, all_of_it = (predict(trace, claim(0.5, keep=keep), rule()) for keep in ((0.2, 0.5), (None, None)))
    assert some.low < all_of_it.low
    assert some.high < all_of_it.high
    assert some.low <= 1 / (0.5 + 0.5 * 0.5) <= some.high


def test_what_is_measured_without_the_profiler_is_known_better(trace):
    traced, series = predict(trace, claim(0.5), rule()), predict(trace, claim(0.5, by_series=True), rule())
    assert series.high - series.low < traced.high - traced.low


def test_at_least_has_no_upper_end(trace):
    assert predict(trace, claim(0.5), rule("at_least")).high is None


def test_the_profilers_own_cost_is_taken_out_of_the_claim():
    slowed = Trace.from_rows({**ROWS, "steps": STEPS, "step_series": [{"wall_ns": 600}] * 5})
    even = Trace.from_rows({**ROWS, "steps": STEPS, "step_series": [{"wall_ns": 1000}] * 5})
    # all host events are claimed, so that all of the cost is theirs: 500 of 1000 recorded become 100 of 600
    everything = claim(0.5, ops=range(len(slowed)))
    assert predict(slowed, everything, rule()).high < predict(even, everything, rule()).high


@pytest.mark.parametrize("by_series", [False, True])
def test_a_small_rest_gives_only_the_lower_end(trace, by_series):
    speedup = predict(trace, claim(0.95, by_series), rule())
    assert speedup.low > 5
    assert speedup.high is None
