"""Recorded pairs: the reason is named, the parts add up, swapped sides mirror each other, one recording differs in nothing from itself."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tracediag
from tracediag.comparing.compare import compare_runs
from tracediag.comparing.difference import UNATTRIBUTED

if TYPE_CHECKING:
    from tracediag.comparison import Comparison

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
TRACES = ROOT.parent / "shared" / "traces"
MS = 1_000_000
NAMES = sorted(
    path.parent.name for path in FIXTURES.glob("*/expect.json") if (path.parent / "slow").is_dir() and (path.parent / "fast").is_dir()
)
UNCLEAR = {
    "tf-partial-batch-retrace": "medium, and the operations are the same",
    "torch-checkpoint-in-mean": "recorded while the machine was busy: the fast side took longer",
    "torch-no-warmup": "a fault of the measurement only",
    "torch-outputs-kept": "growing memory takes no time here",
    "torch-subnormal-weights": "the processor that it was recorded on hardly minds subnormal numbers",
}
"""Pairs whose recordings do not show the gain that their cause has, and why."""


@functools.cache
def run(place: str) -> Any:
    folder = Path(place)
    if not folder.exists():
        pytest.skip("not recorded")
    trace = tracediag.load(place)
    return trace, tracediag.explain(trace)


def fixture(name: str) -> str:
    return str(FIXTURES / name)


def real(*names: str) -> list[str]:
    if not TRACES.is_dir():
        pytest.skip("the folder of public traces is not there")
    return [str(TRACES / name) for name in names]


def compared(a: str, b: str) -> Comparison:
    return compare_runs([run(a)], [run(b)], ("a", "b"))


def swapped(text: str) -> str:
    """The sentence with the sides exchanged; titles begin with a quotation mark and may begin with the article A."""
    return re.sub(r"(?<!“)\b[AB]\b", lambda found: "BA"["AB".index(found[0])], text)


def assert_exact(comparison: Comparison) -> None:
    whole = round(comparison.step["a_ms"] * MS) - round(comparison.step["b_ms"] * MS)
    assert sum(round(row["delta_ms"] * MS) for row in comparison.difference) == whole


def assert_mirrored(one: Comparison, two: Comparison) -> None:
    assert swapped(two.verdict["text"]) == one.verdict["text"]
    assert (one.verdict["rule"], one.verdict["outcome"]) == (two.verdict["rule"], two.verdict["outcome"])
    key = ("phase", "kind", "owner")
    assert {tuple(row[k] for k in key): row["delta_ms"] for row in one.difference} == {
        tuple(row[k] for k in key): -row["delta_ms"] for row in two.difference
    }
    assert one.step["ratio"] * two.step["ratio"] == pytest.approx(1)
    assert [row["rule"] for row in one.findings["only_a"]] == [row["rule"] for row in two.findings["only_b"]]
    assert {name: row["warning"] is None for name, row in one.same_work.items()} == {
        name: row["warning"] is None for name, row in two.same_work.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_finding_that_is_gone_is_named_with_the_measured_ratio(name: str) -> None:
    told = compared(fixture(f"{name}/slow"), fixture(f"{name}/fast"))
    assert_exact(told)
    top = json.loads((FIXTURES / name / "expect.json").read_text())["top"]
    gone = {row["rule"] for row in told.findings["only_a"]} | {row["rule"] for row in told.findings["both"] if row["status"] == "reduced"}
    assert gone & set(top)
    if name in UNCLEAR:
        return
    assert told.verdict["outcome"] in ("finding", "different-work"), told.verdict["text"]
    assert told.fixes[0]["state"] == "gone"
    assert told.fixes[0]["rule"] in gone
    assert told.fixes[0]["measured"] == told.step["ratio"] > 1.05
    lead = next(
        row for row in (*told.findings["only_a"], *(row["a"] for row in told.findings["both"])) if row["rule"] == told.fixes[0]["rule"]
    )
    assert lead["title"].rstrip(".") in told.verdict["text"]


@pytest.mark.parametrize("name", NAMES)
def test_swapped_sides_give_the_mirrored_answer(name: str) -> None:
    a, b = fixture(f"{name}/slow"), fixture(f"{name}/fast")
    assert_mirrored(compared(a, b), compared(b, a))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_does_not_differ_from_itself(name: str) -> None:
    told = compared(fixture(f"{name}/slow"), fixture(f"{name}/slow"))
    assert told.verdict == {
        "rule": None, "text": "The two sides are the same recording: there is no difference.", "outcome": "identical",
    }  # fmt: skip
    assert told.step["ratio"] == 1
    assert all(row["delta_ms"] == 0 for row in told.difference)
    assert not (told.findings["only_a"] or told.findings["only_b"] or told.fixes or told.settings or told.rules)


def test_most_of_each_difference_has_a_known_reason_and_what_has_none_is_said() -> None:
    poor = []
    for name in NAMES:
        told = compared(fixture(f"{name}/slow"), fixture(f"{name}/fast"))
        if told.step["attributed"] is not None and told.step["attributed"] < 0.9:
            poor.append(name)
            # far longer steps came again and again there, and the recording does not tell why: that is said, not explained away
            assert "without a known reason" in str(told)
            assert "steps far longer than usual, cause not recorded" in str(told)
    assert len(poor) <= len(NAMES) / 8, poor


class TestReport000:
    """Skip-gram, TensorFlow against PyTorch."""

    tensorflow, torch = "report-000-skipgram-tensorflow", "report-000-skipgram-torch"

    def test_the_reason_is_the_optimizer_that_works_through_whole_tables(self) -> None:
        told = compared(fixture(f"{self.tensorflow}/slow"), fixture(f"{self.torch}/fast"))
        assert_exact(told)
        assert told.verdict["rule"] == "opt-sparse-full-table"
        assert told.step["ratio"] > 8
        assert (told.difference[0]["phase"], told.difference[0]["kind"]) == ("optimizer", "optimizer_update")
        assert told.difference[0]["cause"]["rule"] == "opt-sparse-full-table"
        assert told.same_work["parameters"]["ratio"] == 1
        assert told.same_work["batch"]["ratio"] == 1

    def test_with_rows_only_on_both_sides_neither_is_slow(self) -> None:
        told = compared(fixture(f"{self.tensorflow}/fast"), fixture(f"{self.torch}/fast"))
        assert_exact(told)
        assert told.verdict["outcome"] == "parts"
        assert told.verdict["rule"] is None
        assert 0.5 < told.step["ratio"] < 2


class TestReport001:
    """Conv1D, TensorFlow against PyTorch."""

    torch = "pair-001-conv1d/torch_conv1d"

    def test_the_two_do_different_work_and_the_convolution_that_differs_is_named(self) -> None:
        told = compared(fixture("report-001-conv1d/slow"), fixture(self.torch))
        assert_exact(told)
        assert told.verdict["rule"] == "unequal-work"
        assert told.same_work["flops"]["ratio"] == pytest.approx(16, rel=0.01)
        assert "A has 16 times the operations a step; the largest that only A has: Conv2D of 1920x1x" in told.verdict["text"]
        assert told.same_work["batch"]["ratio"] == 1

    def test_on_equal_work_it_is_no_longer_the_verdict(self) -> None:
        told = compared(fixture("report-001-conv1d/fast"), fixture(self.torch))
        assert_exact(told)
        assert {name: row["ratio"] for name, row in told.same_work.items() if name in ("flops", "forward_flops", "parameters")} == {
            "flops": 1, "forward_flops": 1, "parameters": 1,
        }  # fmt: skip
        assert told.verdict["rule"] != "unequal-work"
        assert not told.rules
        assert told.difference[0]["kind"] == "conv"


class TestReport002:
    """NeuMF, today's Keras against Keras 2."""

    def test_both_pay_for_the_regularizer_and_the_rest_is_how_often_the_tables_are_passed(self) -> None:
        told = compared(fixture("report-002-neumf/slow"), fixture("pair-002-neumf/keras2"))
        assert_exact(told)
        assert not told.rules  # the same work
        assert told.same_work["flops"]["ratio"] == 1
        assert "emb-regularizer-dense" in {row["rule"] for row in told.findings["both"]}
        assert "both have “A regularizer reads the whole embedding table" in told.verdict["text"]
        assert {row["phase"] for row in told.difference[:3]} <= {"optimizer", "backward"}

    def test_without_the_regularizer_on_one_side_it_is_the_reason(self) -> None:
        told = compared(fixture("report-002-neumf/slow"), fixture("pair-002-neumf/keras3_plain"))
        assert told.verdict["rule"] == "emb-regularizer-dense"

    def test_without_it_on_both_sides_it_is_not_named(self) -> None:
        told = compared(fixture("pair-002-neumf/keras3_plain"), fixture("pair-002-neumf/keras2_plain"))
        assert_exact(told)
        assert "regularizer" not in told.verdict["text"]
        assert "opt-sparse-full-table" in {row["rule"] for row in told.findings["both"]}


