"""The recorded fixtures: the cause comes first on the slow side, and nothing is said of it on the fast side or on healthy scripts."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tracediag

if TYPE_CHECKING:
    from tracediag.findings import Finding

FIXTURES = Path(__file__).parent.parent / "fixtures"
RULES = {path.stem for path in (FIXTURES.parent / "rules").glob("*.yaml")}
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/expect.json"))
KEYS = {"report", "top", "never", "framework", "needs_gpu", "note"}
MOST_BYTES = 200_000
SIDES = ("slow", "fast", "healthy")


def expected(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FIXTURES / name / "expect.json").read_text())
    return facts


PAIRS = [name for name in NAMES if not expected(name).get("healthy")]
HEALTHY = [name for name in NAMES if expected(name).get("healthy")]
RECORDED = sorted(path for name in NAMES for path in (FIXTURES / name).iterdir() if path.is_dir() and path.name in SIDES)


@functools.cache
def findings_of(name: str, side: str) -> tuple[Finding, ...]:
    """All findings of one side."""
    folder = FIXTURES / name / side
    if not folder.exists():
        pytest.skip("not recorded")
    return tuple(tracediag.explain(tracediag.load(str(folder))).findings)


def loud(name: str, side: str) -> tuple[Finding, ...]:
    """Findings at medium or above of one side."""
    return tuple(finding for finding in findings_of(name, side) if finding.severity in ("high", "medium"))


@pytest.mark.parametrize("name", NAMES)
def test_expectation_is_complete(name: str) -> None:
    facts = expected(name)
    assert set(facts) >= KEYS
    assert facts["framework"] in ("torch", "tensorflow")
    assert bool(facts["top"]) != bool(facts.get("healthy"))
    assert not set(facts["top"]) & set(facts["never"])


@pytest.mark.parametrize("name", NAMES)
def test_expected_rules_exist(name: str) -> None:
    facts = expected(name)
    assert set(facts["top"]) | set(facts["never"]) | set(facts.get("said", [])) <= RULES


@pytest.mark.parametrize("name", NAMES)
def test_every_side_is_recorded(name: str) -> None:
    sides = ("healthy",) if name in HEALTHY else ("slow", "fast")
    assert [side for side in sides if not (FIXTURES / name / side).is_dir()] == []


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_record_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= MOST_BYTES


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_record_names_no_machine(folder: Path) -> None:
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert not re.search(rb"/(home|root|Users|tmp)/", data)
        assert set(re.findall(rb'"host_name": "([^"]*)"', data)) <= {b"host"}


@pytest.mark.parametrize("name", PAIRS)
def test_cause_comes_first_on_the_slow_side(name: str) -> None:
    findings = loud(name, "slow")
    facts = expected(name)
    assert findings, "nothing at medium or above"
    assert findings[0].rule in facts["top"]
    assert {finding.rule for finding in findings} & set(facts["never"]) == set()


@pytest.mark.parametrize("name", [name for name in PAIRS if "lines" in expected(name)])
def test_cause_is_named_where_it_is_made(name: str) -> None:
    first = {finding.rule: f"{finding.where[0].file}:{finding.where[0].line}" for finding in loud(name, "slow") if finding.where}
    lines = expected(name)["lines"]
    assert {rule: first.get(rule) for rule in lines} == lines


@pytest.mark.parametrize("name", [name for name in PAIRS if "said" in expected(name)])
def test_quiet_rules_speak_on_the_slow_side_only(name: str) -> None:
    said = set(expected(name)["said"])
    assert said <= {finding.rule for finding in findings_of(name, "slow")}
    assert not said & {finding.rule for finding in findings_of(name, "fast")}


@pytest.mark.parametrize("name", PAIRS)
def test_cause_is_gone_on_the_fast_side(name: str) -> None:
    assert {finding.rule for finding in loud(name, "fast")} & set(expected(name)["top"]) == set()


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_healthy_scripts(name: str) -> None:
    assert [finding.rule for finding in loud(name, "healthy")] == []


def test_synthetic_trace_is_what_its_script_builds() -> None:
    folder = FIXTURES / "report-002-2019-host-pinned"
    spec = importlib.util.spec_from_file_location("build", folder / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for side, pinned in (("slow", True), ("fast", False)):
        assert module.build(pinned) == (folder / side / "plugins/profile/synthetic/synthetic.xplane.pb").read_bytes()
    assert expected(folder.name)["synthetic"] is True
