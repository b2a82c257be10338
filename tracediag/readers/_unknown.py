"""Say in one line what a file that is no timeline seems to be, and which file to give or how to export one."""

from __future__ import annotations

import re

__all__ = ["describe", "foreign"]

_TORCH = "give the *.pt.trace.json(.gz) that torch.profiler writes (prof.export_chrome_trace or tensorboard_trace_handler)"
_GIVE = f"{_TORCH}, or the *.xplane.pb of TensorFlow or JAX"
_TF = "give the *.xplane.pb (tf.profiler.experimental.start writes it to plugins/profile/*/)"
_UTF16 = "UTF-16 text; convert it to UTF-8 (in PowerShell: Out-File -Encoding utf8)"
_PICKLE = f"a Python pickle (of torch.cuda.memory._dump_snapshot, perhaps), which holds no timeline of ops; {_GIVE}"
_PACKED = f"a compressed file of a kind that is not unpacked here (xz, bzip2, 7z or rar); unpack it and {_GIVE}"

_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"),
    (b"\xff\xfe", _UTF16),
    (b"\xfe\xff", _UTF16),
    (b"PK\x03\x04", "an archive inside two others; unpack it once"),
    (b"\x89PNG", f"an image; {_GIVE}"),
    (b"%PDF", f"a PDF document; {_GIVE}"),
    (b"\x80\x02", _PICKLE),
    (b"\x80\x03", _PICKLE),
    (b"\x80\x04", _PICKLE),
    (b"\x80\x05", _PICKLE),
    (b"\xfd7zXZ", _PACKED),
    (b"BZh", _PACKED),
    (b"7z\xbc\xaf", _PACKED),
    (b"Rar!", _PACKED),
    (b"\x89HDF", f"an HDF5 file (model weights, perhaps); {_GIVE}"),
    (b"\x93NUMPY", f"a NumPy array; {_GIVE}"),
    (b"PAR1", f"a Parquet table; {_GIVE}"),
    (b"\x7fELF", f"a program or library; {_GIVE}"),
)
_NSYS = f"an SQLite export of Nsight Systems, which is not read; record with torch.profiler or tf.profiler instead: {_GIVE}"
_SQLITE: tuple[tuple[bytes, str], ...] = (
    (b"rocpd_", f"an RPD database of rocprof (SQLite), which is not read; record with torch.profiler instead: {_TORCH}"),
    (b"CUPTI_ACTIVITY_KIND", _NSYS),
    (b"TARGET_INFO_", _NSYS),
    (b"", f"an SQLite database (of Nsight Systems or rocprof, perhaps), which is not read; {_GIVE}"),
)
_HOROVOD = rb'"name"\s*:\s*"(?:NEGOTIATE_[A-Z]+|CYCLE_START)"'
_FOREIGN: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"[\[{].*" + _HOROVOD, re.S),
        f"a Horovod timeline (phases of collectives by tensor, without operators or kernels); profile one rank: {_GIVE}",
    ),
    (
        re.compile(rb'[\[{].*"start_time_since_epoch_in_micros"', re.S),
        f"a timeline of the SageMaker debugger (its own steps and data loading, without operators or kernels); {_GIVE}",
    ),
)
"""Chrome-trace JSON of tools that are no framework profilers."""
_ET = f"a torch execution trace (a graph of ops without times: ExecutionTraceObserver); {_TORCH} recorded with it"
_TEXT: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"\s*<(?:!doctype|html|\?xml|head|body)", re.I),
        "a web page (perhaps a login or error page saved as a trace); download the file itself",
    ),
    (re.compile(rb'\s*\{.*"schema"\s*:\s*"[^"]*".*"nodes"\s*:', re.S), _ET),
    (re.compile(rb'\s*\{\s*"schema"\s*:\s*"1\.\d', re.S), _ET),
    (
        re.compile(rb"\s*\[\s*\[\s*-?\d"),
        f"torch's memory timeline (lists of sizes, no events); {_TORCH} of the run",
    ),
    (re.compile(rb'\s*\{\s*"schema"\s*:\s*"tracediag\.'), "a file that tracediag wrote, not a trace; give the run directory"),
    (re.compile(rb'\s*\{.*"segments"\s*:.*"device_traces"|\s*\{.*"device_traces"\s*:', re.S), f"a snapshot of CUDA memory; {_GIVE}"),
    (re.compile(rb'\s*[\[{].*"_start_us"\s*:', re.S), f"profiler events written out by hand, not by export_chrome_trace; {_TORCH}"),
    (re.compile(rb'\s*\{.*"\$schema"\s*:|\s*\{.*"profiles"\s*:.*"frames"', re.S), f"a profile of samples (speedscope, perhaps); {_GIVE}"),
    (re.compile(rb"\s*node\s*\{"), f"a TensorFlow GraphDef in text form (ops and shapes, no times); {_TF}, or the RunMetadata of the run"),
    (re.compile(rb"\s*\{"), f"JSON without traceEvents; {_GIVE}"),
    (re.compile(rb"\s*\["), f"a JSON list that holds no trace events; {_GIVE}"),
    (re.compile(rb"\s*(?:Traceback|#!|import |from \w+ import|\"\"\")"), f"a text or script, not a trace; {_GIVE}"),
)


def describe(head: bytes) -> str:
    """What a file that begins with `head` seems to be, and what to give instead."""
    if not head.strip():
        return f"an empty file; {_GIVE}"
    if head.startswith(b"SQLite format 3\x00"):
        return next(text for mark, text in _SQLITE if mark in head)
    for magic, text in _BYTES:
        if head.startswith(magic):
            return text
    if len(head) > 3 and not (any(head[1:200:2]) and any(head[0:200:2])):
        return _UTF16  # without its mark: every other byte is 0
    plain = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, text in _FOREIGN + _TEXT:
        if pattern.match(plain):
            return text
    return _message(head)


def _message(head: bytes) -> str:
    """The protobuf messages that TensorFlow leaves beside its traces, by the texts in them."""
    if b"brain.Event" in head[:64]:
        return f"a TensorBoard event file (or the empty marker beside a profile), without a timeline; {_TF}"
    if b"_trainable_variables" in head:
        return f"an op log of TensorFlow's profiler (flops and types of ops, no times); {_TF}, or the RunMetadata of the run"
    if b"IDLE" in head[:200] or b"type.googleapis.com" in head[:2000]:
        return f"a page of statistics (xprof, TensorBoard), without a timeline; {_TF}"
    return f"no format that is known here; {_GIVE}"


def foreign(head: bytes) -> bool:
    """Whether `head` is a Chrome-trace JSON of another tool, which a torch reader would misread."""
    return any(pattern.match(head) for pattern, _ in _FOREIGN)
