"""The report as SARIF 2.1.0, so that GitHub code scanning shows a finding on the line of the training script.

Written after the OASIS standard "Static Analysis Results Interchange Format Version 2.1.0" and what GitHub reads of it.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracediag.findings import Place
from tracediag.reports import phrases
from tracediag.reports.gfm import fenced, link, prose

if TYPE_CHECKING:
    from tracediag.findings import Finding, Report

__all__ = ["ROOT", "SCHEMA", "render"]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""What locations are relative to: the root of the repository."""
LEVELS = {"high": "error", "medium": "warning", "low": "note", "info": "note", "error": "error", "warning": "warning"}
PRECISION = {"certain": "very-high", "likely": "high", "possible": "medium"}
TEXT = 4000
PLACES = 20
"""Further lines of a finding that are named."""


def render(report: Report) -> str:
    """The report as SARIF text, ASCII, one run; places are taken to be relative to the root of the repository (see `repository`)."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    return json.dumps(log, indent=2, ensure_ascii=True) + "\n"


def _run(report: Report) -> dict[str, Any]:
    rules = {finding.rule: finding for finding in reversed(report.findings)}
    order = sorted(rules)
    subject = "/".join(str(report.subject.get(key) or "unknown") for key in ("framework", "script"))
    return {
        "tool": {
            "driver": {
                "name": report.tool["name"],
                "version": report.tool["version"],
                "semanticVersion": report.tool["version"],
                "rules": [_rule(rules[name]) for name in order],
            }
        },
        "automationDetails": {"id": f"{report.tool['name']}/{phrases.shorten(subject, 200)}/"},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [_notification(note) for note in report.health]}],
        "results": [_result(finding, order.index(finding.rule), report) for finding in report.findings],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    """What is true of every finding of a rule; the words of its first finding stand for it."""
    web = next((url for url in finding.references if re.match(r"https?://[^\s<>]+\Z", url)), None)
    return {
        "id": finding.rule,
        "name": finding.code,
        "shortDescription": {"text": _sentence(finding.title)},
        "fullDescription": {"text": _sentence(finding.why)},
        "help": {"text": _help(finding), "markdown": _help_markdown(finding)},
        **({"helpUri": web} if web else {}),
        "properties": {"tags": ["performance", finding.category], "precision": PRECISION.get(finding.confidence, "medium")},
    }


def _help(finding: Finding) -> str:
    parts = [phrases.clip(finding.why, TEXT)]
    for fix in finding.fix:
        named = "" if fix.framework == "any" else f"{fix.framework}: "
        parts += [named + phrases.clip(fix.text, TEXT), *([phrases.clean(fix.code[:TEXT].strip("\n"))] if fix.code else [])]
    if finding.changes_training:
        parts.append(f"Changes the training maths: {phrases.clip(finding.changes_training, TEXT)}")
    return "\n\n".join(parts)


def _help_markdown(finding: Finding) -> str:
    parts = [prose(phrases.clip(finding.why, TEXT))]
    for fix in finding.fix:
        named = "" if fix.framework == "any" else f" ({fix.framework})"
        parts += [f"**Fix{named}.** {prose(phrases.clip(fix.text, TEXT))}", *([fenced(fix.code[:TEXT], "python")] if fix.code else [])]
    if finding.changes_training:
        parts.append(f"**Careful:** changes the training maths: {prose(phrases.clip(finding.changes_training, TEXT))}")
    return "\n\n".join([*parts, *map(link, finding.references)])


def _result(finding: Finding, index: int, report: Report) -> dict[str, Any]:
    facts = [f"{phrases.percent(finding.share)} of {finding.share_of}", phrases.speedup(finding.speedup), phrases.confidence(finding)]
    told = f"{_sentence(finding.title)} {_sentence(finding.message)} {'; '.join(map(phrases.line, facts))}."
    digest = sha256(finding.fingerprint.encode("utf-8", "backslashreplace")).hexdigest()
    places = finding.where or _script(report)
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "kind": "fail",
        "level": LEVELS[finding.severity],
        "message": {"text": _plain(phrases.clip(told, TEXT))},
        "locations": [_location(spot) for spot in places[:1]],
        "relatedLocations": [_location(spot) | {"id": i + 1} for i, spot in enumerate(places[1 : PLACES + 1])],
        # the second is what GitHub knows an alert by: with it the alert stays the same one when lines move
        "partialFingerprints": {"tracediag/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"},
        "rank": round(min(max(finding.share, 0.0), 1.0) * 100, 4),
        "properties": {"share": round(finding.share, 6), "confidence": finding.confidence},
    }


def _script(report: Report) -> tuple[Place, ...]:
    """Where a finding is shown that has no line: GitHub takes no result without a place."""
    name = report.subject.get("script") or next((row["path"] for row in report.inputs), None) or "unknown"
    return (Place(str(name), 1),)


def _location(spot: Place) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(spot.file), "uriBaseId": ROOT}, "region": {"startLine": max(spot.line, 1)}}
    named = {"logicalLocations": [{"name": phrases.shorten(spot.function, 200), "kind": "function"}]} if spot.function else {}
    return {"physicalLocation": place, **named}


def _uri(file: str) -> str:
    """A relative reference of the RFC 3986: what is absolute, or climbs, loses its head."""
    parts = [
        part for part in re.split(r"[/\\]+", phrases.line(file)) if part not in ("", ".", "..") and not re.fullmatch("[A-Za-z]:", part)
    ]
    return quote("/".join(parts) or "unknown", safe="/")


def _notification(note: dict[str, Any]) -> dict[str, Any]:
    told = " ".join(_sentence(note[key]) for key in ("message", "effect") if note.get(key))
    return {"level": LEVELS.get(note["level"], "note"), "message": {"text": _plain(told)}, "descriptor": {"id": note["id"]}}


def _sentence(text: object) -> str:
    told = phrases.clip(text, TEXT)
    return told if told.endswith((".", "!", "?")) else f"{told}."


def _plain(text: str) -> str:
    """Text of a message: brackets would be links to places, braces placeholders (sections 3.11.5 and 3.11.6)."""
    return re.sub(r"([\\\[\]])", r"\\\1", text).replace("{", "{{").replace("}", "}}")
