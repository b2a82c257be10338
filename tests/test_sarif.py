from __future__ import annotations

import json
from dataclasses import replace

import pytest
from report_samples import FIFTY, FINDING, QUIET, SAMPLES, report

from tracediag.findings import Place
from tracediag.reports import render
from tracediag.reports.sarif import ROOT
from tracediag.repository import rooted


def run_of(told) -> dict:
    log = json.loads(render(told, "sarif"))
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    return only


def test_a_finding_stands_on_its_line_with_its_level():
    (result,) = run_of(report(FINDING))["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": ROOT},
        "region": {"startLine": 31},
    }
    assert result["locations"][0]["logicalLocations"] == [{"name": "main", "kind": "function"}]
    assert [place["physicalLocation"]["artifactLocation"]["uri"] for place in result["relatedLocations"]] == ["model.py"]
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("Dense gradient of an embedding table. Every step fills")
    assert "62 % of the step; 2.1x to 3.4x faster; likely." in result["message"]["text"]


def test_levels_follow_the_severity():
    levels = [result["level"] for result in run_of(FIFTY)["results"]]
    assert levels == ["error"] * 10 + ["warning"] * 10 + ["note"] * 30


def test_each_rule_is_described_once():
    run = run_of(report(QUIET, FINDING, replace(FINDING, fingerprint="other")))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["emb-dense-grad-torch", "float64"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [result["ruleId"] for result in run["results"]]
    assert rules[0]["helpUri"] == FINDING.references[0]
    assert "nn.Embedding(V, D, sparse=True)" in rules[0]["help"]["text"]
    assert "```python" in rules[0]["help"]["markdown"]
    assert rules[0]["properties"] == {"tags": ["performance", "embedding"], "precision": "high"}


def test_fingerprints_are_those_of_the_findings_and_not_of_the_lines():
    def prints(finding):
        return run_of(report(finding))["results"][0]["partialFingerprints"]

    assert prints(FINDING) == prints(replace(FINDING, where=(Place("train.py", 99),), share=0.1))
    assert prints(FINDING)["tracediag/v1"] != prints(replace(FINDING, fingerprint="other"))["tracediag/v1"]


def test_a_finding_without_a_line_is_shown_at_the_head_of_the_script():
    (result,) = run_of(report(QUIET))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"
    (result,) = run_of(report(QUIET, subject={"script": None, "framework": None, "kind": "unknown"}))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "rank0.pt.trace.json.gz"


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/c#d.py", "a%20b/c%23d.py"),
        ("/etc/passwd", "etc/passwd"),
        ("../../x.py", "x.py"),
        ("C:\\code\\t.py", "code/t.py"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("", "unknown"),
    ],
)
def test_places_are_relative_references(file, uri):
    (result,) = run_of(report(replace(FINDING, where=(Place(file, 1),))))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_problems_of_the_trace_are_notifications():
    run = run_of(report())
    assert run["results"] == []
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note == {
        "level": "warning",
        "message": {"text": "the trace holds 3 steps. shares are rough."},
        "descriptor": {"id": "short-trace"},
    }


def test_hostile_text_makes_neither_links_nor_placeholders():
    (result,) = run_of(SAMPLES["hostile"])["results"]
    told = result["message"]["text"]
    assert "\\[l\\](javascript" in told
    assert "{{0}}" in told
    assert all(place["physicalLocation"]["region"]["startLine"] >= 1 for place in result["locations"] + result["relatedLocations"])


def test_files_are_named_from_the_root_of_the_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    below = tmp_path / "jobs" / "small"
    below.mkdir(parents=True)
    (below / "train.py").touch()
    (tmp_path / "model.py").touch()
    absolute = replace(FINDING, where=(Place("train.py", 3), Place("model.py", 4), Place(str(below / "train.py"), 5), Place("gone.py", 6)))
    told = rooted(report(absolute), below)
    assert [spot.file for spot in told.findings[0].where] == ["jobs/small/train.py", "model.py", "jobs/small/train.py", "gone.py"]
    assert told.subject["script"] == "jobs/small/train.py"
    outside = replace(FINDING, where=(Place("/etc/hostname", 1), Place("a\0b", 1), Place("x" * 5000, 1), Place("jobs\\small\\train.py", 1)))
    kept = [spot.file for spot in rooted(report(outside), below).findings[0].where]
    assert kept == ["/etc/hostname", "a\0b", "x" * 5000, "jobs/small/train.py"]


def test_outside_of_a_repository_names_stay(tmp_path):
    told = report(FINDING)
    assert rooted(told, tmp_path) == told
