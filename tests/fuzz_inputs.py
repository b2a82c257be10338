"""Spoilt inputs by number: seeds of every format, mutated, in containers that are spoilt as well. Input n of a seed is always the same."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import format_samples
import reader_samples
from fuzz_mutations import mutate

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "Input", "make_input", "seeds"]

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RUNS = ("report-004-linear-regression/fast", "keras-embedding-gather-copy/fast", "report-003-jit-partial-batch/fast")
LARGEST = 300_000
"""Bytes of a recorded file that is taken as a seed."""
FORMATS = ("kineto", "xplane", "tf-trace-json", "tf1-timeline", "tf1-runmetadata", "tf-local-trace", "ascend")
CLIMBING = ("../up.json", "/tmp/tracediag-fuzz.json", "a/../../b.pt.trace.json", "C:\\x.json", "~/y.json", "n\x00ul.json", "\udcff.json")


@dataclass(frozen=True)
class Input:
    """Files to write into a folder, and the paths in it that are given to tracediag."""

    files: dict[str, bytes]
    paths: tuple[str, ...]
    what: str


@cache
def seeds() -> dict[str, tuple[bytes, ...]]:
    """Whole files of each format, and of run.json."""
    runs = [FIXTURES / run for run in RUNS]
    recorded = [gzip.decompress(path.read_bytes()) for run in runs for path in sorted(run.rglob("*.gz"))]
    small = [data for data in recorded if len(data) < LARGEST]
    return {
        "kineto": (reader_samples.kineto_bytes(reader_samples.kineto()), *(data for data in small if data[:1] == b"{")),
        "xplane": (reader_samples.xspace(reader_samples.XPLANE), *(data for data in small if data[:1] == b"\n")),
        "tf-trace-json": (format_samples.dumped(format_samples.trace_json()),),
        "tf1-timeline": (format_samples.dumped(format_samples.timeline()),),
        "tf1-runmetadata": (format_samples.run_metadata(), format_samples.run_metadata_text()),
        "tf-local-trace": (format_samples.local_trace(),),
        "ascend": (format_samples.dumped(format_samples.ascend()),),
        "run": tuple((run / "run.json").read_bytes() for run in runs),
    }


def make_input(seed: int, number: int) -> Input:
    """Input `number` of `seed`."""
    random = Random(f"{seed}/{number}")
    known = seeds()
    form = random.choice(FORMATS)
    sample = random.choice(known[form])
    others = tuple(data[:50_000] for name, files in known.items() for data in files if name != form)
    if random.random() < 0.02:
        return _input("bomb", random.choice(_BOMBS)(random, sample))
    whole = random.random() < 0.1  # then only its container is spoilt
    data = sample if whole else mutate(sample, random, others)
    if random.random() < 0.15:
        return _directory(form, data, random, others)
    packing = random.choice((_plain, _plain, _plain, _plain, _gz, _gz, _zst, _zip, _tar, _tgz))
    packed = packing(data, random)
    if random.random() < 0.15:
        packed = random.choice((_gz, _zip, _tar, _tgz, _zst))(packed, random)
    if packing is not _plain and (whole or random.random() < 0.3):
        packed = mutate(packed, random, others)
    return _input(f"{form}, {packing.__name__[1:]}", packed, random.choice(("t.json", "t.pb", "t.json.gz", "t.zip", "t")))


def _input(what: str, data: bytes, name: str = "t") -> Input:
    return Input({name: data}, (name,), what)


def _directory(form: str, data: bytes, random: Random, others: tuple[bytes, ...]) -> Input:
    """A run directory with facts (spoilt as a rule), or the ranks of one job."""
    known = seeds()
    files = {"d/plugins/profile/a/h.xplane.pb" if form == "xplane" else "d/rank0.pt.trace.json": data}
    if random.random() < 0.7:
        run = random.choice(known["run"])
        files["d/run.json"] = mutate(run, random, others) if random.random() < 0.9 else run
    for rank in range(1, random.choice((1, 2, 3))):
        other = random.choice(known[random.choice(FORMATS)])
        files[f"d/rank{rank}.pt.trace.json"] = mutate(other, random, others) if random.random() < 0.5 else other
    paths = ("d",) if random.random() < 0.8 else tuple(name for name in files if not name.endswith("run.json"))
    return Input(files, paths, f"{form}, directory")


def _plain(data: bytes, random: Random) -> bytes:
    return data


def _gz(data: bytes, random: Random) -> bytes:
    return gzip.compress(data, 1, mtime=0) + random.choice((b"", b"", b"\0" * 40, b"\x1f\x8b", b"trailing"))


def _zst(data: bytes, random: Random) -> bytes:
    if importlib.util.find_spec("zstandard") is None:
        return _gz(data, random)
    import zstandard

    return bytes(zstandard.compress(data, 1))


def _names(random: Random) -> list[str]:
    usual = ["t.json", "run/t.xplane.pb", "r.json.gz", "in.zip", "x.txt", "run.json"]
    return [random.choice(usual if random.random() < 0.7 else CLIMBING) for _ in range(random.choice((1, 1, 2, 3)))]


def _zip(data: bytes, random: Random) -> bytes:
    buffer = io.BytesIO()
    methods = (zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(buffer, "w", random.choice(methods)) as archive:
        for name in dict.fromkeys(_names(random)):
            info = zipfile.ZipInfo(name.replace("\udcff", "?"))
            info.compress_type = archive.compression
            archive.writestr(info, data)
    packed = bytearray(buffer.getvalue())
    if random.random() < 0.1:  # says that it is encrypted, or packed in a way that nobody knows
        for at in (packed.find(b"PK\x03\x04") + 6, packed.find(b"PK\x01\x02") + 8):
            packed[at + random.choice((0, 2))] |= random.choice((1, 0x20, 0x40, 9))
    return bytes(packed)


def _tar(data: bytes, random: Random, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    form = random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as archive:
        for name in _names(random):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.type = random.choice((tarfile.REGTYPE,) * 6 + (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE))
            info.linkname = random.choice(("../../etc/passwd", name, "t.json"))
            info.pax_headers = random.choice(({}, {}, {"size": "-7"}, {"path": "p" * 5000}, {"mtime": "nan"}, {"GNU.sparse.map": "x"}))
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _tgz(data: bytes, random: Random) -> bytes:
    return gzip.compress(_tar(data, random), 1, mtime=0)


# Bombs: small files that unpack to much, or that ask for much work


@cache
def _packed(piece: bytes, mebibytes: int, layers: int = 1, head: bytes = b"") -> bytes:
    """gzip of a piece again and again; made once, since packing takes longer than all that follows."""
    data = head + piece * ((mebibytes << 20) // len(piece))
    for _ in range(layers):
        data = gzip.compress(data, 6, mtime=0)
    return data


def _zeros(random: Random, sample: bytes) -> bytes:
    """Zeros behind the beginning of a file: two gzip members."""
    return gzip.compress(sample[: random.choice((0, 40, 400))], 6, mtime=0) + _packed(b"\0", random.choice((1, 80, 200)))


def _events(random: Random, sample: bytes) -> bytes:
    """Valid events over and over: nothing in it looks wrong but how well it packs."""
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1},'
    return _packed(event, random.choice((5, 60, 90)), head=b'{"traceEvents":[')


def _gz_of_gz(random: Random, sample: bytes) -> bytes:
    return _packed(b"\0", random.choice((30, 300)), random.choice((2, 3, 5)))


def _zip_of_zips(random: Random, sample: bytes) -> bytes:
    """Each member an archive of the same: 16 ** 4 files at the bottom."""
    data, name = gzip.compress(sample, mtime=0), "t.json.gz"
    for _ in range(random.choice((2, 3, 4))):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(16):
                archive.writestr(zipfile.ZipInfo(f"{i}{name}"), data)
        data, name = buffer.getvalue(), ".zip"
    return data


def _members(random: Random, sample: bytes) -> bytes:
    """Very many members, all of them small, or empty."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for i in range(random.choice((300, 5000))):
            archive.writestr(zipfile.ZipInfo(f"{i}.json"), random.choice((b"", b"{}", b'{"traceEvents":[]}')))
    return buffer.getvalue()


def _overlap(random: Random, sample: bytes) -> bytes:
    """A zip in which many entries of the directory lead to the same packed bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("0000.json"), bytes(1 << 20))
        info = archive.infolist()[0]
        for i in range(1, random.choice((50, 900))):
            other = zipfile.ZipInfo(f"{i:04}.json")
            for name in ("header_offset", "compress_size", "file_size", "CRC", "compress_type"):
                setattr(other, name, getattr(info, name))
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
        archive._didModify = True
    return buffer.getvalue()


def _ranks(random: Random, sample: bytes) -> bytes:
    """Numbers so far apart that tables indexed by them would be as long."""
    step = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10**i, "tid": -(10**i), "ts": 10**i, "dur": 10**i} for i in range(19)]
    return json.dumps({"traceEvents": step * 20, "distributedInfo": {"rank": 2**31 - 1, "world_size": 2**31}}).encode()


_BOMBS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _zeros, _events, _gz_of_gz, _zip_of_zips, _members, _overlap, _ranks,
)  # fmt: skip
