"""Rules on real GPU traces that other people recorded: each cause where it was found by hand, and silence where it would be wrong."""

from pathlib import Path

import pytest

from tracediag import api

ROOT = Path(__file__).resolve().parents[2] / "shared" / "traces"
pytestmark = [pytest.mark.traces, pytest.mark.skipif(not ROOT.is_dir(), reason="needs the folder of public traces beside the checkout")]

RANKS = tuple(f"kineto-cuda-8rank-dlrm/rank{rank}.json.gz" for rank in range(8))
FOUND = [
    (("kineto-cuda/05c108.json.gz",), "tf32-off", "medium", 0.101),  # 79.3 of 782.7 ms: all products but those with 4 columns
    (("kineto-cuda/786760.json.gz",), "tf32-off", "high", 0.485),
    (("kineto-cuda-legacy/d3fb40.pt.trace.json.gz",), "no-mixed-precision", "medium", 0.47),  # 436.4 of 928.5 ms
    (RANKS, "straggler", "medium", 0.354),
    (RANKS[1:2], "comm-exposed", "high", 0.556),  # 11.06 of 19.90 ms
    (("kineto-rocm/941dea.json.gz",), "alloc-thrash", "high", 0.906),
    (("kineto-rocm/941dea.json.gz",), "allocator-cache-off", "low", 0.906),
    (("kineto-rocm/d1472e.json.gz",), "conv-layout-transposes", "medium", 0.136),  # 0.822 of 6.02 ms
    (("tf1-timeline-gpu/a0b126.json.gz",), "no-warmup", "high", 0.948),  # 112.7 of 118.9 ms
]
SILENT = [
    (RANKS, "comm-exposed"),  # 0.2 ms of transfer a step; the rest is waiting
    (RANKS, "no-mixed-precision"),
    (("kineto-cuda/05c108.json.gz",), "alloc-thrash"),  # a first iteration
    (("kineto-cuda/af68c4.pt.trace.json.gz",), "tf32-off"),  # TF32 is on
    (("kineto-cuda/737b43.json.gz",), "no-mixed-precision"),  # bf16
    (("kineto-cuda/0a7640.pt.trace.json.gz",), "tf32-off"),  # autocast
    (("kineto-cuda/b2a719.json.gz",), "no-mixed-precision"),  # no tensor cores
    (("kineto-cuda/e443f3.json.gz",), "comm-exposed"),  # 2.1 of 86 ms
    (("kineto-rocm/941dea.json.gz",), "conv-layout-transposes"),  # 59 of 3275 ms
    (("kineto-rocm/941dea.json.gz",), "no-warmup"),  # the first steps are the fast ones
]


@pytest.fixture(scope="module")
def report():
    """Each group of files is explained once for all tests."""
    known = {}

    def one(names):
        if names not in known:
            known[names] = api.explain([ROOT / name for name in names])
        return known[names]

    return one


@pytest.mark.parametrize(("names", "rule", "severity", "share"), FOUND, ids=lambda value: value if isinstance(value, str) else None)
def test_the_cause_is_found_with_its_share(report, names, rule, severity, share):
    found = [finding for finding in report(names).findings if finding.rule == rule]
    assert [finding.severity for finding in found] == [severity]
    assert found[0].share == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize(("names", "rule"), SILENT, ids=lambda value: value if isinstance(value, str) else None)
def test_the_cause_is_not_named_where_it_is_none(report, names, rule):
    assert [finding.message for finding in report(names).findings if finding.rule == rule and finding.severity in ("high", "medium")] == []


def test_exposed_collectives_and_transfers_are_those_worked_out_by_hand():
    trace = api.load(*[ROOT / name for name in RANKS])
    exposed = trace.sql("SELECT rank, sum(to_ns - from_ns) / 1e6 AS ms FROM exposed GROUP BY rank ORDER BY rank")
    assert exposed["ms"].iloc[0] == pytest.approx(5.54, abs=0.01)
    assert exposed["ms"].iloc[1] == pytest.approx(11.06, abs=0.01)
    joint = trace.sql("SELECT DISTINCT last_ns, least_ns, spread_ns FROM collectives WHERE met")
    assert joint["least_ns"].sum() == 217_000
    assert joint["spread_ns"].max() == 7_624_000
