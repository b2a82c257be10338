"""Checks of what a recording lacks: device work, launch calls, links between them, its end, a common clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tracediag.columns import Health
from tracediag.distinct import combinations, distinct
from tracediag.intervals import total

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tracediag.columns import IntArray
    from tracediag.trace import Trace

__all__ = ["capture_cut_off", "clock_skew", "no_device", "unlinked", "unrecorded_work"]

UNLINKED_SHARE = 0.01
LEAST_LAUNCHES = 20
LEAST_WORK = 100
FEW_KINDS = 5
HEAVY = frozenset(
    ("matmul", "conv", "attention", "rnn", "embedding_lookup", "embedding_grad", "optimizer_update", "norm", "softmax", "loss", "pool")
)
"""Kinds of which a training step holds at least one on the device."""
LEAST_COLLECTIVES = 3
_GROUP = re.compile(r'"Process Group Name":"([^"]*)"')


def _launch_calls(trace: Trace) -> IntArray:
    return np.flatnonzero(trace.strings("role").isin(["runtime"]) & trace.strings("kind").isin(["launch"]))


def no_device(trace: Trace) -> Iterator[Health]:
    """Launch calls but no device work: the profiler was not allowed to see the device."""
    calls = len(_launch_calls(trace))
    if calls >= LEAST_LAUNCHES and not trace.has_device:
        yield Health(
            "no-device-events",
            "warning",
            f"{calls} launch calls but no device event: the profiler could not see the device",
            "device time is unknown; allow the counters (NVIDIA: NVreg_RestrictProfilingToAdminUsers=0 or CAP_SYS_ADMIN) and record again",
        )


def unlinked(trace: Trace) -> Iterator[Health]:
    """Device work whose launch is not in the trace: launched earlier, or the ids that join them were lost."""
    work = np.flatnonzero(trace.device_mask)
    lost = work[trace.launch[work] < 0]
    if len(lost) <= UNLINKED_SHARE * len(work):
        return
    share = f"{len(lost)} of {len(work)} device events ({len(lost) / len(work):.1%})"
    if len(work) - len(lost) < UNLINKED_SHARE * len(work) and len(work) >= LEAST_LAUNCHES <= len(_launch_calls(trace)):
        yield Health(
            "thinned-capture",
            "warning",
            f"{share} cannot be joined with the launch calls, which are in the trace: their correlation ids were not kept",
            "which operator launched what, phases and owners of idle time are unknown",
        )
        return
    linked = work[trace.launch[work] >= 0]
    early = len(linked) > 0 and bool((trace.start[lost] < trace.start[linked].min()).mean() > 0.5)
    reason = "they were launched before the recording began" if early else "their launch or its correlation id was not recorded"
    yield Health(
        "device-without-launch", "info", f"{share} have no launch call in the trace", f"{reason}: phase and source line are unknown"
    )


def capture_cut_off(trace: Trace) -> Iterator[Health]:
    """The device's part of the recording ended early."""
    if not trace.has_device:
        return
    calls = _launch_calls(trace)
    linked = distinct(trace.launch[trace.launch >= 0])
    used = np.isin(calls, linked)
    if len(calls) >= LEAST_WORK and 0 < used.sum() < len(calls) / 2:
        begin, last = trace.start[calls].min(), trace.start[calls].max()
        if trace.start[trace.device_mask].max() < (begin + last) / 2:
            yield _cut(f"{int((~used).sum())} of {len(calls)} launch calls have no device event, all of the later ones among them")
            return
    kernels = np.flatnonzero(trace.strings("role").isin(["kernel"]))
    kind = trace.strings("kind")
    kinds = {kind.values[code] for code in distinct(kind.codes[kernels]).tolist() if code >= 0}
    if len(kernels) >= LEAST_WORK and _trains(trace) and len(kinds) <= FEW_KINDS and not kinds & HEAVY:
        yield _cut(f"{len(kernels)} kernels of a training step were recorded, all of them {', '.join(sorted(kinds)) or 'unknown'}")


def _cut(message: str) -> Health:
    effect = "the device's buffer ended before the real work: no share of the step can be trusted, and no finding is above low"
    return Health("capture-cut-off", "warning", message, effect)


def _trains(trace: Trace) -> bool:
    host = ~trace.device_mask
    phases = trace.strings("phase").isin(["backward", "optimizer"])
    kinds = trace.strings("kind").isin(["input_wait", "collective"])
    return trace.has_steps or bool((host & (phases | kinds)).any())


def unrecorded_work(trace: Trace) -> Iterator[Health]:
    """Idle time before work that is queued, at the beginning: it waits for what was queued before (see `unrecorded.waits`)."""
    waited = trace.unrecorded
    if len(waited[0]):
        yield Health(
            "unrecorded-work",
            "warning",
            f"near its beginning the device idles for {total(waited) / 1e6:.3g} ms although work is queued",
            "what it waits for was queued before the recording started: that time is priced for no finding, and no finding is above low",
        )


def clock_skew(trace: Trace) -> Iterator[Health]:
    """Collectives that all ranks take part in and that do not overlap in time."""
    apart = _apart(trace)
    if len(apart) >= LEAST_COLLECTIVES and float((apart > 0).mean()) > 0.5:
        yield Health(
            "clock-skew",
            "warning",
            f"{int((apart > 0).sum())} of {len(apart)} collectives do not overlap between the ranks: "
            f"they lie {float(np.median(apart)) / 1e6:.3g} ms apart",
            "the clocks of the ranks differ, or other steps were recorded: times are compared within a rank only",
        )


def _apart(trace: Trace) -> IntArray:
    """For each collective of all ranks: latest start minus earliest end, ns; positive where ranks do not overlap. Shape (k,)."""
    name, detail = trace.strings("name"), trace.strings("detail")
    joint = name.where(["sendrecv" not in value.lower() for value in name.values])
    rows = np.flatnonzero(trace.device_mask & trace.strings("kind").isin(["collective"]) & (trace.ranks >= 0) & joint)
    ranks = distinct(trace.ranks[rows])
    if len(ranks) < 2:
        return np.zeros(0, np.int64)
    groups = [match[1] if (match := _GROUP.search(value)) else "" for value in detail.values]
    codes = {group: i for i, group in enumerate(dict.fromkeys(["", *groups]))}
    group = np.asarray([*(codes[value] for value in groups), 0])[detail.codes[rows]]
    _, key = combinations(name.codes[rows], group)
    found = [_key_apart(trace, rows[key == i], ranks) for i in range(int(key.max()) + 1)]
    return np.concatenate(found)


def _key_apart(trace: Trace, rows: IntArray, ranks: npt.NDArray[np.int64]) -> IntArray:
    """As `_apart`, for the collectives of one name and group; none where the ranks took part in different numbers of them."""
    rows = rows[np.lexsort((trace.start[rows], trace.ranks[rows]))]
    counts = np.bincount(np.searchsorted(ranks, trace.ranks[rows]), minlength=len(ranks))
    if counts.min() != counts.max():
        return np.zeros(0, np.int64)
    table = rows.reshape(len(ranks), -1)
    return np.asarray(trace.start[table].max(axis=0) - trace.end[table].min(axis=0))
