from __future__ import annotations

import gc
import gzip
import io
import sys
import tarfile
import warnings
import zipfile

import pytest

from tracediag import sources
from tracediag.errors import InputError
from tracediag.sources import open_sources

TEXT = b'{"traceEvents": []}'


def write(path, data=TEXT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def names(*paths):
    return [source.name for source in open_sources([str(path) for path in paths])[0]]


def contents(*paths):
    return [source.read() for source in open_sources([str(path) for path in paths])[0]]


def test_a_plain_file_is_taken_whatever_its_name(tmp_path):
    path = write(tmp_path / "what.ever")
    (source,), runs = open_sources([path])
    assert (source.name, source.size, source.listed, runs) == ("what.ever", len(TEXT), False, [])
    assert source.head() == source.read() == TEXT


def test_gzip_is_known_by_its_bytes_and_may_have_members_and_padding(tmp_path):
    data = gzip.compress(TEXT[:5]) + gzip.compress(TEXT[5:]) + b"\0" * 100
    assert contents(write(tmp_path / "a.json", data)) == [TEXT]
    assert contents(write(tmp_path / "plain.json.gz")) == [TEXT]


@pytest.mark.parametrize("cut", [-1, -8, -12])
def test_a_gzip_that_ends_early_gives_what_is_there(tmp_path, cut):
    data = bytes(range(256)) * 1000
    (source,), _ = open_sources([write(tmp_path / "a.gz", gzip.compress(data)[:cut])])
    read = source.read()
    assert source.truncated
    assert data.startswith(read)
    assert len(read) > len(data) // 2


def test_a_run_directory(tmp_path):
    for name in ("run.json", "rank1.pt.trace.json.gz", "rank0.pt.trace.json", "report.json", "notes.txt", ".hidden.json", "train.py"):
        write(tmp_path / name)
    write(tmp_path / "plugins/profile/2026/host.xplane.pb")
    write(tmp_path / "plugins/profile/2026/host.trace.json.gz")
    write(tmp_path / "plugins/profile/2026/host.kernel_stats.pb")
    traces, runs = open_sources([str(tmp_path)])
    assert [source.name for source in traces] == ["plugins/profile/2026/host.xplane.pb", "rank0.pt.trace.json", "rank1.pt.trace.json.gz"]
    assert [source.name for source in runs] == ["run.json"]
    assert all(source.listed for source in traces)


def tar_bytes(mode, members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


MEMBERS = {"./run/a.json": TEXT, "run/b.json.gz": gzip.compress(b"[1]"), "run/readme.txt": b"x", "run/run.json": b"{}"}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_tar(tmp_path, mode):
    path = write(tmp_path / "t", tar_bytes(mode, MEMBERS))
    assert names(path) == ["run/a.json", "run/b.json.gz"]
    assert contents(path) == [TEXT, b"[1]"]
    assert [source.read() for source in open_sources([path])[1]] == [b"{}"]


def test_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    assert contents(tmp_path / "t.zip") == [TEXT, b"[1]"]


def test_a_tar_that_ends_early_gives_the_members_before(tmp_path):
    data = tar_bytes("w:gz", {"a.json": TEXT, "b.json": bytes(range(256)) * 5000})
    assert names(write(tmp_path / "t.tgz", data[: len(data) // 2]))[0] == "a.json"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("t.zip", b"PK\x03\x04 broken", "broken zip"),
        ("t.tar", tar_bytes("w", {"a.txt": b""}), "no trace in this archive"),
    ],
)
def test_archives_that_cannot_be_used(tmp_path, name, data, words):
    with pytest.raises(InputError, match=words):
        open_sources([write(tmp_path / name, data)])


def test_paths_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        open_sources([str(tmp_path / "missing")])
    with pytest.raises(InputError, match="no trace in this directory"):
        open_sources([str(tmp_path)])
    with pytest.raises(InputError, match="cannot be opened"):
        open_sources([f"file://{tmp_path}/missing"])


def test_a_url(tmp_path):
    path = write(tmp_path / "a.json.gz", gzip.compress(TEXT))
    assert contents(f"file://{path}") == [TEXT]
    assert names(f"file://{path}") == ["a.json.gz"]


def test_bombs_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "bomb.gz", gzip.compress(bytes(80 << 20)))
    (source,), _ = open_sources([path])
    with pytest.raises(InputError, match="150 times its size"):
        source.read()
    monkeypatch.setattr(sources, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="unpacks to more than"):
        source.read()
    packed = write(tmp_path / "t.tgz", tar_bytes("w:gz", {"a.json": bytes(1 << 21), "b.json": b""}))
    with pytest.raises(InputError, match="unpacks to more than"):
        open_sources([packed])
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", bytes(1 << 21))
    with pytest.raises(InputError, match="unpacks to more than"):
        open_sources([str(tmp_path / "t.zip")])


def test_zstandard_without_a_module_says_what_to_do(tmp_path, monkeypatch):
    for module in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    (source,) = [sources._file_source(tmp_path / "a.zst", "a.zst")] if (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd1") else []
    with pytest.raises(InputError, match="zstandard needs Python"):
        source.read()


@pytest.mark.parametrize("frames", [1, 2])
def test_zstandard(tmp_path, frames):
    zstandard = pytest.importorskip("zstandard")
    data = b"".join(zstandard.compress(TEXT) for _ in range(frames))
    path = write(tmp_path / "a.json.zst", data)
    assert contents(path) == [TEXT * frames]
    assert contents(write(tmp_path / "b.json.gz", gzip.compress(data))) == [TEXT * frames]
    packed = write(tmp_path / "t.tar.zst", zstandard.compress(tar_bytes("w", MEMBERS)))
    assert contents(packed) == [TEXT, b"[1]"]
    (source,), _ = open_sources([write(tmp_path / "bad.zst", data[:6] + b"\xff" * 20)])
    assert not TEXT.startswith(source.read() or b"x")
    assert source.truncated


def zip_bytes(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_archives_in_archives_are_opened_and_named_by_their_way(tmp_path):
    inner = {"x/rank0.json": TEXT, "x/notes.txt": b"n"}
    members = {"a.zip": zip_bytes(inner), "b.tgz": tar_bytes("w:gz", inner), "c.tar": tar_bytes("w", inner), "d.json": TEXT}
    ways = ["a.zip/x/rank0.json", "b.tgz/x/rank0.json", "c.tar/x/rank0.json", "d.json"]
    for name, data in {"t.zip": zip_bytes(members), "t.tar": tar_bytes("w", members), "t.tgz": tar_bytes("w:gz", members)}.items():
        path = write(tmp_path / name, data)
        assert (names(path), contents(path)) == (ways, [TEXT] * 4)


def test_archives_in_a_directory_are_opened(tmp_path):
    for name, data in {"run/a.zip": zip_bytes({"r.json": TEXT}), "run/empty.zip": zip_bytes({"r.txt": b""}), "run/b.json": TEXT}.items():
        write(tmp_path / name, data)
    assert names(tmp_path) == ["run/a.zip/r.json", "run/b.json"]


def test_an_archive_too_deep_inside_others_is_left_to_the_readers(tmp_path):
    data = TEXT
    for _ in range(3):
        data = zip_bytes({"in.zip": data})
    (source,), _ = open_sources([write(tmp_path / "out.zip", zip_bytes({"in.zip": data}))])
    assert source.head().startswith(b"PK")


def test_gzip_of_gzip(tmp_path):
    assert contents(write(tmp_path / "a.json.gz", gzip.compress(gzip.compress(TEXT)))) == [TEXT]


def test_hidden_members_and_names_that_climb_are_harmless(tmp_path):
    members = {"__MACOSX/._a.json": b"x", ".cache/b.json": b"x", "../../c.json": TEXT}
    assert names(write(tmp_path / "t.zip", zip_bytes(members))) == ["../../c.json"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["t.zip"]


@pytest.mark.parametrize("name", ["t.zip", "t.tar", "t.tgz"])
def test_nothing_stays_open(tmp_path, name):
    make = zip_bytes if name == "t.zip" else lambda members: tar_bytes("w:gz" if name == "t.tgz" else "w", members)
    path = write(tmp_path / name, make(MEMBERS | {"in.zip": zip_bytes({"i.json": TEXT})}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        assert contents(path) == [TEXT, TEXT, b"[1]"] or contents(path) == [TEXT, b"[1]", TEXT]
        gc.collect()
    assert [str(item.message) for item in caught] == []
