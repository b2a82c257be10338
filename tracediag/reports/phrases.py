"""The words and number formats that the reports for people share."""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracediag.findings import Finding, Place, Report, Speedup

__all__ = [
    "bar",
    "clean",
    "clip",
    "confidence",
    "device_line",
    "devices",
    "duration",
    "failed",
    "head",
    "lead",
    "line",
    "number",
    "percent",
    "place",
    "ratio",
    "shapes",
    "shapes_of",
    "shorten",
    "skipped",
    "speedup",
    "step_line",
    "together",
    "where",
]

CONFIDENCE = {"certain": "certain", "likely": "likely", "possible": "possible, not proven"}


def clean(text: object) -> str:
    """`text` with everything that could steer a terminal or hide (control, bidirectional, surrogate characters) written as an escape."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in str(text))


def line(text: object) -> str:
    """`text` on one line, cleaned."""
    return " ".join(clean(text).split())


def shorten(text: object, width: int) -> str:
    """`text` on one line of at most `width` characters; the middle gives way, because scopes start alike and names end apart."""
    flat = line(text)
    if len(flat) <= width:
        return flat
    tail = (width - 1) // 2
    return f"{flat[: width - 1 - tail]}…{flat[len(flat) - tail :]}"


def clip(text: object, width: int) -> str:
    """`text` on one line of at most `width` characters; the end gives way."""
    flat = line(text)
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def lead(text: object, limit: int) -> str:
    """The first sentences of `text` that fit in `limit` characters, at least one sentence (cut at a word when even that is too long)."""
    flat = line(text)
    if len(flat) <= limit:
        return flat
    sentence = flat.rfind(". ", 0, limit)
    word = flat.rfind(" ", 0, limit)
    return flat[: sentence + 1] if sentence > 0 else f"{flat[: word if word > 0 else limit]} …"


def number(value: float) -> str:
    """A count: whole numbers grouped in thousands, others with three significant digits."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.3g}"


def duration(ms: float | None) -> str:
    """Milliseconds in the unit that reads best, three significant digits; '?' when unknown."""
    if ms is None:
        return "?"
    if abs(ms) >= 10_000:
        return f"{ms / 1000:,.1f} s"
    if abs(ms) >= 1000:
        return f"{ms / 1000:.2f} s"
    if 0 < abs(ms) < 0.1:
        return f"{ms * 1000:.3g} µs"
    return f"{ms:.0f} ms" if abs(ms) >= 100 else f"{ms:.3g} ms"


def percent(share: float) -> str:
    """A share 0..1 as percent."""
    if 0 < share < 0.01:
        return "under 1 %"
    return f"{share * 100:.0f} %"


def ratio(value: float) -> str:
    """A speed-up factor: as many decimals as matter."""
    return f"{value:.2f}" if value < 1.1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def speedup(predicted: Speedup | None) -> str:
    """The predicted gain in words."""
    return "no honest prediction" if predicted is None else _gain(predicted.low, predicted.high)


def _gain(least: float, most: float | None) -> str:
    low = ratio(least)
    if most is None:
        return f"at least {low}x faster"
    high = ratio(most)
    if low == high:
        return f"about {low}x faster"
    return f"up to {high}x faster" if low == "1.00" else f"{low}x to {high}x faster"


def together(report: Report) -> str:
    """What all fixes at once save, or why nothing is predicted, in words; '' where there is neither."""
    told = report.prediction or {}
    if told.get("withheld"):
        return f"no savings are predicted: {line(told['withheld'])}"
    both = told.get("together")
    if not both:
        return ""
    return f"all fixes together: {_gain(both['low'], both['high'])} ({', '.join(map(line, both['rules']))})"


def confidence(finding: Finding) -> str:
    """How sure the finding is, in words."""
    return CONFIDENCE.get(finding.confidence, finding.confidence)


def place(spot: Place) -> str:
    """'train.py:12 in main'."""
    return line(f"{spot.file}:{spot.line}") + (f" in {line(spot.function)}" if spot.function else "")


