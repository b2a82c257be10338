from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from report_samples import FINDING, QUIET, SAMPLES, report

from tracediag.findings import Speedup
from tracediag.reports import FORMATS, phrases, render, renderer, text
from tracediag.reports.json import as_dict, schema

CONTRACT = ["schema", "tool", "inputs", "run", "health", "subject", "steps", "device", "breakdown", "findings", "skipped", "verdict"]
samples = pytest.mark.parametrize("name", SAMPLES)


@samples
@pytest.mark.parametrize("form", FORMATS)
def test_every_renderer_gives_printable_lines_and_one_closing_newline(name, form):
    told = render(SAMPLES[name], form)
    assert told.endswith("\n")
    assert not told.endswith("\n\n")
    assert all(c.isprintable() or c == "\n" for c in told)
    assert told.encode("utf-8")
    assert told == render(SAMPLES[name], form)


@samples
def test_json_holds_the_schema_and_the_order_of_the_contract(name):
    told = json.loads(render(SAMPLES[name], "json"))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(told, schema())
    assert list(told) == [*CONTRACT, "prediction"]
    for finding in told["findings"]:
        order = "rule code title category severity confidence share share_of speedup message"
        assert list(finding)[:10] == order.split()
        assert list(finding)[-1] == "fingerprint"


@samples
def test_json_keeps_every_finding_whole(name):
    told = json.loads(render(SAMPLES[name], "json"))
    assert [f["rule"] for f in told["findings"]] == [f.rule for f in SAMPLES[name].findings]
    assert [f["message"] for f in told["findings"]] == [f.message for f in SAMPLES[name].findings]
    assert told["verdict"] == SAMPLES[name].verdict


PREDICTION = {"method": "graph", "recorded_ms": 21.4, "replayed_ms": 21.3, "withheld": None, "together": None}


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_all_fixes_together_are_told_and_so_is_a_prediction_that_is_withheld(form):
    both = {"rules": ["a", "b"], "low": 1.5, "high": 3.0}
    told = report(FINDING, prediction={**PREDICTION, "together": both})
    assert "ll fixes together: 1.5x to 3.0x faster (a, b)" in render(told, form)
    assert json.loads(render(told, "json"))["prediction"]["together"] == both
    jsonschema.validate(json.loads(render(told, "json")), schema())
    late = report(FINDING, prediction={**PREDICTION, "withheld": "the replayed step misses the recorded one by 19 %"})
    assert "o savings are predicted" in render(late, form)
    assert "together" not in render(report(FINDING, prediction=PREDICTION), form)


def test_json_rounds_to_a_nanosecond_and_writes_unknown_numbers_as_null():
    told = as_dict(report(replace(FINDING, evidence=({"op": "x", "ms_per_step": 1 / 3, "b": -1e-9, "a": float("inf")},))))
    assert told["findings"][0]["evidence"] == [{"op": "x", "ms_per_step": 0.333333, "a": None, "b": 0.0}]
    assert list(told["findings"][0]["evidence"][0]) == ["op", "ms_per_step", "a", "b"]
    assert list(told["run"]["versions"]) == ["python", "torch"]
    assert list(told["findings"][0]["where"][0]) == ["file", "line", "function"]


def test_schema_refuses_what_the_contract_refuses():
    good = as_dict(report(FINDING))
    for change in ({"schema": "tracediag.report/2"}, {"device": {}}, {"findings": [{"rule": "x"}]}, {"verdict": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, **change}, schema())
    jsonschema.validate({**good, "a key of a later version": 1}, schema())


@samples
@pytest.mark.parametrize("width", [60, 80, 100])
def test_text_fits_the_terminal(name, width):
    told = text.render(SAMPLES[name], width=width).splitlines()
    assert max(map(len, told)) <= width


