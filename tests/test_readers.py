from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from format_samples import ascend, dumped, json_variants, local_trace, run_metadata, run_metadata_text, timeline, trace_json
from reader_samples import XPLANE, kineto, kineto_bytes, reversed_keys, shuffled, xspace
from reference_reader import COLUMNS, XPLANE_COLUMNS, kineto_rows, rows_of, xplane_rows

from tracediag.columns import ROLES
from tracediag.errors import BrokenTraceError, InputError, NotATraceError
from tracediag.readers import READERS, read_all

TRACES = Path(__file__).parents[2] / "shared" / "traces"
ALL_COLUMNS = (*COLUMNS, "flops")
SLOW = 60_000  # bytes of a file that the reference needs seconds for
LISTS = ("label", "out_shapes", "out_dtypes", "detail")


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def read(path: str):
    (raw,), run, (row,) = read_all([path])
    assert run is None
    assert row.pop("path") == Path(path).name
    assert row.pop("bytes") == Path(path).stat().st_size
    assert row == {"format": raw.format, "framework": raw.framework, "events": raw.events, "rank": raw.rank}
    return raw


def kineto_variants():
    events = kineto()["traceEvents"]
    document = kineto()
    tail = {"traceEvents": document.pop("traceEvents"), **document, "metadata": {"deep": [{"traceEvents": [1, {"a": "},{"}]}] * 50}}
    yield "event order", kineto_bytes(kineto(traceEvents=shuffled(events)))
    yield "key order", kineto_bytes(reversed_keys(kineto()))
    yield "keys of the trace behind its events", kineto_bytes(tail)
    yield "compact", kineto_bytes(kineto(), separators=(",", ":"))
    yield "indented", kineto_bytes(kineto(), indent=2)
    yield "byte order mark", b"\xef\xbb\xbf" + kineto_bytes(kineto())
    yield "gzip of two members", gzip.compress(kineto_bytes(kineto())[:700]) + gzip.compress(kineto_bytes(kineto())[700:])


def xplane_variants():
    yield "event order", xspace(XPLANE, seed=3)
    yield "field order", xspace(XPLANE, backwards=True)
    yield "plane order", xspace(XPLANE[::-1])
    yield "gzip", gzip.compress(xspace(XPLANE))


FORMATS = {
    "kineto": (".json", kineto_bytes(kineto()), dict(kineto_variants())),
    "xplane": (".xplane.pb", xspace(XPLANE), dict(xplane_variants())),
    "ascend": (".json", dumped(ascend()), json_variants(ascend(), ascend(seed=3))),
    "tf1-timeline": (".json", dumped(timeline()), json_variants(timeline(), timeline(seed=3))),
    "tf1-runmetadata": ("", run_metadata(), {"text": run_metadata_text(), "event order": run_metadata(seed=3)}),
    "tf-local-trace": (".trace", local_trace(), {"event order": local_trace(seed=3), "gzip": gzip.compress(local_trace())}),
    "tf-trace-json": (".trace.json", dumped(trace_json()), json_variants(trace_json(), trace_json(seed=3))),
}
CLOCKS = {"kineto": 1_000_001, "xplane": 1_000_001, "tf-local-trace": 1_000_001}
"""Time shift that each format can hold, ns; the others count in microseconds."""
CASES = [(form, name) for form, (_, _, variants) in FORMATS.items() for name in variants]


def test_every_reader_has_a_sample_and_knows_only_its_own():
    assert {reader.FORMAT for reader in READERS} == set(FORMATS)
    for form, (_, data, _) in FORMATS.items():
        assert next(reader.FORMAT for reader in READERS if reader.sniff(data)) == form
        known_to_all = {"kineto"} if data.startswith((b"{", b"[")) else set()  # it has no mark of its own, so it is asked after the others
        assert {reader.FORMAT for reader in READERS if reader.sniff(data)} - known_to_all <= {form}


@pytest.mark.parametrize(("form", "name"), CASES)
def test_what_the_file_looks_like_changes_nothing(tmp_path, form, name):
    suffix, data, variants = FORMATS[form]
    base, other = read(write(tmp_path / f"a{suffix}", data)), read(write(tmp_path / f"b{suffix}", variants[name]))
    assert rows_of(other, ALL_COLUMNS) == rows_of(base, ALL_COLUMNS)
    for column in LISTS:
        assert sorted(getattr(other, column).to_objects(), key=str) == sorted(getattr(base, column).to_objects(), key=str)
    assert other.events == base.events
    assert other.facts == base.facts
    assert other.health == base.health
    assert {item.id for item in base.health} <= {"lossy-format"}
    assert memory_of(other) == memory_of(base)


def memory_of(raw, shift=0):
    return None if raw.memory is None else sorted(zip((raw.memory.t_ns - shift).tolist(), raw.memory.bytes.tolist(), strict=True))


