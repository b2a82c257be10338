"""SARIF held against the published schema and GitHub's rules by the validator of the format's authors."""

from __future__ import annotations

import json

import pytest
from node_tools import needs_node, sarif_problems
from report_samples import SAMPLES

from tracediag.reports import render

pytestmark = pytest.mark.node
needs_node()

KNOWN = {"SARIF2005"}
"""Wants the address of a page about the tool, which there is none of."""


def test_every_report_keeps_to_the_schema_and_to_what_github_takes(tmp_path):
    for name, told in SAMPLES.items():
        (tmp_path / f"{name}.sarif").write_text(render(told, "sarif"))
    problems = sarif_problems(tmp_path)
    assert [row["message"] for row in problems if row["ruleId"] not in KNOWN] == []
    assert len(problems) == len(SAMPLES)  # it has looked at each of them


def test_the_validator_finds_faults(tmp_path):
    log = json.loads(render(SAMPLES["one"], "sarif"))
    (result,) = log["runs"][0]["results"]
    result["no such key"] = 1
    result["locations"] = []
    (tmp_path / "bad.sarif").write_text(json.dumps(log))
    assert {"JSON1005", "GH1015"} & {row["ruleId"] for row in sarif_problems(tmp_path)}
