from __future__ import annotations

import dataclasses
import gzip
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reader_samples import kineto, kineto_bytes
from report_samples import SAMPLES

from tracediag import api, cli, reportcache, reports
from tracediag.capture.launcher import LaunchResult

FULL = SAMPLES["many"]
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RUNS = ("report-004-linear-regression/slow", "keras-embedding-gather-copy/slow", "healthy-torch-mlp/healthy")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRACEDIAG_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(kineto_bytes(kineto()))
    return path


def kept(place):
    return sorted(file.name for file in place.iterdir()) if place.exists() else []


def never(*_):
    raise AssertionError("the trace was read")


@pytest.mark.parametrize("run", RUNS)
def test_a_second_report_is_the_first_one_in_every_format(run, monkeypatch, place):
    first = api.explain(FIXTURES / run, cache=True)
    assert len(kept(place)) == 1
    monkeypatch.setattr(api, "load", never)
    second = api.explain(FIXTURES / run, cache=True)
    for form in reports.FORMATS:
        assert reports.render(second, form) == reports.render(first, form)
    assert second.findings == first.findings


def test_what_profile_said_is_not_worked_out_again(monkeypatch, tmp_path, place):
    folder = shutil.copytree(FIXTURES / RUNS[0], tmp_path / "run")
    recorded = {"windows": [{"file": "x", "steps": 3}]}
    monkeypatch.setattr(api, "record", lambda _: LaunchResult(0, folder, recorded, "3 steps timed, 3 recorded"))
    assert cli.main(["profile", "--out", str(folder), "t.py"]) == 0
    monkeypatch.setattr(api, "load", never)
    assert cli.main(["explain", str(folder)]) == 0


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_comes_back_as_it_was(name):
    report = SAMPLES[name]
    reportcache.keep("a" * 64, report)
    back = reportcache.find("a" * 64)
    assert json.dumps(dataclasses.asdict(back)) == json.dumps(dataclasses.asdict(report))
    for form in reports.FORMATS:
        assert reports.render(back, form) == reports.render(report, form)


def test_a_report_that_json_would_change_is_not_kept(place):
    reportcache.keep("a" * 64, dataclasses.replace(FULL, steps={1: "a number for a key"}))
    reportcache.keep("b" * 64, dataclasses.replace(FULL, steps={"odd": {1, 2}}))
    assert [name for name in kept(place) if name.startswith("b")] == []
    assert reportcache.find("a" * 64) is None or reportcache.find("a" * 64).steps == {"1": "a number for a key"}


def test_the_command_line_uses_it_unless_told_not_to(trace, place, monkeypatch, capsys):
    assert cli.main(["explain", str(trace), "--no-cache"]) == 0
    plain = capsys.readouterr().out
    assert kept(place) == []
    assert cli.main(["explain", str(trace)]) == 0
    assert len(kept(place)) == 1
    monkeypatch.setattr(api, "load", never)
    assert cli.main(["explain", str(trace)]) == 0
    assert capsys.readouterr().out == plain * 2


def test_a_library_call_keeps_nothing_unless_asked(trace, place):
    api.explain(trace)
    api.explain(api.load(trace), cache=True)
    assert kept(place) == []


