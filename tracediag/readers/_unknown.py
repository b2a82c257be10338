"""Say in one line what a file that is no timeline seems to be, and which file to give instead."""

from __future__ import annotations

import re

__all__ = ["describe", "foreign"]

_GIVE = "give the *.pt.trace.json(.gz) of torch.profiler or the *.xplane.pb of TensorFlow or JAX"
_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"),
    (b"\xff\xfe", "UTF-16 text; convert it to UTF-8 (in PowerShell: Out-File -Encoding utf8)"),
    (b"\xfe\xff", "UTF-16 text; convert it to UTF-8 (in PowerShell: Out-File -Encoding utf8)"),
    (b"SQLite format 3\x00", f"an SQLite database (Nsight Systems or rocprof), which is not read; {_GIVE}"),
    (b"PK\x03\x04", "a zip inside another archive; unpack it once"),
    (b"\x89PNG", f"an image; {_GIVE}"),
    (b"%PDF", f"a PDF document; {_GIVE}"),
    (b"\x80\x02", f"a Python pickle (perhaps a memory snapshot); {_GIVE}"),
    (b"\x80\x04", f"a Python pickle (perhaps a memory snapshot); {_GIVE}"),
)
_FOREIGN: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb'.*"highres-ticks"', re.S), "TensorFlow's trace.json, cut down for the viewer; give the *.xplane.pb beside it"),
    (re.compile(rb'.*/(?:cpu|gpu|device:[CG]PU):\d+[^"]* Compute"', re.S), f"a TensorFlow 1 timeline, which is not read yet; {_GIVE}"),
    (re.compile(rb'.*"start_time_since_epoch_in_micros"', re.S), f"a SageMaker or Horovod timeline, which is not read yet; {_GIVE}"),
)
_TEXT: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"\s*<(?:!doctype|html|\?xml)", re.I),
        "a web page (perhaps a login or error page saved as a trace); download the file itself",
    ),
    (re.compile(rb'\s*\{.*"schema"\s*:\s*"[^"]*".*"nodes"\s*:', re.S), f"a torch execution trace (graph of ops without times); {_GIVE}"),
    (re.compile(rb'\s*\{\s*"schema"\s*:\s*"1\.\d', re.S), f"a torch execution trace (graph of ops without times); {_GIVE}"),
    (re.compile(rb"\s*\[\s*\[\s*-?\d"), f"torch's memory timeline (a list of lists, no events); {_GIVE}"),
    (re.compile(rb'\s*\{\s*"schema"\s*:\s*"tracediag\.'), "a file that tracediag wrote, not a trace; give the run directory"),
    (re.compile(rb"\s*\{"), f"JSON without traceEvents; {_GIVE}"),
    (re.compile(rb"\s*\["), f"a JSON list that holds no trace events; {_GIVE}"),
)


def describe(head: bytes) -> str:
    """What a file that begins with `head` seems to be, and what to give instead."""
    if not head:
        return f"an empty file; {_GIVE}"
    for magic, text in _BYTES:
        if head.startswith(magic):
            return text
    plain = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, text in _FOREIGN + _TEXT:
        if pattern.match(plain):
            return text
    if b"brain.Event" in head[:64]:
        return "a TensorBoard event file or profile marker; give plugins/profile/*/*.xplane.pb"
    if b"IDLE" in head[:200] or b"type.googleapis.com" in head[:2000]:
        return "a page of profiler statistics (xprof, TensorBoard), without a timeline; give the *.xplane.pb beside it"
    return f"no format that is known here; {_GIVE}"


def foreign(head: bytes) -> bool:
    """Whether `head` is a Chrome-trace JSON of another tool, which a torch reader would misread."""
    return any(pattern.match(head) for pattern, _ in _FOREIGN)
