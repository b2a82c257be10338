from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest
from report_samples import FINDING, QUIET

from tracediag import summary
from tracediag.engine import EngineResult
from tracediag.findings import Speedup
from tracediag.reports import FORMATS, render
from tracediag.reports.json import as_dict, schema
from tracediag.trace import Trace

PARTS = (
    {"phase": "forward", "host_ms": 1.0, "device_ms": 0.0, "idle_ms": 0.0, "share": 0.25},
    {"phase": "other", "host_ms": 3.0, "device_ms": 0.0, "idle_ms": 0.0, "share": 0.75},
    {"phase": "comm", "host_ms": 0.0, "device_ms": 0.0, "idle_ms": 0.0, "share": 0.0},
)
OPS = [
    {"name": "aten::mm", "framework": "torch", "start_ns": 0, "dur_ns": 1000, "phase": "forward", "step": 0},
    {"name": "aten::mul", "framework": "torch", "start_ns": 1000, "dur_ns": 500, "phase": "optimizer", "step": 0},
]
STEPS = [{"step": 0, "start_ns": 0, "end_ns": 2000, "dur_ns": 2000, "steps": 1, "found_by": "marker"}]


@pytest.mark.parametrize(
    ("findings", "rule", "text"),
    [
        ((), None, "No cause above 5 % of the step was found; the time goes to other 75 %, forward 25 %."),
        ((QUIET,), None, "No cause above 5 % of the step was found; the time goes to other 75 %, forward 25 %."),
        (
            (QUIET, FINDING),
            FINDING.rule,
            "Dense gradient of an embedding table (train.py:31): 62 % of the step; without it a step should be 2.1 to 3.4 times faster.",
        ),
        ((replace(FINDING, speedup=None, where=()),), FINDING.rule, "Dense gradient of an embedding table: 62 % of the step."),
        (
            (replace(FINDING, speedup=Speedup(1.5, None), where=()),),
            FINDING.rule,
            "Dense gradient of an embedding table: 62 % of the step; without it a step should be at least 1.5 times faster.",
        ),
    ],
)
def test_verdict_is_one_sentence(findings, rule, text):
    assert summary.verdict(findings, PARTS) == {"rule": rule, "text": text}


@pytest.mark.parametrize("steps", [STEPS, []])
def test_a_summary_obeys_the_schema_and_renders(steps):
    trace = Trace.from_rows({"ops": OPS, "steps": steps})
    report = summary.summarize(trace, EngineResult((FINDING,), ({"rule": "x", "reason": "needs params"},)), 3)
    told = as_dict(report)
    jsonschema.validate(told, schema())
    assert sum(round(part["share"] * 1e6) for part in told["breakdown"]) == 1_000_000
    assert told["subject"]["kind"] == ("training" if steps else "unknown")
    assert all(render(report, name) for name in FORMATS)
