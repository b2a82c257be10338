"""A part of the spoilt inputs of tools/fuzz.py, and the smallest forms of those that were once not taken well."""

from __future__ import annotations

import gc
import gzip
import io
import json
import tarfile
import time
import tracemalloc
import zipfile

import msgspec
import numpy as np
import pytest
from fuzz_inputs import make_input
from fuzz_run import run_inputs
from reader_samples import KINETO, chunk, kineto, kineto_bytes, number, xspace
from test_sources import TEXT, tar_bytes, zip_bytes

from tracediag import api, sources
from tracediag.engine import EngineResult
from tracediag.errors import InputError, TracediagError
from tracediag.links import DEEPEST, subtree_sums
from tracediag.readers._coding import NONE, nanoseconds
from tracediag.readers._jsonrepair import repair
from tracediag.readers._jsonscan import EventStream
from tracediag.readers._wire import lockstep
from tracediag.readers._xplane_names import copy_details, kernel_details
from tracediag.runjson import read_run
from tracediag.summary import summarize

SEED, COUNT = 7, 200


def test_spoilt_inputs_end_in_a_trace_or_in_one_line(tmp_path):
    outcomes = list(run_inputs(SEED, range(COUNT), 2, tmp_path / "inputs"))
    assert {outcome.number: outcome.problem for outcome in outcomes if outcome.problem} == {}
    assert sorted(outcome.number for outcome in outcomes) == list(range(COUNT))
    assert {"read", "explained", "InputError", "NotATraceError"} <= {outcome.ended for outcome in outcomes}


def test_an_input_is_the_same_every_time():
    assert [make_input(3, n) for n in range(40)] == [make_input(3, n) for n in range(40)]