def test_text_says_what_a_person_needs():
    told = render(SAMPLES["one"], "text")
    for wanted in (
        "Dense gradient of an embedding table: most of the step.",
        "HIGH",
        "62 % of the step",
        "2.1x to 3.4x faster",
        "train.py:31 in main",
        "aten::embedding_dense_backward",
        "1024x64, 1024",
        "emb = nn.Embedding(V, D, sparse=True)",
        "changes the training maths: moments",
        "opt-step-dominant",
        "the trace holds 3 steps (shares are rough)",
        "1 of 22 rules do not apply",
    ):
        assert wanted in told
    assert told.index("most of the step") < told.index("10 steps") < told.index("HIGH") < told.index("the trace holds")


def test_text_gives_a_quiet_finding_one_line():
    told = [row for row in render(report(QUIET), "text").splitlines() if "Float64" in row]
    assert told == ["low       Float64 arithmetic: 2 % of the step, float64"]


def test_text_gives_the_advice_of_a_rule_once():
    told = render(report(FINDING, FINDING), "text")
    assert told.count("HIGH") == told.count("Evidence") == 2
    assert told.count("moments of untouched rows") == told.count("as above") == 1


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_rule_that_broke_is_named(form):
    told = render(report(skipped=({"rule": "float64", "reason": "failed: took longer than 20 s"},)), form)
    assert "float64 failed: took longer than 20 s" in told


def test_text_is_plain_unless_colour_is_asked_for():
    assert "\x1b" not in render(SAMPLES["one"], "text")
    assert "\x1b[1;31mHIGH" in text.render(SAMPLES["one"], color=True)


def test_hostile_names_are_shown_and_steer_nothing():
    told = text.render(SAMPLES["hostile"], color=True)
    assert "\\x1b[31mred" in told
    assert "\x1b[31mred" not in told
    assert "[bold]x[/bold]" in told
    marked = render(SAMPLES["hostile"], "markdown")
    assert "\n````python\nprint('```')" in marked


@pytest.mark.parametrize(
    ("predicted", "words"),
    [
        (None, "no honest prediction"),
        (Speedup(1.5, None), "at least 1.5x faster"),
        (Speedup(1.5, 2.5), "1.5x to 2.5x faster"),
        (Speedup(1.3, 1.304), "about 1.3x faster"),
        (Speedup(1.0, 1.02), "up to 1.02x faster"),
        (Speedup(12.4, 30.0), "12x to 30x faster"),
    ],
)
def test_speedups_in_words(predicted, words):
    assert phrases.speedup(predicted) == words


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, "?"), (0.0, "0 ms"), (0.0123, "12.3 µs"), (3.456, "3.46 ms"), (214.4, "214 ms"), (4321.0, "4.32 s"), (6e6, "6,000.0 s")],
)
def test_durations_in_words(ms, words):
    assert phrases.duration(ms) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[[256,4],[4,8],[]]", "256x4, 4x8"),
        ([[2, 3]], "2x3"),
        ([7], "7"),
        (None, ""),
        ("?x", "?x"),
        ("[null,[1]]", "1"),
        ("[[[3,4],[5],[]],[2]]", "(3x4, 5), 2"),
        ("[[4],[[],[]]]", "4"),
    ],
)
def test_shapes_in_words(value, words):
    assert phrases.shapes(value) == words


def test_a_report_renders_itself():
    one = SAMPLES["one"]
    assert one.to_json() == render(one, "json")
    assert one.to_markdown() == one._repr_markdown_() == render(one, "markdown")
    assert str(one) == render(one, "text")


def test_unknown_format_is_a_key_error():
    with pytest.raises(KeyError):
        renderer("pdf")


def test_a_trace_shows_itself_in_a_notebook():
    from tracediag.trace import Trace

    ops = [
        {"name": name, "kind": kind, "role": "op", "start_ns": 10 * i, "dur_ns": 5, "place": "host"}
        for i, (name, kind) in enumerate([("aten::mm", "matmul"), ("<b>|`x` @octocat", None)])
    ]
    told = Trace.from_rows({"ops": ops})._repr_markdown_()
    assert told.startswith("**Trace**: 2 rows in `ops`")
    assert "| `aten::mm` | `matmul` | host | 1 |" in told
    assert "<b>" not in told
    assert "@octocat" not in told
