"""Pages that the tests of the HTML report share, and what is asked of every one."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from report_samples import EVIL, SAMPLES

from tracediag import api
from tracediag.excerpt import excerpt
from tracediag.trace import Trace

if TYPE_CHECKING:
    from tracediag.comparison import Comparison
    from tracediag.findings import Report

ROOT = Path(__file__).resolve().parents[1]
MS = 1_000_000
VOID = {"meta", "input", "rect", "img", "br"}


def hostile_trace() -> Trace:
    """Three steps in which every name tries everything."""
    ops: list[dict[str, Any]] = []
    for step in range(3):
        at = step * 10 * MS
        ops += [
            {"name": EVIL, "lane": EVIL, "start_ns": at, "dur_ns": 4 * MS, "label": EVIL, "in_shapes": EVIL, "source": EVIL},
            {"name": "</script><script>alert(4)</script>\u2028\ud800", "role": "runtime", "lane": EVIL, "start_ns": at + MS, "dur_ns": MS},
            {
                "name": EVIL,
                "place": "device",
                "device": EVIL,
                "lane": f"gpu {EVIL}",
                "start_ns": at + 5 * MS,
                "dur_ns": MS,
                "launch": 3 * step + 1,
            },
        ]
    memory = [{"t_ns": i * MS, "bytes": 100_000, "device": EVIL} for i in range(9)]
    steps = [{"step": i, "start_ns": i * 10 * MS, "end_ns": (i + 1) * 10 * MS} for i in range(3)]
    return Trace.from_rows({"ops": ops, "steps": steps, "memory": memory})


def hostile() -> tuple[Report, dict[str, Any]]:
    """The hostile report with the excerpt of a hostile trace, whose finding claims all of it."""
    trace = hostile_trace()
    made = excerpt(trace, [])
    everything = {"start": [0], "dur": [made["window"]["length_ns"]], "events": [0, len(made["events"]["lane"])], "gaps": [0, 1]}
    return SAMPLES["hostile"], made | {"marks": [everything]}


def recorded(name: str) -> tuple[Report, dict[str, Any]]:
    """Report and excerpt of a recorded run."""
    return api.illustrate(ROOT / "fixtures" / name / "slow")


def crowded() -> tuple[Report, dict[str, Any]]:
    """Fifty findings on the timeline of a recorded run."""
    _, made = recorded("torch-unfused-adam")
    return replace(SAMPLES["fifty"]), made | {"marks": made["marks"][:1] * 50}


def spoilt(value: Any) -> Any:
    """The same data with every text a hostile one, but for the words that mean something."""
    if isinstance(value, dict):
        kept = ("outcome", "phase", "owner", "side", "per", "basis", "change", "state", "severity", "warning", "level")
        return {key: one if key in kept else spoilt(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(spoilt, value))
    return EVIL if isinstance(value, str) else value


def hostile_comparison(comparison: Comparison) -> tuple[Comparison, str, tuple[dict[str, Any], dict[str, Any]]]:
    """A comparison in which every name tries everything, with two hostile timelines: the arguments of `render_comparison`."""
    names = ("a", "b", "ops", "findings", "fixes", "settings", "rules", "difference", "verdict", "tool")
    _, drawn = hostile()
    return replace(comparison, **{name: spoilt(getattr(comparison, name)) for name in names}), "html", (drawn, drawn)


class Reading(HTMLParser):
    """Checks that elements nest, and gathers tags, ids, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    @property
    def ids(self) -> list[str]:
        """Every id."""
        return [attrs["id"] or "" for _, attrs in self.tags if "id" in attrs]


def bare(page: str) -> str:
    """A page without its style and script, which are files of their own, and their hashes."""
    page = re.sub(r"(?s)<style>.*?</style>", "<style></style>", page)
    page = re.sub(r"(?s)<script>.*?</script>", "<script></script>", page)
    return re.sub(r"sha256-[\w+/=]+", "sha256", page)