def load(tmp_path, data, name="t.json"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return api.load(str(path))


def test_brackets_that_close_nothing_make_no_events(tmp_path):
    """Each gave the whole text since the last event once more: quadratic."""
    begin = time.process_time()
    trace = load(tmp_path, b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}' + b"x}" * 40_000 + b"]}")
    assert len(trace) == 1
    assert time.process_time() - begin < 5


def test_control_characters_by_the_million_are_escaped_at_once():
    begin = time.process_time()
    fixed, _ = repair(b'{"name": "' + b"\x01" * 1_000_000 + b'"}')
    assert json.loads(fixed) == {"name": "\x01" * 1_000_000}
    assert time.process_time() - begin < 3


ENDLESS = {
    "string": (b'"', b"1"),
    "escapes": (b'"', b"\\n"),
    "quotes": (b"", b'"'),
    "strings": (b"", b'"a\\n",'),
    "long strings": (b"", b'"' + b"\\n" * 300 + b'",'),
}


def stream_of(text):
    return EventStream(iter([text]), msgspec.json.Decoder(list[dict]).decode, msgspec.json.Decoder(dict).decode)


@pytest.mark.parametrize(("start", "again"), ENDLESS.values(), ids=ENDLESS)
def test_an_event_that_never_ends_costs_little_time_and_memory(start, again):
    """A string took over a hundred bytes for each of its characters."""
    head = b'{"traceEvents":[{"name":"a"},{"name":' + start
    begin = time.process_time()
    assert [event for batch in stream_of(head + again * ((6 << 20) // len(again))).batches() for event in batch] == [{"name": "a"}]
    assert time.process_time() - begin < 4
    text = head + again * ((1 << 20) // len(again))
    tracemalloc.start()
    try:
        assert sum(map(len, stream_of(text).batches())) == 1
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
    finally:
        tracemalloc.stop()


def test_names_by_the_thousand_are_looked_through_once():
    """Each was followed to the end of the event: quadratic."""
    begin = time.process_time()
    text = b'{"dur": NaN' + b', "name": "a"' * 100_000 + b"}"
    assert len(repair(text)[0]) == len(text) + 3
    assert time.process_time() - begin < 4


def test_a_value_that_is_repaired_costs_no_more_memory_than_its_length():
    text = b'{"dur": NaN, "name": "' + b"1" * 2_000_000 + b'"}'
    tracemalloc.start()
    try:
        assert len(repair(text)[0]) == len(text) + 3  # -1e400
        assert tracemalloc.get_traced_memory()[1] < 16 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [{"a": 1}, [1], "x", -(10**400), 1 << 70, True, 0.5])
def test_devices_of_odd_kinds_become_unknown(tmp_path, value):
    row = {"id": 0, "name": value, "numSms": value, "totalGlobalMem": value, "computeMajor": value, "computeMinor": value, "warpSize": 32}
    trace = load(tmp_path, kineto_bytes(kineto(deviceProperties=[row])))
    assert len(trace.sql("select * from devices")) == 1


@pytest.mark.parametrize("headers", [{"GNU.sparse.map": "x"}, {"size": "-7"}, {"size": "x"}])
def test_tar_headers_that_are_no_numbers(tmp_path, headers):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a.json")
        info.size, info.pax_headers = len(TEXT), headers
        archive.addfile(info, io.BytesIO(TEXT))
    with pytest.raises(TracediagError):
        load(tmp_path, buffer.getvalue())


def test_a_tar_member_that_ends_early_is_cut_off(tmp_path):
    path = tmp_path / "t.tar"
    path.write_bytes(tar_bytes("w", {"a.json": TEXT * 1000})[:1500])
    (source,), _ = sources.open_sources([str(path)])
    source.read()
    assert source.truncated


@pytest.mark.parametrize("outer", ["zip", "tar", "tgz"])
@pytest.mark.parametrize("inner", ["zip", "tgz"])
def test_archives_stay_open_while_what_lies_in_them_is_read(tmp_path, outer, inner):
    """The outer one was closed when nothing but a stream from it was left."""
    members = {"a.json": TEXT, "b.json": TEXT}
    data = gzip.compress(zip_bytes(members) if inner == "zip" else tar_bytes("w", members))
    wrapped = {"in.gz": data}
    whole = zip_bytes(wrapped) if outer == "zip" else tar_bytes("w:gz" if outer == "tgz" else "w", wrapped)
    path = tmp_path / "t"
    path.write_bytes(whole)
    found, _ = sources.open_sources([str(path)])
    gc.collect()
    assert [source.read() for source in found] == [TEXT, TEXT]


def test_the_directory_of_a_zip_is_read_once_and_not_once_a_member(tmp_path, monkeypatch):
    path = tmp_path / "t.zip"
    path.write_bytes(zip_bytes({f"{i}.json": TEXT for i in range(30)}))
    opened = []
    real = zipfile.ZipFile

    def counted(*args):
        opened.append(args)
        return real(*args)

    monkeypatch.setattr(sources.zipfile, "ZipFile", counted)
    found, _ = sources.open_sources([str(path)])
    assert [source.read() for source in found] == [TEXT] * 30
    assert len(opened) == 1


def test_a_zip_packed_by_lzma_that_is_broken(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.json", kineto_bytes(kineto()) * 40)
    data = bytearray(buffer.getvalue())
    data[60:90] = b"\xff" * 30
    with pytest.raises(TracediagError):
        load(tmp_path, bytes(data), "t.zip")


def test_times_that_no_recording_spans_are_left_out_however_many(tmp_path):
    far = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10**i, "dur": 10**i} for i in range(19)] * 20
    trace = load(tmp_path, json.dumps({"traceEvents": [*KINETO["traceEvents"], *far]}).encode())
    assert 0 < len(trace) < len(far)
    assert trace.end.max() < 1 << 54
    assert "implausible-times" in {item.id for item in trace.health}


def test_sums_over_very_deep_nesting_equal_those_level_by_level():
    n = DEEPEST + 200
    parent = np.arange(-1, n - 1)
    assert subtree_sums(parent, np.ones(n, np.int64)).tolist() == list(range(n, 0, -1))


def test_messages_of_very_many_fields_are_read_field_by_field():
    few, many = number(1, 7), b"".join(number(2, i) for i in range(1000)) + chunk(4, b"abc") + b"\x19" + b"\xff" * 8
    data = few + many + bytes(16)
    starts, ends = np.asarray([0, len(few)]), np.asarray([len(few), len(few + many)])
    found = list(lockstep(np.frombuffer(data, np.uint8), starts, ends))
    seen = [(r, n, v) for f in found for r, n, v in zip(f.row.tolist(), f.number.tolist(), f.value.tolist(), strict=True)]
    assert seen[:2] == [(0, 1, 7), (1, 2, 0)]
    assert seen[-3:] == [(1, 2, 999), (1, 4, 0), (1, 3, -1)]
    last = found[-1]
    assert data[last.start[-2] : last.end[-2]] == b"abc"


def test_an_xplane_event_of_a_hundred_thousand_fields_is_no_hang(tmp_path):
    planes = [{"name": "/host:CPU", "lines": [{"id": 1, "name": "t", "timestamp_ns": 0, "events": [("a", 0, 1000, {})]}]}]
    data = xspace(planes)
    odd = chunk(1, chunk(2, "/host:x") + chunk(3, chunk(4, number(2, 5) * 100_000)))
    begin = time.process_time()
    load(tmp_path, data + odd, "t.xplane.pb")
    assert time.process_time() - begin < 5


GOOD_RUN = {"schema": "tracediag.run/1", "framework": "torch", "script": "a.py", "windows": [{"file": "t.json", "first_step": 5}]}


@pytest.mark.parametrize(
    "key", ["windows", "step_series", "graphs", "sources", "params", "flags", "versions", "devices", "notes", "script"]
)
@pytest.mark.parametrize("value", [3, "x", [1], {"a": 1}, [[1, 2, 3, 4]], {"wall_ns": [-1, "x"]}, {"g": {"nodes": [["a"]]}}, {"g": None}])
def test_facts_of_odd_kinds_are_left_out_and_named(tmp_path, key, value):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(GOOD_RUN | {key: value}))
    (folder / "t.json").write_bytes(kineto_bytes(kineto()))
    trace = api.load(str(folder))
    assert set(trace.frames) >= {"ops", "steps"}
    assert summarize(trace, EngineResult((), ()), 0).to_json()
    assert trace.run.get(key) == value or "odd-run-facts" in {item.id for item in trace.health}


@pytest.mark.parametrize("data", [b"[" * 200_000, b"{", b"\xff", b"1" * 10_000, b'{"schema": "tracediag.run/2"}'])
def test_broken_facts_end_in_one_line(data):
    try:
        assert read_run("run.json", data) is None
    except InputError as error:
        assert "\n" not in str(error)


def test_what_cannot_be_written_again_is_cleaned():
    run = read_run(
        "run.json", b'{"schema": "tracediag.run/1", "script": "\\ud800.py", "flags": {"a": NaN, "b": 1e999, "c": 1' + b"0" * 5000 + b"}}"
    )
    assert run == {"schema": "tracediag.run/1", "script": "?.py", "flags": {"a": None, "b": None, "c": None}}


def test_numbers_of_thousands_of_digits_in_texts_are_no_numbers():
    digits = "1" * 5000
    assert kernel_details(f"regs:{digits} grid:{digits},2 block:\u00b2,3")["grid"] == [2]
    assert copy_details(f"dest:{digits}") == {"dest": digits}


def test_times_with_endless_exponents_or_commas_leave_the_others_where_they_are():
    texts = [b"1", b"1e999999999999999999", b'"2,3"', b"[4,5]", b"6.5", b"-1e999999"]
    assert nanoseconds(texts).tolist() == [1000, NONE, NONE, NONE, 6500, NONE]
