"""The words that the comparisons for people share: heads, step times, work, operations, fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracediag.reports import phrases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracediag.comparison import Comparison

__all__ = ["WORK", "amount", "basis", "fixed", "head", "other_findings", "ratio", "shown", "signed", "smaller", "step", "work_rows"]

WORK = {
    "batch": "samples a step", "flops": "operations", "forward_flops": "of the forward pass", "parameters": "parameters",
    "trainable": "trainable", "gradients": "with a gradient", "updated": "updated by the optimizer", "dtype": "dtype",
}  # fmt: skip
"""Quantities in the order that people read them; the others are in JSON."""
LEAST_SHARE = 0.02
"""Parts below this share of the largest one are not shown."""


def head(side: Mapping[str, Any]) -> str:
    """'slow · train.py · torch 2.13.0 · NVIDIA A100 · 3 runs'."""
    run = side["run"] or {}
    versions = run.get("versions") or {}
    framework = str(side["subject"].get("framework") or run.get("framework") or "")
    names = [f"{name} {versions[name]}" if versions.get(name) else name for name in framework.split("+") if name]
    runs = len(side["runs"])
    count = [f"median of {runs} runs"] if runs > 1 else []
    parts = [side["name"], side["subject"].get("script"), *names, *phrases.devices(run), *count]
    return " · ".join(phrases.line(part) for part in dict.fromkeys(part for part in parts if part))


def step(comparison: Comparison, name: str) -> str:
    """'70.1 ms a step (usual step 30 ms), noise ± 1 ms'."""
    told, side = comparison.step, comparison.step[name]
    text = f"{phrases.duration(told[f'{name}_ms'])} a {side['per']}"
    if side["count"] and side["per"] != "recording":
        text += f", from {side['count']} {'step' if side['count'] == 1 else 'steps'}"
    noise = told["noise"][f"{name}_mad_ms"]
    if noise is not None:
        text += f", ± {phrases.duration(noise)} between runs"
    if side["left_out_ms"]:
        longest = phrases.duration(side["left_out_ms"][0])
        count = len(side["left_out_ms"])
        told_long = f"a far longer step ({longest})" if count == 1 else f"{count} far longer steps (up to {longest})"
        text += f"; {told_long} of unknown cause left out"
    return text


def basis(comparison: Comparison) -> str:
    """How the step times were measured, and whether the noise is known."""
    told = comparison.step
    how = {
        "unprofiled": "mean step without the profiler; recorded steps show how it divides", "recorded": "recorded steps, profiler included",
        "told": "as the reports tell them",
    }[told["basis"]]  # fmt: skip
    noise = told["noise"]
    runs = "" if noise["known"] else "; one run a side: the noise between runs is unknown"
    return f"{how}{runs}"


def ratio(value: float | None) -> str:
    """'1.02x', '16x'; '' for none."""
    if value is None:
        return ""
    if value >= 0.995 and value < 1.005:
        return "1"
    return (
        f"{value:.2f}"
        if 0.1 <= value < 1.1
        else f"{value:.1f}"
        if 1.1 <= value < 9.95
        else f"{value:.3g}"
        if value < 10
        else f"{value:.0f}"
    )


def amount(value: Any) -> str:
    """A quantity of work: text, or a number with a unit prefix."""
    if value is None:
        return "?"
    if isinstance(value, str):
        return phrases.line(value)
    for limit, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return phrases.number(value)


def signed(ms: float) -> str:
    """A difference with its sign."""
    return ("+" if ms > 0 else "-" if ms < 0 else "") + phrases.duration(abs(ms))


def work_rows(comparison: Comparison) -> Iterator[tuple[str, str, str, str, bool]]:
    """(quantity, a, b, ratio, differs) of what either side tells."""
    for name, title in WORK.items():
        row = comparison.same_work[name]
        if row["a"] is None and row["b"] is None:
            continue
        per = f" a {row['per']}" if row["per"] and name == "flops" else ""
        yield title + per, amount(row["a"]), amount(row["b"]), ratio(row["ratio"]), row["warning"] is not None


def shown(comparison: Comparison, most: int) -> list[dict[str, Any]]:
    """The parts worth a line: the largest first, no more than `most`."""
    rows = list(comparison.difference)
    limit = LEAST_SHARE * max((abs(row["delta_ms"]) for row in rows), default=0.0)
    return [row for row in rows[:most] if abs(row["delta_ms"]) >= limit and row["delta_ms"]]


def smaller(comparison: Comparison, rows: Sequence[Mapping[str, Any]]) -> tuple[int, str, str, str]:
    """The parts beyond those shown: how many, and their times in A, in B, and the difference."""
    rest = [sum(row[key] for row in comparison.difference) - sum(row[key] for row in rows) for key in ("a_ms", "b_ms", "delta_ms")]
    one, two, delta = (round(ms, 6) + 0.0 for ms in rest)
    return len(comparison.difference) - len(rows), phrases.duration(one), phrases.duration(two), signed(delta)


def fixed(row: Mapping[str, Any], same_framework: bool) -> str:
    """One finding that is gone or new: what was predicted and what came. Between two frameworks nothing was fixed: where it is found."""
    gone = row["state"] == "gone"
    if not same_framework:
        return f"“{phrases.line(row['title'])}” is found in {'A' if gone else 'B'} only ({row['rule']})"
    text = f"“{phrases.line(row['title'])}” is {'gone in B' if gone else 'new in B'} ({row['rule']})"
    predicted = row["predicted"]
    if predicted is not None:
        high = predicted["high"]
        low = phrases.ratio(predicted["low"])
        told = f"at least {low}" if high is None else low if low == phrases.ratio(high) else f"{low} to {phrases.ratio(high)}"
        text += f": predicted {told} times{'' if gone else ' slower'}"
    measured = row["measured"]
    if measured is not None:
        text += f"{',' if predicted else ':'} measured {ratio(measured)} times"
        text += "" if row["alone"] else " with all changes together"
    return text


def other_findings(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """('only in A', names) and so on, of findings that are no cause told above; '' names are left out."""
    told = {row["rule"] for row in comparison.fixes}
    for label, key in (("only in A", "only_a"), ("only in B", "only_b")):
        names = [f"{row['rule']} ({row['severity']})" for row in comparison.findings[key] if row["rule"] not in told]
        if names:
            yield label, ", ".join(map(phrases.line, names))
    both = [row["rule"] for row in comparison.findings["both"] if "high" in (row["a"]["severity"], row["b"]["severity"])
            or "medium" in (row["a"]["severity"], row["b"]["severity"])]  # fmt: skip
    if both:
        yield "in both", ", ".join(map(phrases.line, both))
