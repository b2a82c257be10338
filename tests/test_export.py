"""Exports: tables keep the types of the schema, and a timeline for Perfetto is read back equal by our own reader."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from reader_samples import XPLANE, kineto, kineto_bytes, xspace

from tracediag import api
from tracediag.cli import main
from tracediag.export import write_perfetto
from tracediag.intervals import empty
from tracediag.perfetto import FINDINGS
from tracediag.schema import table
from tracediag.trace import Trace

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT.parent / "shared" / "traces"
RECORDED = sorted(ROOT.glob("fixtures/*/slow"))
PUBLIC = [
    TRACES / name
    for name in (
        "kineto-cuda/e443f3.json.gz", "kineto-rocm/b6a467.json.gz", "kineto-cpu/05cd72.pt.trace.json.gz", "kineto-mtia/4c9b67.json.gz",
        "kineto-npu/f622e9.json.gz", "xplane-jax-rocm/81fb4a.xplane.pb", "xplane-tpu/2cc124.xplane.pb",
    )
]  # fmt: skip
SAME = ("name", "role", "label", "kind", "framework", "place", "device", "lane", "rank", "phase", "in_strides", "in_values", "in_shapes",
        "in_dtypes")  # fmt: skip
TORCH = ("out_shapes", "out_dtypes", "bytes", "flops", "sequence")
NUMBERS = ("parent_id", "step", "launch_id", "device_ns")


def values(trace: Trace, column: str) -> list[object]:
    cells = trace.columns[column]
    if hasattr(cells, "to_objects"):
        return cells.to_objects().tolist()
    return np.where(cells.valid, cells.values, -1).tolist() if hasattr(cells, "valid") else cells.tolist()


def assert_equal(before: Trace, after: Trace) -> None:
    host = before.strings("role").isin(["op", "annotation", "function", "framework"])
    assert len(before) == len(after)
    for column in (*SAME, *NUMBERS, "start_ns", "dur_ns", "self_ns"):
        mine, back = values(before, column), values(after, column)
        if column.startswith("in_") and before.frameworks != ("torch",):  # shapes of TensorFlow's calls and kernels are not read back
            mine = [value for value, op in zip(mine, host, strict=True) if op]
            back = [value for value, op in zip(back, host, strict=True) if op]
            mine = [None if value == "[]" else value for value in mine]
        assert mine == back, column
    if before.frameworks == ("torch",):
        assert [column for column in TORCH if values(before, column) != values(after, column)] == []
        assert before.memory.equals(after.memory)
        work = before.strings("device").isin(["cuda:0"]).tolist()  # other vendors' own facts are not read back
        assert [a for a, on in zip(values(before, "detail"), work, strict=True) if on] == [
            b for b, on in zip(values(after, "detail"), work, strict=True) if on
        ]
    assert before.steps.equals(after.steps)
    assert before.device_stats() == after.device_stats()
    assert before.breakdown() == after.breakdown()


def round_trip(trace: Trace, place: Path) -> Trace:
    written = api.export(trace, "perfetto", place / "t.perfetto.json.gz")
    return api.load(written[0] if len(written) == 1 else written[0].parent)


@pytest.mark.parametrize("start", ["1700000000000000", "0"])
def test_every_kind_of_event_is_read_back_equal(tmp_path, start):
    (tmp_path / "t.json").write_bytes(kineto_bytes(kineto()).replace(b"17000000000000", start[:-2].encode() or b"0"))
    trace = api.load(tmp_path / "t.json")
    assert_equal(trace, round_trip(trace, tmp_path))


def test_tensorflow_is_read_back_equal(tmp_path):
    (tmp_path / "t.xplane.pb").write_bytes(xspace(XPLANE))
    trace = api.load(tmp_path / "t.xplane.pb")
    assert_equal(trace, round_trip(trace, tmp_path))


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.parent.name)
def test_recorded_fixtures_are_read_back_equal(tmp_path, folder):
    trace = api.load(folder)
    assert_equal(trace, round_trip(trace, tmp_path))


@pytest.mark.traces
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.parent.name)
def test_real_files_are_read_back_equal(tmp_path, path):
    if not path.exists():
        pytest.skip("needs the folder of public traces beside the checkout")
    trace = api.load(path)
    assert_equal(trace, round_trip(trace, tmp_path))


def two_ranks() -> Trace:
    rows = []
    for rank in range(2):
        rows.append({"name": "aten::mm", "rank": rank, "start_ns": 1000 + rank, "dur_ns": 500, "lane": "7/8"})
        rows.append({"name": "ampere_sgemm", "rank": rank, "place": "device", "device": f"cuda:{rank}", "start_ns": 1200,
                     "dur_ns": 2001 + rank, "lane": f"gpu {rank} stream 7"})  # fmt: skip
    return Trace.from_rows({"ops": rows})


def test_ranks_get_a_file_each(tmp_path):
    trace = two_ranks()
    written = api.export(trace, "perfetto", tmp_path / "job.perfetto.json.gz")
    assert [str(path.relative_to(tmp_path)) for path in written] == ["job/rank0.json.gz", "job/rank1.json.gz"]
    assert_equal(trace, api.load(tmp_path / "job"))


def records(path: Path) -> list[dict]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return json.loads(text, parse_float=str, parse_int=str)["traceEvents"]


def test_times_are_exact_decimal_microseconds(tmp_path):
    start = (1 << 60) + 7
    trace = Trace.from_rows({"ops": [{"name": "a", "start_ns": start, "dur_ns": 1}, {"name": "b", "start_ns": 5, "dur_ns": 1_000_003}]})
    (written,) = api.export(trace, "perfetto", tmp_path / "t.json")
    times = [(row["ts"], row["dur"]) for row in records(written) if row["ph"] == "X"]
    assert all(re.fullmatch(r"\d+\.\d{3}", text) for pair in times for text in pair)
    assert [int(text.replace(".", "")) for pair in times for text in pair] == [start - 5, 1, 0, 1_000_003]


def test_findings_have_a_track_of_their_own_that_is_no_op(tmp_path):
    folder = next(path for path in RECORDED if path.parent.name == "torch-double-model")
    trace = api.load(folder)
    report = api.explain(trace)
    (written,) = api.export(trace, "perfetto", tmp_path / "t.json.gz")
    slices = [row for row in records(written) if row["pid"] == FINDINGS]
    with_time = [f for f in report.findings if any(row["tid"].endswith(f" {f.rule}") for row in slices)]
    assert with_time
    assert slices[0]["args"].keys() >= {"rule", "title", "share", "severity"}
    assert {row["args"]["title"] for row in slices} <= {finding.title for finding in report.findings}
    steps = trace.step_intervals()
    whole = int((steps[1] - steps[0]).sum())
    for finding in with_time:
        lane = [row for row in slices if row["args"]["rule"] == finding.rule and float(row["args"]["share"]) == finding.share]
        owned = sum(int(row["dur"].replace(".", "")) for row in lane)
        assert owned / whole == pytest.approx(finding.share, abs=1e-5)
    back = api.load(written)
    assert len(back) == len(trace)
    assert not any(FINDINGS in name for name in back.strings("lane").values)


def test_a_finding_without_intervals_has_a_lane_too(tmp_path):
    trace = api.load(next(path for path in RECORDED if path.parent.name == "torch-double-model"))
    finding = api.explain(trace).findings[0]
    (written,) = write_perfetto(trace, [(finding, empty())], tmp_path / "t.json")
    rows = [row for row in records(written) if row["pid"] == FINDINGS]
    start, end = trace.step_intervals()
    assert sum(int(row["dur"].replace(".", "")) for row in rows) == int((end - start).sum())
    assert all("every step" in row["args"]["owns"] for row in rows)


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    trace = two_ranks()
    first = [path.read_bytes() for path in api.export(trace, "perfetto", tmp_path / "a.json.gz")]
    assert first == [path.read_bytes() for path in api.export(two_ranks(), "perfetto", tmp_path / "b.json.gz")]


@pytest.fixture
def recorded() -> Trace:
    return api.load(next(path for path in RECORDED if path.parent.name == "torch-double-model"))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_keep_rows_types_and_nulls(tmp_path, recorded, form):
    written = api.export(recorded, form, tmp_path / "it's a folder")
    assert {path.stem for path in written} == set(recorded.frames) >= {"ops", "steps", "gaps", "memory", "params"}
    with duckdb.connect(":memory:") as own:
        for path in written:
            definition = table(path.stem)
            read = own.read_parquet(str(path)) if form == "parquet" else own.read_csv(
                str(path), dtype={c.name: c.type for c in definition.columns}, header=True
            )  # fmt: skip
            assert tuple(read.columns) == definition.names
            assert [str(kind) for kind in read.types] == [column.type for column in definition.columns]
            names = ", ".join(f'"{name}"' for name in definition.names)
            inside = recorded.connection().execute(f'SELECT {names} FROM "{path.stem}"').fetchall()
            assert read.fetchall() == inside


def test_parquet_loads_in_pandas(tmp_path, recorded):
    if not any(importlib.util.find_spec(name) for name in ("pyarrow", "fastparquet")):
        pytest.skip("pandas reads parquet with pyarrow")
    import pandas as pd

    api.export(recorded, "parquet", tmp_path)
    ops = pd.read_parquet(tmp_path / "ops.parquet", dtype_backend="numpy_nullable")
    assert len(ops) == len(recorded)
    assert str(ops["start_ns"].dtype) == "Int64"
    assert int(ops["launch_id"].isna().sum()) == int((recorded.launch < 0).sum())


def test_command_writes_and_says_what(tmp_path, monkeypatch, capsys):
    folder = next(path for path in RECORDED if path.parent.name == "torch-double-model")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(folder), "--to", "parquet"]) == 0
    assert Path("slow-parquet/ops.parquet").is_file()
    assert "slow-parquet/ops.parquet" in capsys.readouterr().out.replace("\\", "/").splitlines()
    assert main(["export", str(folder), "--to", "perfetto"]) == 0
    assert Path("slow.perfetto.json.gz").is_file()
    assert main(["export", str(folder), "--to", "csv", "--output", "there/deep"]) == 0
    assert Path("there/deep/ops.csv").read_text().startswith("op_id,parent_id,name,")


@pytest.mark.parametrize("form", ["parquet", "csv", "perfetto"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, capsys, form):
    folder = next(path for path in RECORDED if path.parent.name == "torch-double-model")
    (tmp_path / "file").write_text("")
    assert main(["export", str(folder), "--to", form, "--output", str(tmp_path / "file" / "x")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot write" in said


@pytest.mark.parametrize(
    ("source", "to", "name"),
    [
        ("runs/train-1/", "csv", "train-1-csv"),
        ("a/rank0.pt.trace.json.gz", "perfetto", "rank0.perfetto.json.gz"),
        ("gs://bucket/host.xplane.pb", "parquet", "host-parquet"),
        ("/", "csv", "trace-csv"),
    ],
)
def test_default_place_is_named_after_the_trace(source, to, name):
    assert str(api.default_export(source, to)) == name