def where(finding: Finding, most: int = 3) -> str:
    """The lines of the script, the first `most` of them; '' when none is known."""
    named = [place(spot) for spot in finding.where[:most]]
    more = len(finding.where) - most
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def shapes_of(row: Mapping[str, Any]) -> str:
    """Shapes of an evidence row: what goes in, and what comes out where that is known as well."""
    given, made = shapes(row.get("shapes")), shapes(row.get("out_shapes"))
    return f"{given} → {made}" if given and made and made != given else given


def shapes(value: object) -> str:
    """Shapes of an evidence row ('[[256,4],[4]]' or a list) as '256x4, 4', unknown axes as '?', without scalars; other text as is."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            return line(value)
    if not isinstance(value, list):
        return "" if value is None else line(value)
    rows = value if any(isinstance(row, list) for row in value) else [value]
    return _shapes(rows)


def _shapes(rows: list[Any]) -> str:
    """Shapes with commas between; those of a list of tensors in brackets, nothing for scalars."""
    told = []
    for row in rows:
        if isinstance(row, list) and any(isinstance(n, list) for n in row):
            inner = _shapes(row)
            told.append(f"({inner})" if inner else "")
        elif isinstance(row, list):
            told.append("x".join("?" if n is None else line(n) for n in row))
    return ", ".join(filter(None, told))


def head(report: Report) -> str:
    """'tracediag 0.1.0 · train.py · torch 2.13.0 · NVIDIA A100'."""
    run = report.run or {}
    versions = run.get("versions") or {}
    framework = report.subject.get("framework") or run.get("framework")
    names = [f"{name} {versions[name]}" if versions.get(name) else name for name in str(framework or "").split("+") if name]
    parts = [f"{report.tool['name']} {report.tool['version']}", report.subject.get("script"), *names, *devices(run)[:2]]
    return " · ".join(line(part) for part in parts if part)


def devices(run: Mapping[str, Any]) -> list[str]:
    """The distinct devices of a run by name, each with its number."""
    names = [device.get("name") or device.get("device") for device in run.get("devices") or ()]
    distinct = list(dict.fromkeys(name for name in names if name))
    return [f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in distinct]


def step_line(steps: Mapping[str, Any]) -> str:
    """What is known of the steps, in one line."""
    if not steps["count"]:
        return "no training step found in the trace"
    counted = f"{steps['count']} {'step' if steps['count'] == 1 else 'steps'}"
    spread = f" ± {duration(steps['mad_ms'])}" if steps.get("mad_ms") else ""
    plain = steps.get("unprofiled_mean_ms")
    told = f"{counted}, median {duration(steps['median_ms'])}{spread}"
    return told if plain is None else f"{told} with the profiler, mean {duration(plain)} without"


def bar(part: Mapping[str, Any], width: int) -> str:
    """A row of the breakdown as blocks, `width` for the whole step: solid where host or device work, light where the device idles."""
    whole = part["host_ms"] + part["device_ms"] + part["idle_ms"]
    length = round(part["share"] * width)
    idle = round(length * part["idle_ms"] / whole) if whole else 0
    return "█" * (length - idle) + "░" * idle or "▏"


def device_line(device: Mapping[str, Any]) -> str:
    """What is known of the devices, in one line."""
    busy = f"busy {percent(device['busy_share'])}" if device.get("busy_share") is not None else "busy time unknown"
    return f"{busy} ({duration(device['busy_ms'])} of {duration(device['window_ms'])}), {number(device['kernels'])} kernels"


def failed(report: Report) -> list[str]:
    """A line for each rule that broke: a bug, unlike rules that do not apply."""
    return [line(f"{row['rule']} {row['reason']}") for row in report.skipped if row["reason"].startswith("failed")]


def skipped(report: Report) -> str:
    """How many rules said nothing because they could not."""
    return f"{len(report.skipped)} of {report.tool['rules']} rules do not apply here or lack facts"
