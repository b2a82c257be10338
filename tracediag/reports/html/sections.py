"""The written parts of the page: verdict, key figures, where the time goes, findings, the trace. They need no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracediag.findings import Speedup
from tracediag.reports import phrases
from tracediag.reports.html.findings import listing
from tracediag.reports.web.markup import code, phase, section, swatch, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracediag.findings import Report

__all__ = ["after", "before", "top"]

LINKS = (("where", "Time"), ("findings", "Findings"), ("timeline", "Timeline"), ("operations", "Operations"), ("series", "Over time"))


def top(report: Report, drawn: bool) -> str:
    """Verdict, key figures and the way to the sections. drawn: there are sections made of an excerpt."""
    figures = "".join(
        f"<div><dt>{name}</dt><dd>{value}{f'<small>{more}</small>' if more else ''}</dd></div>\n" for name, value, more in _figures(report)
    )
    known = [(anchor, name) for anchor, name in LINKS if drawn or anchor in ("where", "findings")]
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for anchor, name in [*known, ("trace", "The trace")])
    return (
        f'<header class="top">\n<p class="meta">{text(phrases.head(report))}</p>\n<h1>{text(report.verdict["text"])}</h1>\n'
        f'<dl class="figures">\n{figures}</dl>\n</header>\n<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
    )


def before(report: Report) -> str:
    """What stands above the drawings."""
    return _breakdown(report) + listing(report)


def after(report: Report) -> str:
    """What stands below the drawings: the inputs, what is wrong with the trace, what was not judged."""
    rows = [
        [code(row.get("path")), text(row.get("format") or ""), text(phrases.number(row.get("events") or 0)), text(_size(row.get("bytes")))]
        for row in report.inputs[:50]
    ]
    more = len(report.inputs) - len(rows)
    notes = "".join(f"<li><b>{text(n['level'])}</b>: {text(n['message'])} ({text(n['effect'])})</li>\n" for n in report.health)
    failed = "".join(f"<li><b>failed</b>: {text(told)}</li>\n" for told in phrases.failed(report))
    body = (
        (f"<ul>\n{notes}{failed}</ul>\n" if notes or failed else "<p>Nothing is wrong with it.</p>\n")
        + (table(["File", "Format", "Events", "Size"], rows, frozenset({2, 3})) if rows else "")
        + (f'<p class="note">and {more} more files</p>\n' if more else "")
        + _skipped(report)
    )
    return section("trace", "The trace", body)


def _skipped(report: Report) -> str:
    if not report.skipped:
        return ""
    rows = [[code(row["rule"]), text(row["reason"])] for row in report.skipped]
    return f"<details><summary>{text(phrases.skipped(report))}</summary>\n{table(['Rule', 'Why'], rows)}</details>\n"


def _figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """(name, value, remark) of each key figure."""
    steps = report.steps
    if steps["count"]:
        plain = steps.get("unprofiled_mean_ms")
        spread = f" ± {phrases.duration(steps['mad_ms'])}" if steps.get("mad_ms") else ""
        if plain is not None:
            yield "Step", phrases.duration(plain), "mean without the profiler"
        yield "Step, recorded", phrases.duration(steps["median_ms"]), f"median{spread}, {_count(steps['count'], 'step')}"
    if report.device is not None and report.device.get("busy_share") is not None:
        busy, window = phrases.duration(report.device["busy_ms"]), phrases.duration(report.device["window_ms"])
        yield "Device busy", phrases.percent(report.device["busy_share"]), f"{busy} of {window}"
    loud = [finding for finding in report.findings if finding.severity in ("high", "medium")]
    quiet = len(report.findings) - len(loud)
    yield "Findings", str(len(loud)), f"and {quiet} minor" if quiet else "5 % of the step or more"
    both = (report.prediction or {}).get("together")
    if both:
        yield "All fixes", phrases.speedup(Speedup(both["low"], both["high"])), f"{len(both['rules'])} together, predicted"


def _breakdown(report: Report) -> str:
    if not report.breakdown:
        return ""
    device = report.device is not None
    named = {"host_ms": "Host alone", "device_ms": "Device busy", "idle_ms": "Device idle"} if device else {}
    keys = [key for key in named if any(part[key] for part in report.breakdown)]
    rows = [
        [
            swatch(part["phase"]) + text(part["phase"] or "unknown"),
            phrases.percent(part["share"]),
            phrases.duration(sum(part[key] for key in ("host_ms", "device_ms", "idle_ms"))),
            *(phrases.duration(part[key]) for key in keys),
        ]
        for part in report.breakdown
        if part["share"] > 0
    ]
    stepped = bool(report.steps["count"])
    head = ["Phase", "Share", "A step" if stepped else "Time", *(named[key] for key in keys)]
    title = f"Where the {'step' if stepped else 'recorded time'} goes"
    told = ", ".join(f"{part['phase'] or 'unknown'} {phrases.percent(part['share'])}" for part in report.breakdown if part["share"] > 0)
    body = (
        f'<svg class="bar" viewBox="0 0 1000 26" preserveAspectRatio="none" role="img" aria-label="{text(told)}">{_bar(report)}</svg>\n'
        f"{table(head, rows, frozenset(range(1, len(head))))}"
        + ('<p class="note">Each instant is counted once. Pale: the device waits.</p>\n' if device else "")
    )
    return section("where", title, body)


def _bar(report: Report) -> str:
    """Rectangles of 1000 units in all: work in the colour of its phase, then the pale idle time that belongs to it."""
    pieces, at = [], 0.0
    for part in report.breakdown:
        whole = part["host_ms"] + part["device_ms"] + part["idle_ms"]
        for idle, own in ((False, whole - part["idle_ms"]), (True, part["idle_ms"])):
            width = 1000 * part["share"] * own / whole if whole else 0.0
            if width > 0:
                kind = phase(part["phase"]) + (" idle" if idle else "")
                pieces.append(f'<rect x="{at:.2f}" width="{width:.2f}" height="26" class="{kind}"/>')
            at += width
    return "".join(pieces)


def _count(number: int, thing: str) -> str:
    return f"{phrases.number(number)} {thing}{'' if number == 1 else 's'}"


def _size(count: int | None) -> str:
    """Bytes in the unit that reads best."""
    if count is None:
        return "?"
    scale, unit = next(((scale, unit) for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= scale), (1, "bytes"))
    return f"{count / scale:.3g} {unit}" if scale > 1 else f"{count} {unit}"