class TestReport003:
    """XLA on against off."""

    def test_with_a_partial_batch_the_reason_is_compilation(self) -> None:
        told = compared(fixture("report-003-jit-partial-batch/slow"), fixture("pair-003-jit/plain"))
        assert_exact(told)
        assert told.verdict["rule"] == "xla-recompile-in-timed-region"
        assert told.difference[0]["kind"] == "compile"
        assert told.difference[0]["cause"]["rule"] == "xla-recompile-in-timed-region"

    def test_with_whole_batches_compilation_is_no_part_of_it(self) -> None:
        told = compared(fixture("report-003-jit-partial-batch/fast"), fixture("pair-003-jit/plain_whole_batches"))
        assert_exact(told)
        assert told.verdict["rule"] is None
        assert told.step["ratio"] < 1
        assert all(row["kind"] != "compile" for row in told.difference[:5])
        assert {"name": "function train_step: jit_compile", "a": "True", "b": "False"} in told.settings


class TestRealTraces:
    """Real traces of one program; the stories are in docs/compare.md."""

    def test_one_model_on_two_vendors_differs_in_host_time(self) -> None:
        a, b = real("kineto-cuda/737b43.json.gz", "kineto-rocm/ec4563.json.gz")
        told = compared(a, b)
        assert_exact(told)
        assert not told.rules
        assert told.same_work["flops"]["ratio"] == 1
        assert told.verdict["outcome"] == "parts"
        assert "the difference lies in the host" in told.verdict["text"]
        assert not {row["rule"] for row in (*told.findings["only_a"], *told.findings["only_b"])} & {"no-mixed-precision"}
        assert_mirrored(told, compared(b, a))

    def test_the_first_launch_takes_longer_in_one_of_two_runs(self) -> None:
        a, b = real("kineto-cuda/a3ab7c.json.gz", "kineto-cuda/e1ddd8.json.gz")
        told = compared(a, b)
        assert_exact(told)
        assert told.same_work["flops"]["ratio"] == 1
        assert told.ops["changed_share"] < 0.01
        assert told.difference[0]["owner"] == "long_launch"
        assert told.difference[0]["share"] > 0.85
        assert "no-warmup" in {row["rule"] for row in told.findings["both"]}

    def test_one_rank_waits_for_the_other(self) -> None:
        a, b = real("kineto-cuda-8rank-dlrm/rank1.json.gz", "kineto-cuda-8rank-dlrm/rank7.json.gz")
        told = compared(a, b)
        assert_exact(told)
        assert told.difference[0]["kind"] == "collective"
        assert told.difference[0]["delta_ms"] > told.step["delta_ms"] > 0
        assert told.same_work["flops"]["ratio"] == 1

    def test_two_windows_of_one_run_do_not_differ(self) -> None:
        a, b = real("kineto-cuda/c4adad.pt.trace.json.gz", "kineto-cuda/af68c4.pt.trace.json.gz")
        told = compared(a, b)
        assert_exact(told)
        assert told.verdict["outcome"] == "no-difference"
        assert all(row["owner"] not in UNATTRIBUTED or row["delta_ms"] == 0 for row in told.difference)
