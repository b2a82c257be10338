"""`tracediag compare`: formats, exit codes, several runs a side, a report as baseline, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tracediag
from tracediag import baseline, cli
from tracediag.errors import InputError
from tracediag.reports import COMPARISON_FORMATS, render_comparison
from tracediag.reports.budget import LIMIT

FIXTURES = Path(__file__).parent.parent / "fixtures"
SLOW, FAST = (str(FIXTURES / "torch-unfused-adam" / side) for side in ("slow", "fast"))
KEYS = ["schema", "tool", "a", "b", "same_work", "step", "difference", "ops", "findings", "fixes", "settings", "rules", "verdict"]


@pytest.fixture(scope="module")
def told() -> tracediag.Comparison:
    return tracediag.compare(SLOW, FAST)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reports")
    made = {}
    for name, place in (("slow", SLOW), ("fast", FAST)):
        made[name] = str(folder / f"{name}.json")
        Path(made[name]).write_text(tracediag.explain(place).to_json())
    return made


@pytest.mark.parametrize("form", COMPARISON_FORMATS)
def test_every_format_gives_printable_lines_and_one_closing_newline(told: tracediag.Comparison, form: str) -> None:
    text = render_comparison(told, form)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert all(c.isprintable() or c == "\n" for c in text)
    assert text == render_comparison(tracediag.compare(SLOW, FAST), form)


def test_an_unknown_format_is_refused(told: tracediag.Comparison) -> None:
    with pytest.raises(KeyError):
        render_comparison(told, "pdf")


def test_json_has_the_keys_of_the_contract_and_its_parts_add_up(told: tracediag.Comparison) -> None:
    read = json.loads(told.to_json())
    assert list(read) == KEYS
    assert read["schema"] == "tracediag.comparison/1"
    assert {"flops", "parameters", "batch", "dtype"} <= set(read["same_work"])
    assert {"a_ms", "b_ms", "ratio"} <= set(read["step"])
    for row in read["difference"]:
        assert {"phase", "kind", "a_ms", "b_ms", "delta_ms", "share"} <= set(row)
    deltas = [round(row["delta_ms"] * 1_000_000) for row in read["difference"]]
    assert sum(deltas) == round(read["step"]["a_ms"] * 1_000_000) - round(read["step"]["b_ms"] * 1_000_000)
    assert set(read["findings"]) == {"only_a", "only_b", "both"}
    assert {"rule", "text"} <= set(read["verdict"])


def test_json_holds_the_published_schema(reports: dict[str, str]) -> None:
    schema = json.loads((FIXTURES.parent / "docs" / "schema" / "comparison-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    other = str(FIXTURES / "report-001-conv1d" / "slow")
    for a, b in ((SLOW, FAST), (FAST, SLOW), (SLOW, SLOW), (other, FAST), (reports["slow"], FAST), (reports["slow"], reports["slow"])):
        jsonschema.validate(json.loads(tracediag.compare(a, b).to_json()), schema)


def test_text_names_the_reason_the_parts_and_the_fix(told: tracediag.Comparison) -> None:
    text = str(told)
    for words in (
        "A takes 2.4 times as long as B",
        "optimizer, optimizer update",
        "aten::_fused_adamw_",
        "whole step",
        "fused: not set in A, True in B",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 96


def test_nothing_of_this_machine_is_told(told: tracediag.Comparison) -> None:
    for form in COMPARISON_FORMATS:
        assert str(FIXTURES.parent) not in render_comparison(told, form)


@pytest.mark.parametrize("form", COMPARISON_FORMATS)
def test_hostile_names_neither_steer_a_terminal_nor_format(told: tracediag.Comparison, form: str) -> None:
    nasty = "\x1b[31m<script>|`*_\u202e@user #1\n## x"
    row = {**told.difference[0], "what": nasty, "cause": {"rule": nasty, "title": nasty, "side": "a"}}
    hostile = replace(
        told,
        verdict={**told.verdict, "text": nasty},
        difference=(row, *told.difference[1:]),
        settings=({"name": nasty, "a": nasty, "b": None},),
        a={**told.a, "name": nasty},
    )
    text = render_comparison(hostile, form)
    assert "\x1b" not in text
    assert "\u202e" not in text
    if form in ("markdown", "html"):
        assert "[31m<script>" not in text
        assert "\n## x" not in text


def test_markdown_fits_into_a_comment(told: tracediag.Comparison) -> None:
    many = replace(told, settings=tuple({"name": f"setting {i}", "a": "x" * 60, "b": "y" * 60} for i in range(5000)))
    assert len(many.to_markdown()) <= LIMIT


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "told.json"
    assert cli.main(["compare", SLOW, FAST, "--format", "json", "--output", str(file)]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["compare", SLOW, FAST, "--format", "json"]) == 0
    assert capsys.readouterr().out == file.read_text()


@pytest.mark.parametrize(
    ("a", "b", "percent", "code"),
    [(FAST, SLOW, "10", 1), (FAST, SLOW, "1000", 0), (SLOW, FAST, "0", 0), (SLOW, SLOW, "0", 0)],
)
def test_fail_on_regression_looks_from_a_to_b(a: str, b: str, percent: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--fail-on-regression", percent, a, b]) == code
    assert capsys.readouterr().err == ""


def test_a_report_is_a_baseline(reports: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--fail-on-regression", "10", reports["fast"], SLOW]) == 1
    assert cli.main(["compare", "--fail-on-regression", "10", reports["slow"], FAST]) == 0
    capsys.readouterr()
    told = tracediag.compare(reports["slow"], FAST)
    assert told.a["only_report"]
    assert told.step["ratio"] == pytest.approx(2.4, rel=0.02)
    assert {row["kind"] for row in told.difference} == {None}
    assert sum(round(row["delta_ms"] * 1e6) for row in told.difference) == round(told.step["delta_ms"] * 1e6)
    assert told.verdict["rule"] == "opt-not-fused"
    both = tracediag.compare(reports["slow"], reports["fast"])
    assert both.verdict["rule"] == "opt-not-fused"
    assert tracediag.compare(reports["slow"], reports["slow"]).verdict["outcome"] == "identical"


def test_a_report_that_cannot_be_used_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer, broken = tmp_path / "newer.json", tmp_path / "broken.json"
    newer.write_text('{"schema": "tracediag.report/2"}')
    broken.write_text('{"schema": "tracediag.report/1", "findings": 3}')
    for file, words in ((newer, "upgrade"), (broken, "broken report")):
        assert cli.main(["compare", str(file), FAST]) == 2
        told = capsys.readouterr().err
        assert words in told
        assert len(told.splitlines()) == 1


def test_a_side_that_is_missing_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", SLOW, "no-such-run"]) == 2
    assert "no-such-run" in capsys.readouterr().err
    assert cli.main(["compare", SLOW]) == 2
    assert cli.main(["compare", SLOW, FAST, "--format", "pdf"]) == 2


def test_several_runs_of_a_side_tell_the_noise(reports: dict[str, str]) -> None:
    def runs(*steps: float) -> list[Any]:
        report = tracediag.explain(SLOW)
        return [replace(report, steps={**report.steps, "unprofiled_mean_ms": ms}) for ms in steps]

    same = tracediag.compare(runs(100, 104, 98), runs(101, 97, 106))
    assert same.verdict["text"].startswith("No difference beyond noise:")
    assert same.verdict["outcome"] == "no-difference"
    assert same.step["noise"]["known"]
    assert "over 3 and 3 runs" in same.verdict["text"]
    slower = tracediag.compare(runs(100, 104, 98), runs(131, 128, 135))
    assert slower.step["noise"]["change"] == "faster"
    assert slower.verdict["outcome"] != "no-difference"
    assert baseline.regression(slower, 10)
    assert not baseline.regression(same, 0)


def test_runs_are_separated_by_commas_unless_a_file_has_that_name(tmp_path: Path) -> None:
    odd = tmp_path / "a,b"
    odd.mkdir()
    assert baseline.runs_of(str(odd)) == [str(odd)]
    assert baseline.runs_of("one, two,three") == ["one", "two", "three"]
    assert baseline.runs_of("gs://bucket/a,b") == ["gs://bucket/a,b"]
    with pytest.raises(InputError, match="names no run"):
        baseline.runs_of(",")


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ("runs/slow", "runs/fast", ("slow", "fast")),
        ("one/run", "two/run", ("one/run", "two/run")),
        (["x/1", "x/2"], "y/1", ("x/1", "y/1")),
        ("same", "same", ("same", "same")),
        (None, "run", ("A", "run")),
    ],
)
def test_sides_are_called_by_what_tells_them_apart(a: Any, b: Any, names: tuple[str, str]) -> None:
    assert baseline.names(a, b) == names