def test_what_changes_the_report_changes_the_key(trace, tmp_path):
    paths = [str(trace)]
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.yaml").write_text("a")
    keys = [
        reportcache.key_of(paths, [], {}),
        reportcache.key_of(paths, [str(rules)], {}),
        reportcache.key_of(paths, [], {"select": ["a"]}),
    ]
    (rules / "a.yaml").write_text("b")
    keys.append(reportcache.key_of(paths, [str(rules)], {}))
    keys.append(reportcache.key_of([*paths, *paths], [], {}))
    assert reportcache.key_of(paths, [], {}) == keys[0]
    seen = trace.stat()
    trace.write_bytes(trace.read_bytes().replace(b"aten::mm", b"aten::ab"))
    os.utime(trace, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # same size, same time
    keys.append(reportcache.key_of(paths, [], {}))
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_of_a_large_file_a_change_of_any_place_is_seen_by_its_times(tmp_path, monkeypatch):
    monkeypatch.setattr(reportcache, "WHOLE", 1000)
    monkeypatch.setattr(reportcache, "BLOCK", 10)
    monkeypatch.setattr(reportcache, "SETTLED_S", 0.5)
    path = tmp_path / "large"
    path.write_bytes(bytes(5000))
    assert reportcache.key_of([str(path)], [], {}) is None  # it may change within the same time stamp
    time.sleep(0.6)
    before = reportcache.key_of([str(path)], [], {})
    with path.open("r+b") as stream:
        stream.seek(17)
        stream.write(b"x")
    time.sleep(0.6)
    assert before is not None
    assert reportcache.key_of([str(path)], [], {}) != before


def test_of_a_directory_only_what_is_read_counts(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank0.pt.trace.json.gz").write_bytes(gzip.compress(kineto_bytes(kineto())))
    before = reportcache.key_of([str(run)], [], {})
    (run / "report.json").write_text("{}")
    (run / "notes.txt").write_text("x")
    assert reportcache.key_of([str(run)], [], {}) == before
    (run / "run.json").write_text("{}")
    assert reportcache.key_of([str(run)], [], {}) != before


def test_no_key_for_what_cannot_be_told():
    assert reportcache.key_of(["https://example.org/t.json"], [], {}) is None
    assert reportcache.key_of(["/no/such/file"], [], {}) is None
    assert reportcache.find(None) is None
    reportcache.keep(None, FULL)


@pytest.mark.parametrize(
    "spoil", [lambda d: b"", lambda d: d[:-9], lambda d: d.replace(b"7", b"8"), lambda d: b"\xff" + d, lambda d: d[40:]]
)
def test_a_spoilt_file_is_as_good_as_none(place, spoil):
    reportcache.keep("a" * 64, FULL)
    file = place / f"{'a' * 64}.json"
    file.write_bytes(spoil(file.read_bytes()))
    assert reportcache.find("a" * 64) is None
    reportcache.keep("a" * 64, FULL)
    assert reportcache.find("a" * 64) is not None


def test_nobody_else_can_read_or_put_reports(place):
    reportcache.keep("a" * 64, FULL)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()] == [0o600]
    place.chmod(0o777)
    assert reportcache.find("a" * 64) is None


@pytest.mark.parametrize("named", ["/proc/nowhere", "/dev/null/x", "\0"])
def test_a_place_that_cannot_be_written_is_no_error(trace, monkeypatch, named):
    if "\0" not in named:
        monkeypatch.setenv("TRACEDIAG_CACHE_DIR", named)
    else:
        monkeypatch.setattr(reportcache, "folder", lambda: Path("\0"))
    assert api.explain(trace, cache=True).to_json() == api.explain(trace).to_json()


def test_the_least_recently_used_go_first(place, monkeypatch):
    names = ["a" * 64, "b" * 64, "c" * 64]
    for age, name in zip((300, 200, 100), names, strict=True):
        reportcache.keep(name, FULL)
        os.utime(place / f"{name}.json", (time.time() - age,) * 2)
    (place / ".new-left").write_text("x")
    os.utime(place / ".new-left", (1, 1))
    (place / "README").write_text("not ours")
    assert reportcache.find(names[0]) is not None  # used: now the newest
    size = (place / f"{names[0]}.json").stat().st_size
    monkeypatch.setattr(reportcache, "MAX_TOTAL", 3 * size)
    reportcache.keep("d" * 64, FULL)
    assert kept(place) == ["README", *(f"{name}.json" for name in (names[0], names[2], "d" * 64))]


def _write_often(count):
    for _ in range(count):
        reportcache.keep("a" * 64, FULL)
        assert reportcache.find("a" * 64) == reportcache.find("a" * 64) is not None


def test_writers_at_the_same_time_leave_a_whole_report(place):
    workers = [multiprocessing.get_context("spawn").Process(target=_write_often, args=(30,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert kept(place) == [f"{'a' * 64}.json"]


def test_a_file_that_changes_while_it_is_read_is_not_kept(trace, place, monkeypatch):
    real = api.load

    def slow(*paths):
        found = real(*paths)
        trace.write_bytes(trace.read_bytes() + b" ")
        return found

    monkeypatch.setattr(api, "load", slow)
    api.explain(trace, cache=True)
    assert kept(place) == []


def test_a_report_from_the_cache_needs_neither_pandas_nor_duckdb(trace):
    code = """
import sys
from tracediag.cli import main
assert main(["explain", sys.argv[1]]) == 0
print([name for name in ("pandas", "duckdb", "numpy") if name in sys.modules], file=sys.stderr)
"""
    done = [subprocess.run([sys.executable, "-c", code, str(trace)], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stderr.strip() for run in done] == ["['pandas', 'duckdb', 'numpy']", "[]"]
    assert done[0].stdout == done[1].stdout
