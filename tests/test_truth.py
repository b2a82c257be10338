"""The page that says how often the diagnosis is right: its counts, its arguments, its table of blind pairs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def truth():
    spec = importlib.util.spec_from_file_location("tracediag_truth", ROOT / "tools" / "truth.py")
    module = sys.modules["tracediag_truth"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rows(truth):
    good = truth.Row("good", ("float64",), first="float64", right=True, predicted=(1.5, 2.5), measured=2.0)
    low = truth.Row("low", ("no-warmup",), first="no-warmup", right=True, predicted=(4.0, None), measured=2.0, others=["launch-bound"])
    low.argued = {"launch-bound": "it is bound by launches."}
    missed = truth.Row("missed", ("tf-retrace",), alarms=["tf-retrace"])
    return [good, low, missed, truth.Row("well", (), right=True)]


def test_counts(truth, rows):
    text = truth.page(rows, None)
    assert "2 of 3 pairs right, 2 of 3 fast sides quiet, 2 of 3 without any other loud finding" in text
    assert "1 of 1 healthy scripts" in text
    assert "1 of 2 predictions hold" in text
    assert "recall 67%, precision 67%" in text


def test_every_miss_and_other_finding_is_argued(truth, rows):
    text = truth.page(rows, None)
    assert "- low: `launch-bound` on the fast side: it is bound by launches." in text
    assert "- low: prediction missed" in text
    assert "- missed: missed (nothing loud)" in text


def test_blind_pairs_stand_in_a_table_of_their_own(truth, rows):
    pair = {"name": "a", "cause": "b", "first": None, "right": False, "alarms": [], "others": ["x"], "predicted": None, "measured": 2.0}
    text = truth.page(rows, {"rounds": [{"note": "Unpolished.", "pairs": [pair]}]})
    assert "| a | b | none | **no** |  | x | 2.0 |  |" in text


def test_one_fixture(truth):
    row = truth.judge(ROOT / "fixtures" / "report-004-linear-regression")
    assert row.right
    assert not row.alarms
    assert row.measured
