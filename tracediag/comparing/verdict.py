"""The one sentence of a comparison, and which rule it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediag.comparing.difference import UNATTRIBUTED
from tracediag.comparing.findingdiff import causes
from tracediag.comparing.words import SAME, milliseconds, stands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SAME_OPS", "Evidence", "verdict"]

SAME_OPS = 0.05
"""Part of the step in operations that differ, up to which they are the same."""
GAIN = 1.05
"""A ratio below this is no gain."""
CLEAR_GAIN = 1.1
"""The same where nothing but a finding tells the sides apart."""
MOST = 0.6
"""Part of the difference that is most of it."""
EXPLAINS = 0.5
"""Part of the difference that a finding must cost then, unless it is high."""
CARRIES = {True: 0.15, False: 0.3}
"""Part of the difference that a finding must cost to be its reason, within one program (where its fix may gain more than it owns) and
between two programs or frameworks; unless the difference is what the finding had predicted."""
MUCH = 0.3
"""Part of the difference without a known reason that is told beside a finding."""
SEEN = 0.005
"""Part of both steps in operations that differ, below which that is not worth telling."""
UNLIKE = 0.9
"""Part of both steps in operations that differ, from which on they have hardly one in common."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """What the sentence is made from. clear: the step times differ beyond what one run a side shows by itself (see `compare`)."""

    step: Row
    work: Mapping[str, Row]
    findings: Mapping[str, Any]
    fixes: Sequence[Row]
    rules: Sequence[Row]
    difference: Sequence[Row]
    changed: float
    identical: bool
    clear: bool
    device_ms: tuple[float, float] | None
    settings: Sequence[Row] = ()

    @property
    def slower(self) -> str:
        """'a' or 'b'."""
        return "a" if self.step["a_ms"] >= self.step["b_ms"] else "b"

    @property
    def faster(self) -> str:
        """The other one."""
        return "ba"["ab".index(self.slower)]

    @property
    def delta(self) -> float:
        """Slower minus faster, ms."""
        return float(abs(self.step["a_ms"] - self.step["b_ms"]))

    @property
    def alike(self) -> bool:
        """Whether a step is held against a step, or a recording against a recording."""
        return bool(self.step["a"]["per"] == self.step["b"]["per"])

    @property
    def unlike(self) -> bool:
        """Whether the recordings of one framework look like two programs."""
        known = self.work["flops"]["ratio"] is not None or self.step["basis"] == "told"
        return bool(self.step["same_framework"] and not known and self.changed >= UNLIKE)

    @property
    def factor(self) -> float:
        """Slower by faster."""
        ratio = self.step["ratio"] or 1.0
        return float(max(ratio, 1 / ratio))

    def rule(self, name: str) -> Row | None:
        """The finding of a rule about pairs."""
        return next((row for row in self.rules if row["rule"] == name), None)


def verdict(seen: Evidence) -> dict[str, Any]:
    """{rule, text, outcome}: identical | no-difference | different-work | finding | pair-rule | parts."""
    if seen.identical:
        return _told(None, "The two sides are the same recording: there is no difference.", "identical")
    found = _reasons(seen)
    unequal = seen.rule("unequal-work")
    if unequal is not None and not (found and _same_model(seen)):
        return _told("unequal-work", f"The two sides do different work: {unequal['message']}. {_sentence(seen, found)}", "different-work")
    if seen.step["noise"]["known"] and seen.step["noise"]["change"] == "none":
        return _told(None, f"No difference beyond noise: {_noise(seen)}{_also(seen)}.", "no-difference")
    if found and _plausible(seen, found):
        return _told(found[0]["rule"], _sentence(seen, found), "finding")
    for name in ("version-regression", "jit-no-gain"):
        row = seen.rule(name)
        if row is not None:
            return _told(name, f"{row['title']}: {row['message']}. {_parts_sentence(seen)}", "pair-rule")
    if not seen.clear and seen.changed <= SAME_OPS and not _differing(seen.work):
        return _told(
            None,
            f"No difference beyond noise is shown: {_same_ops(seen)}; {_noise(seen)}{_most(seen)}{_also(seen)}{_settings(seen)}.",
            "no-difference",
        )
    return _told(None, _parts_sentence(seen), "parts")


def _told(rule: str | None, text: str, outcome: str) -> dict[str, Any]:
    return {"rule": rule, "text": text, "outcome": outcome}


def _same_model(seen: Evidence) -> bool:
    """One framework and the same parameters: what is computed beyond the other side is the doing of a finding."""
    parameters = seen.work["parameters"]
    return bool(seen.step["same_framework"] and parameters["ratio"] is not None and parameters["warning"] is None)


def _reasons(seen: Evidence) -> list[Row]:
    """Findings of the slower side that cost enough to be why it is slower, or whose prediction came true; the leading one first."""
    held = {row["rule"] for row in seen.fixes if row["held"]}
    least = CARRIES[bool(seen.step["same_framework"] and not seen.unlike)] * seen.delta
    found = causes(dict(seen.findings), seen.slower) if seen.alike else []
    return [row for row in found if row["rule"] in held or (row["ms_per_step"] or 0.0) >= least]


def _plausible(seen: Evidence, found: Sequence[Row]) -> bool:
    """A finding may come and go by chance where nothing else changed; then it must be large, and the step times apart."""
    if seen.factor < GAIN:
        return False
    if seen.changed > SAME_OPS or seen.clear or _differing(seen.work):
        return True
    cost = found[0]["ms_per_step"] or 0.0
    return bool(seen.factor >= CLEAR_GAIN and (found[0]["severity"] == "high" or cost >= EXPLAINS * seen.delta))


def _differing(work: Mapping[str, Row]) -> list[str]:
    return [name for name, row in work.items() if row["warning"]]


def _sentence(seen: Evidence, found: Sequence[Row]) -> str:
    """How the steps stand, and the finding behind it."""
    if not found or seen.factor < GAIN:
        return f"{_capital(stands(seen.step))}{_one_run(seen)}{_known_work(seen)}."
    first, side, other = found[0], seen.slower.upper(), seen.faster.upper()
    place = f" ({first['where'][0]['file']}:{first['where'][0]['line']})" if first["where"] else ""
    more = "" if len(found) == 1 else ", as is one more finding" if len(found) == 2 else f", as are {len(found) - 1} more findings"
    found_in = f"“{first['title'].rstrip('.')}”{place} is found in {side} and not in {other}{more}"
    return f"{stands(seen.step)}: {found_in}{_unexplained(seen)}{_known_work(seen)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _one_run(seen: Evidence) -> str:
    return "" if seen.step["noise"]["known"] else "; with one run a side the noise is not known"


def _noise(seen: Evidence) -> str:
    noise = seen.step["noise"]
    if not noise["known"]:
        return f"{stands(seen.step)}, and with one run a side the noise is not known"
    runs = noise["runs"]
    return (
        f"{stands(seen.step)}, over {runs['a']} and {runs['b']} runs; a change would have to be {milliseconds(noise['limit_ms'])} or more"
    )


def _also(seen: Evidence) -> str:
    """A finding that is gone or new, where the sentence does not rest on it."""
    first = next(iter(seen.fixes), None)
    if first is None:
        return ""
    side = "a" if first["state"] == "gone" else "b"
    row = next(row for row in causes(dict(seen.findings), side) if row["rule"] == first["rule"])
    cost = f" ({milliseconds(row['ms_per_step'])} there)" if row["ms_per_step"] else ""
    return f"; “{first['title'].rstrip('.')}” is found in {side.upper()} only{cost}"


def _known_work(seen: Evidence) -> str:
    """Where that is not plain: whether both sides do the same, and what stands for a step."""
    step, known = seen.step, seen.work["flops"]["ratio"] is not None
    told = ""
    if not step["same_framework"] and not any(seen.work[name]["warning"] for name in ("flops", "forward_flops", "parameters")):
        told = "; both do the same work" if known else "; whether both do the same work is not known"
    elif seen.unlike:
        told = "; hardly any operation is the same on both sides"
    if not seen.alike:
        side = "a" if step["a"]["per"] == "recording" else "b"
        told += f"; {side.upper()} marks no steps, so that its whole recording stands for one"
    return told


def _same_ops(seen: Evidence) -> str:
    if seen.step["basis"] == "told":
        return "a report does not tell the operations"
    return "the same operations" if seen.changed < SEEN else f"operations that differ take {100 * seen.changed:.1f} % of the steps"


def _unexplained(seen: Evidence) -> str:
    """Where a finding leads: the part without a reason that is much of the difference."""
    whole = seen.step["a_ms"] - seen.step["b_ms"]
    rows = [row for row in seen.difference if row["owner"] in UNATTRIBUTED and row["cause"] is None and row["delta_ms"] * whole > 0]
    row = rows[0] if rows else None
    if row is None or row["delta_ms"] / whole < MUCH:
        return ""
    return f"; {milliseconds(abs(row['delta_ms']))} of the {milliseconds(abs(whole))} more lie elsewhere: {row['what']}"


def _most(seen: Evidence) -> str:
    """The part that makes most of a difference, where one does."""
    whole = seen.step["a_ms"] - seen.step["b_ms"]
    row = next((row for row in seen.difference if whole and row["delta_ms"] / whole >= MOST), None)
    return (
        f"; most of it is {row['what']} ({milliseconds(abs(row['delta_ms']))} of {milliseconds(abs(whole))})"
        if row and seen.factor > GAIN
        else ""
    )


def _both(seen: Evidence) -> str:
    """What slows both sides down."""
    rows = [
        row for row in seen.findings["both"] if row["category"] != "measurement" and row["a"]["severity"] == row["b"]["severity"] == "high"
    ]
    return f"; both have “{rows[0]['title'].rstrip('.')}”" if rows and not seen.fixes else ""


def _parts_sentence(seen: Evidence) -> str:
    """How the steps stand, and the largest part of the difference."""
    whole = seen.step["a_ms"] - seen.step["b_ms"]
    rows = [row for row in seen.difference if row["delta_ms"] * whole > 0]
    if not rows or seen.factor < SAME:
        return f"{_capital(stands(seen.step))}{_one_run(seen)}{_known_work(seen)}{_also(seen)}."
    row = rows[0]
    named = f"; “{row['cause']['title'].rstrip('.')}” explains it" if row["cause"] else ""
    largest = f"the largest part is {row['what']} ({milliseconds(abs(row['delta_ms']))} of {milliseconds(abs(whole))}){_next(rows, whole)}"
    against = next((other for other in seen.difference if other["delta_ms"] * whole < 0), None)
    if abs(row["delta_ms"]) > abs(whole) and against is not None:
        largest = (
            f"the largest part is {row['what']} ({milliseconds(abs(row['delta_ms']))} more), against {against['what']} "
            f"({milliseconds(abs(against['delta_ms']))} less)"
        )
    return (
        f"{stands(seen.step)}: {largest}{named}{_host(seen)}{_one_run(seen)}{_known_work(seen)}{_also(seen)}{_both(seen)}{_settings(seen)}."
    )


def _settings(seen: Evidence) -> str:
    """The settings of one framework that differ, where no finding leads: they may be the reason."""
    if not seen.settings or not seen.step["same_framework"]:
        return ""
    first = next((row for row in seen.settings if str(row["name"]).startswith(("env.", "versions."))), seen.settings[0])
    nothing = "unknown" if first["name"] == "devices" or first["name"].startswith("versions.") else "not set"
    values = [f"{nothing if first[side] is None else first[side]} in {side.upper()}" for side in (seen.slower, seen.faster)]
    more = len(seen.settings) - 1
    rest = f" and {more} more {'setting' if more == 1 else 'settings'}" if more else ""
    return f"; {first['name']} ({', '.join(values)}){rest} {'differ' if more or first['name'] == 'devices' else 'differs'}"


def _next(rows: Sequence[Row], whole: float) -> str:
    """The parts after the largest, where that is not most of the difference; at most two."""
    share = rows[0]["delta_ms"] / whole
    following = rows[1:3] if share < MOST else ()
    told = [f"{row['what']} ({milliseconds(abs(row['delta_ms']))})" for row in following if row["delta_ms"] / whole >= share / 2]
    return f", then {' and '.join(told)}" if told else ""


def _host(seen: Evidence) -> str:
    """Where devices work on both sides: whether the difference is theirs."""
    if seen.device_ms is None:
        return ""
    slow, fast = (seen.device_ms["ab".index(side)] for side in (seen.slower, seen.faster))
    if slow - fast >= 0.5 * abs(seen.step["a_ms"] - seen.step["b_ms"]):
        return ""
    both = f"{milliseconds(slow)} in {seen.slower.upper()} and {milliseconds(fast)} in {seen.faster.upper()}"
    return f"; work of the device takes {both}, so the difference lies in the host"
