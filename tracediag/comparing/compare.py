"""Put the comparison of two sides together: same work, the steps, where the difference goes, findings, settings, verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracediag._version import __version__
from tracediag.comparing.difference import attributed, difference_of
from tracediag.comparing.findingdiff import findings_of, fixes
from tracediag.comparing.flops import HEAVY
from tracediag.comparing.matching import match
from tracediag.comparing.noise import apart, judge
from tracediag.comparing.opdiff import op_diff
from tracediag.comparing.pairrulefiles import load_pair_rules
from tracediag.comparing.pairrules import run_pair_rules
from tracediag.comparing.samework import per_sample, same_work
from tracediag.comparing.settingsdiff import settings_of, settings_that_differ
from tracediag.comparing.side import Run, Side, both_sides
from tracediag.comparing.steptime import apportion
from tracediag.comparing.verdict import SAME_OPS, Evidence, verdict
from tracediag.comparing.words import part_name, shapes_text
from tracediag.comparison import Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracediag.comparing.pairrulefiles import PairRule

__all__ = ["compare_runs"]

CLEAR = 1.1
"""With one run a side step times are apart from this ratio on, if the steps of the two hardly meet and a version, device or setting
differs, which can be the reason; else it may be what the machine did besides."""
MS = 1e6
COMPILE_FLAGS = ("torch.compile_used", "tf.optimizer.jit", "env.TF_XLA_FLAGS")
OFF = ("", "false", "False", "0", "null")
Row = dict[str, Any]


def compare_runs(a: Sequence[Run], b: Sequence[Run], names: tuple[str, str], rules: Sequence[PairRule] | None = None) -> Comparison:
    """Compare the runs of two sides, at least one each. names: what to call the sides; rules: about pairs, default: the bundled ones."""
    one, two = both_sides(a, b)
    work = same_work(one.work, two.work, (_in_products(one), _in_products(two)))
    sample = per_sample(one.work, two.work)
    samples = (one.work.batch or 1, two.work.batch or 1) if sample else (1, 1)
    one, two = (_each_sample(side, count) if sample else side for side, count in zip((one, two), samples, strict=True))
    settings = settings_that_differ(one, two)
    units = match(one.groups, two.groups, samples)
    ops = op_diff(one, two, units)
    found = findings_of(one, two)
    rows = tuple(_named(row, one, two) for row in difference_of(one, two, units, found))
    steps = all(side.report.steps["count"] for side in (one, two))
    step = _step(one, two, "sample" if sample else "step" if steps else "recording", rows)
    clear = _clear(one, two, step, settings)
    pair = run_pair_rules(load_pair_rules() if rules is None else rules, _tables(one, two, work, step, settings, clear))
    changed = bool(settings) or ops.changed > SAME_OPS or any(row["warning"] for row in work.values())
    identical = not changed and _identical(one, two)
    fixed = fixes(found, step["ratio"], changed, step["same_framework"])
    seen = Evidence(step, work, found, fixed, pair, rows, ops.changed, identical, clear, _device(one, two), settings)
    return Comparison(
        tool={"name": "tracediag", "version": __version__}, a=_head(one, names[0]), b=_head(two, names[1]), same_work=work, step=step,
        difference=rows, ops=ops.told, findings=found, fixes=fixed, settings=settings, rules=pair,
        verdict=verdict(seen),
    )  # fmt: skip


def _each_sample(side: Side, samples: int) -> Side:
    """The side with times a sample instead of a step; counts stay those of a step."""
    whole = round(side.step.ns / samples)
    keys = list(side.parts)
    parts = dict(zip(keys, apportion([side.parts[key] for key in keys], whole), strict=True))
    step = replace(side.step, ns=whole, usual=round(side.step.usual / samples), samples=side.step.samples // samples)
    groups = tuple(replace(group, ns=group.ns / samples) for group in side.groups)
    return replace(side, parts=parts, step=step, runs=tuple(round(ns / samples) for ns in side.runs), groups=groups)


def _head(side: Side, name: str) -> Row:
    report = side.report
    return {
        "name": name, "runs": [ns / MS for ns in side.runs], "inputs": [dict(row) for row in report.inputs], "run": report.run,
        "subject": report.subject, "steps": report.steps, "device": report.device, "health": [dict(row) for row in report.health],
        "verdict": report.verdict, "only_report": side.trace is None,
    }  # fmt: skip


def _named(row: Row, a: Side, b: Side) -> Row:
    device = any(side.report.device is not None for side in (a, b))
    return {**row, "what": part_name(row["phase"], row["kind"], row["owner"], device)}


def _step(a: Side, b: Side, per: str, rows: Sequence[Row]) -> Row:
    ratio = a.step.ns / b.step.ns if a.step.ns and b.step.ns else None
    return {
        "a_ms": a.step.ns / MS, "b_ms": b.step.ns / MS, "ratio": ratio, "delta_ms": (a.step.ns - b.step.ns) / MS, "per": per,
        "basis": a.step.basis if a.step.basis == b.step.basis else "told", "same_framework": a.frameworks == b.frameworks,
        "attributed": attributed(rows), "noise": judge(a, b),
        "a": _side_step(a, per), "b": _side_step(b, per),
    }  # fmt: skip


def _side_step(side: Side, per: str) -> Row:
    """How the step time was found: of what, count of steps, usual ms, recorded ms, the factor between them, long steps left out."""
    of = per if per == "sample" else "step" if side.report.steps["count"] else "recording"
    return {
        "per": of, "count": side.step.count, "usual_ms": side.step.usual / MS,
        "recorded_ms": None if side.recorded_ns is None else side.recorded_ns / MS, "scale": side.scale,
        "left_out_ms": [ns / MS for ns in side.step.left_out],
    }  # fmt: skip


def _in_products(side: Side) -> float:
    """Part of the step in operations that are counted."""
    return sum(ns for part, ns in side.parts.items() if part.kind in HEAVY) / side.step.ns if side.step.ns else 0.0


def _identical(a: Side, b: Side) -> bool:
    """Whether both sides are one recording."""
    same = a.step.ns == b.step.ns and a.parts == b.parts and np.array_equal(a.step.samples, b.step.samples)
    return bool(same and a.report.findings == b.report.findings)


def _clear(a: Side, b: Side, step: Row, settings: Sequence[Row]) -> bool:
    if step["noise"]["known"]:
        return bool(step["noise"]["change"] in ("slower", "faster"))
    factor = max(step["ratio"], 1 / step["ratio"]) if step["ratio"] else 1.0
    return bool(settings) and factor >= CLEAR and apart(a, b)


def _device(a: Side, b: Side) -> tuple[float, float] | None:
    """Device work of a step that nothing covers, ms, where a device worked on both sides."""
    if not (a.trace and b.trace and a.trace.has_device and b.trace.has_device):
        return None
    one, two = (sum(ns for part, ns in side.parts.items() if part.owner is None) / MS for side in (a, b))
    return one, two


def _tables(a: Side, b: Side, work: dict[str, Row], step: Row, settings: Sequence[Row], clear: bool) -> dict[str, list[Row]]:
    """What rules about pairs ask (see `pairrules`)."""
    sides = [_side_row(side, name) for side, name in ((a, "A"), (b, "B"))]
    versions = [_version(str(row["version"])) for row in sides]
    for row, mine, other in zip(sides, versions, versions[::-1], strict=True):
        row["newer"] = bool(mine and other and mine > other)
    scripts = [side.report.subject.get("script") for side in (a, b)]
    same = scripts[0] is not None and scripts[0] == scripts[1]
    usual = a.step.usual / b.step.usual if b.step.usual else None
    products = [{**row, "side": row["side"].upper(), "shapes": shapes_text(row["shapes"])} for row in work["flops"]["products"]]
    return {
        "work": [
            {
                "quantity": name, "differs": row["warning"] is not None, **{key: row[key] for key in ("a", "b", "ratio", "per")},
                "time_share": max(row.get("time_share", {"a": 1.0}).values()),
            }
            for name, row in work.items() if name != "dtype"
        ],
        "products": products,
        "step": [{**step, "usual_ratio": usual, "clear": clear, "same_script": same}],
        "sides": sides,
        "settings": [dict(row) for row in settings],
    }  # fmt: skip


def _side_row(side: Side, name: str) -> Row:
    settings = settings_of(side)
    framework = "+".join(side.frameworks) or None
    compiled = any(settings.get(flag, "") not in OFF for flag in COMPILE_FLAGS) or any(
        value == "True" for key, value in settings.items() if key.endswith(": jit_compile")
    )
    return {
        "side": name, "framework": framework, "script": side.report.subject.get("script"),
        "version": settings.get(f"versions.{side.frameworks[0]}") if side.frameworks else None, "compiled": compiled,
        "frameworks": len(side.frameworks),
    }  # fmt: skip


def _version(text: str) -> tuple[int, ...]:
    """'2.13.0+cpu' -> (2, 13, 0); empty for what is no version."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])) if re.match(r"\d+\.", text) else ()
