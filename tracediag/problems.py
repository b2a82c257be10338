"""The list of problems that a trace can have: what each means, what it does to the diagnosis, what to do, how far it lowers severities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediag.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PROBLEMS", "Problem", "problem", "severity_cap"]

_AGAIN = "copy the file again, or record again and let the script end by itself"


@dataclass(frozen=True)
class Problem:
    """One kind of problem. level: info | warning | error; cap: highest severity of findings in a trace that has it.

    id: as in the report; one that ends in '*' stands for all ids that begin so.
    """

    id: str
    level: str
    meaning: str
    effect: str
    fix: str
    cap: str = "high"


def _of_the_file() -> tuple[Problem, ...]:
    p = Problem
    return (
        p("truncated-file", "error", "The file ends before its list of events is closed.",
          "What is whole is used; later steps, threads or devices are missing, and totals are too low.", _AGAIN),
        p("no-events", "error", "The file holds records but no event with a time.",
          "Nothing can be said from it.", "keep the profiler on while steps run, and stop it before the export"),
        p("broken-events", "warning", "Some events could not be decoded.",
          "They are counted and left out; their time is missing.", _AGAIN),
        p("invalid-utf8", "info", "Names hold bytes that are no UTF-8.",
          "The bytes are replaced; names of these events may look odd.", "nothing; a newer framework writes them correctly"),
        p("bad-durations", "warning", "Events have a negative, infinite or unreadable time or duration.",
          "They are counted and left out; their time is missing.",
          "update the driver and the profiler library; record again when there are many"),
        p("implausible-times", "warning",
          "A handful of events are longer than the trace, cover later work of their own stream, or lie far outside the recording.",
          "Far events are left out; lengths are replaced by the usual length of events of that name, or by none.",
          "nothing for a handful; with many, update the driver and the profiler library and record again"),
        p("odd-run-facts", "warning", "run.json holds values of a kind that tracediag never writes.",
          "They are left out; rules that need them are skipped.", "give the run directory as it was recorded"),
        p("no-categories", "info", "Most events have no category and no name that tells what they are.",
          "They count as host time, device work among them too.", "give the file as the profiler exported it"),
        p("event-cap", "warning", "The file holds exactly as many events as its writer keeps at most.",
          "What came after is missing: totals are too low and rare causes may not show.",
          "give the *.xplane.pb beside it, or record fewer steps", "medium"),
        p("lossy-format", "info", "The file was made for a viewer: allocations, most shapes and many facts of events are not in it.",
          "Rules that need them are skipped.", "give the *.xplane.pb beside it"),
    )  # fmt: skip


def _of_the_recording() -> tuple[Problem, ...]:
    p = Problem
    return (
        p("no-steps", "warning", "No training step was found.",
          "Shares are of the whole recorded time, start-up included.",
          "record with `tracediag profile`, or mark steps with prof.step() or tf.profiler.experimental.Trace"),
        p("few-steps", "info", "Fewer than 3 steps were recorded.",
          "Nothing can be said about how much steps vary.", "record at least 5 steps"),
        p("outlier-steps", "info", "A few steps take several times as long as the usual one.",
          "Shares and the breakdown leave them out; rules that look at single steps still see them.",
          "record later in the run, past compilation, evaluation and checkpoints"),
        p("cut-off-step", "info", "The first or the last step holds less than half of the events of the others.",
          "Shares and the breakdown leave it out.", "start and stop the profiler at the boundary of a step"),
        p("capture-cut-off", "warning", "Device work ends early: launches without device events, a training step without matrix products.",
          "The device's buffer ended before the real work: no share of the step can be trusted.",
          "record fewer steps, or give the profiler a larger buffer", "low"),
        p("unrecorded-work", "warning", "The device idles for long although work is queued, near the beginning of the recording.",
          "What it waits for was queued before the recording started: that time is priced for no finding.",
          "synchronise the device before the profiler starts, or record several steps", "low"),
        p("counter-ranges", "warning", "Ranges of hardware counters were recorded instead of kernels.",
          "Kernels ran one by one and were repeated for every counter: times of the device mean nothing.",
          "record again without CUPTI_PROFILER_METRICS", "low"),
        p("host-only", "info", "The file names an accelerator but holds no launch call and no device event.",
          "If the model ran there, its time is unknown.", "record the activity of the device too"),
        p("no-device-events", "warning", "There are launch calls but no device work.",
          "Device time is unknown.",
          "allow the counters (NVIDIA: NVreg_RestrictProfilingToAdminUsers=0 or CAP_SYS_ADMIN), start the profiler before the first "
          "launch, run no second profiler, and record again", "medium"),
        p("device-without-launch", "info", "Device work has no launch call in the trace.",
          "Its phase and source line are unknown.", "start the profiler some steps earlier; record host and device activities"),
        p("thinned-capture", "warning", "Launch calls and device work are both there, but under 1 % of them can be joined.",
          "Which operator launched what, phases and owners of idle time are unknown.",
          "keep the correlation ids: record again, and give the file as the profiler wrote it", "medium"),
        p("stream-overlap", "warning", "Over 1 % of the device events, and of their time, overlap the one before them on their stream.",
          "Times of single kernels cannot be trusted; busy time counts each instant once.",
          "update the driver and the profiler library and record again", "medium"),
        p("clock-skew", "warning", "Collectives that ranks take part in together do not overlap in time.",
          "The clocks of the ranks differ: times are compared within a rank only.",
          "synchronise the clocks of the machines (NTP, PTP); record all ranks in the same steps"),
        p("profiler-overhead", "info", "A recorded step takes over 1.2 times as long as one without the profiler.",
          "Small host operations are slowed most: host shares are upper bounds.",
          "record without stacks, shapes and memory: --no-stacks --no-memory"),
    )  # fmt: skip


def _of_the_capture() -> tuple[Problem, ...]:
    p = Problem
    return (
        p("no-steps-found", "warning", "The capture saw no boundary of a training step.",
          "The whole run is one window.", "call run.step() of tracediag.profile after each step"),
        p("run-too-short", "warning", "The script ended before the recorded window opened.",
          "No trace was recorded.", "profile again with a smaller --warmup or more steps"),
        p("window-shortened", "info", "The window was closed early, because steps are long or run very many operations.",
          "The findings stand: values per step are means of fewer steps.", "nothing; --steps sets the most steps that are recorded"),
        p("no-kernels", "warning", "A device was there, but the profiler recorded no work on it.",
          "Device time is unknown.", "allow the counters (CAP_SYS_ADMIN), and check that the script uses the device", "medium"),
        p("no-training", "warning", "The script trained with no framework that is recorded.",
          "There is no trace to explain.", "check which Python and which process trains"),
        p("no-framework", "warning", "Neither torch nor TensorFlow is installed in the Python that ran the script.",
          "There is no trace to explain.", "give the right interpreter with --python"),
        p("ended-unwritten", "warning", "The process ended before anything was written.",
          "Nothing was recorded.", "see the script's own error; raise --timeout"),
        p("not-reported", "warning", "No process reported in.",
          "Nothing was recorded.", "start the script without -I, -S and -E; give the interpreter with --python"),
        p("own-profiler", "warning", "The script runs a profiler of its own.",
          "No window is recorded while it is on.", "switch the script's own profiler off"),
        p("hook-failed-*", "warning", "One of the capture's hooks failed and was switched off.",
          "What it watches is missing from the facts of the run.", "report it, with the message"),
        p("tf-private-*", "warning", "This TensorFlow lacks a private function that the capture uses.",
          "What depends on it is missing: weaker findings.", "use another version of TensorFlow"),
    )  # fmt: skip


PROBLEMS: tuple[Problem, ...] = (*_of_the_file(), *_of_the_recording(), *_of_the_capture())
"""Every id that `health` can hold, once."""


def problem(ident: str) -> Problem | None:
    """The problem with this id, None for one of another version or of the user's own tools."""
    for candidate in PROBLEMS:
        if candidate.id == ident or (candidate.id.endswith("*") and ident.startswith(candidate.id[:-1])):
            return candidate
    return None


def severity_cap(idents: Iterable[str]) -> str:
    """Highest severity that findings may have in a trace with these problems: high where nothing lowers it."""
    caps = [found.cap for ident in idents if (found := problem(ident)) is not None]
    return max(caps, key=SEVERITIES.index, default="high")