def shifted(form: str, by_ns: int) -> bytes:
    if form == "tf-local-trace":
        return local_trace(by_ns * 1000)
    if form == "tf1-runmetadata":
        return run_metadata(by_ns // 1000)
    if form in ("tf1-timeline", "tf-trace-json", "ascend"):
        return dumped({"tf1-timeline": timeline, "tf-trace-json": trace_json, "ascend": ascend}[form](by_ns // 1000))
    if form == "kineto":
        document = kineto()
        for event in document["traceEvents"]:
            whole, _, part = event["ts"].partition(".")
            ns = int(whole) * 1000 + int((part + "000")[:3]) + by_ns
            event["ts"] = f"{ns // 1000}.{ns % 1000:03d}"
        return kineto_bytes(document)
    planes = [plane | {"lines": [line | {"timestamp_ns": line["timestamp_ns"] + by_ns} for line in plane["lines"]]} for plane in XPLANE]
    return xspace(planes)


@pytest.mark.parametrize("form", FORMATS)
def test_a_time_shift_moves_the_starts_and_nothing_else(tmp_path, form):
    suffix, data, _ = FORMATS[form]
    by = CLOCKS.get(form, 1_000_000)
    base, other = read(write(tmp_path / f"a{suffix}", data)), read(write(tmp_path / f"b{suffix}", shifted(form, by)))
    assert (other.start_ns - base.start_ns).tolist() == [by] * len(base)
    assert memory_of(other, by) == memory_of(base)
    columns = [column for column in ALL_COLUMNS if column != "start_ns"]
    assert rows_of(other, columns) == rows_of(base, columns)


@pytest.mark.parametrize("form", FORMATS)
def test_columns_are_well_formed(tmp_path, form):
    suffix, data, _ = FORMATS[form]
    raw = read(write(tmp_path / f"a{suffix}", data))
    assert raw.format == form
    assert raw.role.values == ROLES
    for column in ("name", "role", "lane"):
        assert (getattr(raw, column).codes >= 0).all()
    for name, column in vars(raw).items():
        if hasattr(column, "codes"):
            assert len(column) == len(raw), name
            assert len(set(column.values)) == len(column.values), name
            assert all(isinstance(value, str) for value in column.values), name
        elif hasattr(column, "valid"):
            assert len(column) == len(raw), name
    for column in ("in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "out_dtypes", "detail"):
        for value in getattr(raw, column).values:
            assert json.dumps(json.loads(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False) == value


def test_kineto_agrees_with_the_reference(tmp_path):
    data = kineto_bytes(kineto())
    raw = read(write(tmp_path / "a.json", data))
    assert (raw.events, rows_of(raw)) == kineto_rows(data)


def test_xplane_agrees_with_the_reference(tmp_path):
    data = xspace(XPLANE)
    raw = read(write(tmp_path / "a.xplane.pb", data))
    count, rows = xplane_rows(data)
    labels_of_the_gpu_left_out = [(*row[:2], ..., *row[3:]) if row[3] else row for row in rows_of(raw, XPLANE_COLUMNS)]
    assert raw.events == count
    assert sorted(labels_of_the_gpu_left_out, key=repr) == rows


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside this checkout")
@pytest.mark.parametrize(
    "folder", ["kineto-cuda", "kineto-cuda-8rank-dlrm", "kineto-cuda-legacy", "kineto-rocm", "xplane-tf", "xplane-jax-rocm"]
)
def test_real_files_agree_with_the_reference(folder):
    for path in sorted(path for path in (TRACES / folder).iterdir() if path.stat().st_size < SLOW or path.suffix == ".pb"):
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        raw = read(str(path))
        if path.suffix == ".pb":
            count, rows = xplane_rows(data)
            mine = [(*row[:2], ..., *row[3:]) if row[0] in ("kernel", "copy", "memset") else row for row in rows_of(raw, XPLANE_COLUMNS)]
        else:
            (count, rows), mine = kineto_rows(data), rows_of(raw)
        assert raw.events == count, path
        assert sorted(mine, key=repr) == rows, path
        assert raw.health == (), path


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside this checkout")
@pytest.mark.parametrize("folder", ["kineto-cuda", "kineto-cuda-8rank-dlrm", "kineto-cuda-legacy", "kineto-cpu"])
def test_every_record_of_a_real_file_is_counted(folder):
    for path in sorted((TRACES / folder).iterdir()):
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
        assert read(str(path)).events == len(document["traceEvents"] if isinstance(document, dict) else document), path


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside this checkout")
def test_real_files_agree_with_their_key():
    for key in json.loads((TRACES / "KEYS.json").read_text()):
        name = key["file"][0] if isinstance(key["file"], list) else key["file"]
        facts = key["facts"]
        if not name.startswith(("kineto-cuda", "kineto-rocm", "xplane-")) or "events" not in facts:
            continue
        raw = read(str(TRACES / name))
        devices = set(raw.device.take(raw.role.isin(["kernel"])).to_objects().tolist())
        assert raw.events == facts["events"], name
        assert raw.role.isin(["kernel"]).sum() / max(1, len(devices)) == facts["kernels"], name


def test_what_is_no_trace_is_named(tmp_path):
    for data, words in {
        b"": "empty file",
        b"<!DOCTYPE html><html>": "web page",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:1": "git lfs pull",
        '{"traceEvents": []}'.encode("utf-16"): "UTF-16",
        b'{"a": 1}': "JSON without traceEvents",
        b'{"schema": "1.0.1", "pid": 1, "nodes": []}': "execution trace",
        b"[[-1, 1, 2, 3]]": "memory timeline",
        b'{"schema": "tracediag.report/1"}': "a file that tracediag wrote",
        b"hello": "no format that is known",
        b'[\n{"name": "CYCLE_START", "ph": "i", "ts": 1}, {"ph": "X", "name": "4", "ts": 2, "pid": 1, "dur": 0}]': "Horovod timeline",
        b'[{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1}}]': "SageMaker",
        b'[[{"_name": "aten::mm", "_start_us": 1}]]': "written out by hand",
        b'{"segments": [], "device_traces": []}': "snapshot of CUDA memory",
        b"\x80\x04\x95": "pickle",
        b"SQLite format 3\x00 ... CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL": "Nsight Systems",
        b"SQLite format 3\x00 ... CREATE TABLE rocpd_op": "rocprof",
        b'node {\n  name: "a"\n}': "GraphDef",
        b"\x0a\x1b\x0a\x03DW2\x1a\x14_trainable_variables": "op log",
        b'{\x00"\x00a\x00"\x00': "UTF-16",
    }.items():
        with pytest.raises(NotATraceError, match=r"^f: ") as error:
            read_all([write(tmp_path / "f", data)])
        assert words in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [b'{"traceEvents": [{"ph": "X", "na', b'{"schemaVersion": 1, "devicePro', xspace(XPLANE)[:9]])
def test_a_file_of_which_nothing_is_left_is_an_error(tmp_path, data):
    with pytest.raises((BrokenTraceError, NotATraceError)):
        read_all([write(tmp_path / "f.json", data)])


@pytest.mark.parametrize("data", [kineto_bytes(kineto(traceEvents=[])), dumped({"metadata": {"highres-ticks": True}, "traceEvents": [{}]})])
def test_a_file_without_a_timed_event_says_so(tmp_path, data):
    raw = read(write(tmp_path / "f.json", data))
    assert len(raw) == 0
    assert raw.health[-1].id == "no-events"


def test_run_json_travels_beside_the_traces(tmp_path):
    write(tmp_path / "rank0.pt.trace.json", kineto_bytes(kineto()))
    write(tmp_path / "report.json", b"{}")
    write(tmp_path / "run.json", b'{"schema": "tracediag.run/1", "framework": "torch"}')
    raws, run, inputs = read_all([str(tmp_path)])
    assert [raw.rank for raw in raws] == [3]
    assert run == {"schema": "tracediag.run/1", "framework": "torch"}
    assert [row["path"] for row in inputs] == ["rank0.pt.trace.json"]


@pytest.mark.parametrize(("text", "words"), [(b'{"schema": "tracediag.run/2"}', "upgrade"), (b"{", "broken JSON")])
def test_a_run_json_that_cannot_be_used_is_an_error(tmp_path, text, words):
    write(tmp_path / "a.json", kineto_bytes(kineto()))
    write(tmp_path / "run.json", text)
    with pytest.raises(InputError, match=words):
        read_all([str(tmp_path)])


def test_a_folder_of_other_files_names_the_first(tmp_path):
    write(tmp_path / "a.json", b'{"a": 1}')
    with pytest.raises(NotATraceError, match=r"a\.json: JSON without traceEvents"):
        read_all([str(tmp_path)])


@pytest.mark.parametrize("form", FORMATS)
def test_damage_anywhere_gives_rows_or_one_of_our_errors(tmp_path, form):
    suffix, data, _ = FORMATS[form]
    rng = random.Random(7)
    damaged = [data[: rng.randrange(len(data))] for _ in range(60)]
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(data))] = rng.randrange(256)
        damaged.append(bytes(broken))
    for number, text in enumerate(damaged):
        try:
            (raw,), _, _ = read_all([write(tmp_path / f"{number}{suffix}", text)])
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert len(raw) - raw.step_num.valid.sum() <= raw.events  # a run of a session is a row of its own
            assert (raw.dur_ns >= 0).all()


@pytest.mark.parametrize("form", [form for form in FORMATS if FORMATS[form][1].startswith((b"{", b"["))])
def test_nesting_without_end_costs_one_event(tmp_path, form):
    suffix, data, _ = FORMATS[form]
    deep = b'"args": {"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b", "
    base, raw = read(write(tmp_path / f"a{suffix}", data)), read(write(tmp_path / f"b{suffix}", data.replace(b'"args": {', deep, 1)))
    assert raw.events == base.events - 1
    assert "broken-events" in [item.id for item in raw.health]
