import numpy as np
import pandas as pd
import pytest

from tracediag.columns import Coded
from tracediag.errors import InputError
from tracediag.intervals import total
from tracediag.schema import TABLES, table
from tracediag.trace import Trace

PANDAS = {"BIGINT": ("int64", "Int64"), "INTEGER": ("int32", "int64", "Int32"), "DOUBLE": ("Float64",), "BOOLEAN": ("boolean", "bool")}

WITH_DEVICE = {
    "ops": [
        {"name": "aten::linear", "start_ns": 0, "dur_ns": 100, "in_shapes": [[2, 3]]},
        {"name": "aten::addmm", "start_ns": 10, "dur_ns": 80},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 20, "dur_ns": 10},
        {"name": "sgemm", "place": "device", "launch": 2, "start_ns": 40, "dur_ns": 30},
        {"name": "aten::relu", "start_ns": 110, "dur_ns": 50},
        {"name": "cudaLaunchKernel", "role": "runtime", "start_ns": 120, "dur_ns": 10},
        {"name": "relu_kernel", "place": "device", "launch": 5, "start_ns": 140, "dur_ns": 20},
    ],
    "steps": [{"step": 0, "start_ns": 0, "end_ns": 200}],
    "memory": [{"t_ns": 5, "bytes": 64}],
    "params": [{"name": "w", "numel": 6, "requires_grad": True, "weight_decay": 0.5}, {}],
    "step_series": [{"wall_ns": 200}, {"wall_ns": 220}],
    "flags": [{"flag": "torch.num_threads", "value": 2}],
}


@pytest.fixture(scope="module")
def trace():
    return Trace.from_rows(WITH_DEVICE)


def host_only(**more):
    return Trace.from_rows({**WITH_DEVICE, "ops": [row for row in WITH_DEVICE["ops"] if row["name"].startswith("aten")], **more})


def ranks(count, **step):
    rows = [{**row, "rank": rank} for rank in range(count) for row in WITH_DEVICE["ops"]]
    for i, row in enumerate(rows):
        if "launch" in row:
            row["launch"] += len(WITH_DEVICE["ops"]) * (i // len(WITH_DEVICE["ops"]))
    return Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 200, "rank": rank} for rank in range(count)]})


def test_rows_become_a_trace(trace):
    assert len(trace) == 8  # the step marker is a row too
    assert trace.has_device and trace.has_steps
    assert trace.frameworks == ("torch",)
    assert trace.ops["name"].tolist()[:2] == ["aten::linear", "aten::addmm"]


def test_rows_default_to_one_behind_the_other():
    trace = Trace.from_rows({"ops": [{"name": "aten::mm"}, {"name": "aten::mm", "dur_ns": 5, "repeat": 2, "every_ns": 50}]})
    assert trace.start.tolist() == [0, 1000, 1050]
    assert trace.end.tolist() == [1000, 1005, 1055]


def test_what_a_row_states_wins_over_what_is_derived():
    trace = Trace.from_rows({"ops": [{"name": "aten::mm", "kind": "conv", "phase": "backward", "source": "a.py:3"}, {"name": "aten::mm"}]})
    assert trace.ops["kind"].tolist() == ["conv", "matmul"]
    assert trace.ops["phase"].tolist() == ["backward", "forward"]
    assert trace.ops["source"].astype(object).tolist()[0] == "a.py:3"


def test_a_key_that_is_no_column_is_an_error():
    with pytest.raises(InputError, match="durr"):
        Trace.from_rows({"ops": [{"name": "aten::mm", "durr": 1}]})


def test_frames_have_the_columns_and_types_of_the_schema(trace):
    for name, frame in trace.frames.items():
        definition = table(name)
        assert tuple(frame.columns) == definition.names
        for column in definition.columns:
            if column.type != "VARCHAR":
                assert str(frame[column.name].dtype) in PANDAS[column.type], (name, column.name)
            if not column.nullable:
                assert not frame[column.name].isna().any(), (name, column.name)


def test_the_database_has_every_table_with_the_types_of_the_schema(trace):
    for definition in TABLES:
        described = trace.connection().execute(f'SELECT * FROM "{definition.name}" LIMIT 0').description
        assert [(row[0], str(row[1])) for row in described] == [(column.name, column.type) for column in definition.columns]


def test_unknown_is_null_everywhere_and_never_a_sentinel(trace):
    null = {
        ("ops", "parent_id"): 0, ("ops", "launch_id"): 0, ("ops", "rank"): 0, ("ops", "bytes"): 0, ("ops", "flops"): 0,
        ("ops", "sequence"): 0, ("ops", "in_shapes"): 1, ("ops", "label"): 0, ("ops", "source"): 0, ("ops", "device_ns"): 3,
        ("memory", "allocated"): 0, ("memory", "device"): 0, ("steps", "rank"): 0, ("params", "numel"): 1, ("params", "weight_decay"): 1,
        ("params", "requires_grad"): 1, ("step_series", "compiles"): 0,
    }  # fmt: skip
    for (name, column), row in null.items():
        values = trace.connection().execute(f'SELECT "{column}" FROM "{name}"').fetchall()
        frame = trace.frames[name][column]
        nulls = [value[0] is None for value in values]
        assert nulls == frame.isna().tolist(), (name, column)
        assert nulls[row], (name, column)
    sentinels = "parent_id = -1 OR launch_id = -1 OR rank = -1 OR step = -1 OR source = ''"
    assert trace.sql(f"SELECT count(*) AS n FROM ops WHERE {sentinels}")["n"][0] == 0
    assert trace.sql("SELECT count(parent_id) AS n FROM ops")["n"][0] == int((trace.parent >= 0).sum())
    assert trace.sql("SELECT count(launch_id) AS n FROM ops")["n"][0] == 2
    assert trace.sql("SELECT count(rank) + count(bytes) + count(flops) + count(label) AS n FROM ops")["n"][0] == 0


def test_busy_is_null_without_a_device():
    assert host_only().steps["busy_ns"].isna().all()
    assert host_only().ops["device_ns"].isna().all()


def test_busy_of_a_step_counts_time_once_over_streams_and_devices():
    rows = [{"name": "k", "place": "device", "start_ns": 0, "dur_ns": 60, "lane": str(i), "device": f"cuda:{i}"} for i in range(3)]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100}]})
    assert trace.steps["busy_ns"].tolist() == [60]


def test_sql_gives_tables_and_counts_exactly(trace):
    assert trace.sql("SELECT sum(dur_ns)::BIGINT AS t FROM ops WHERE place = 'device'")["t"][0] == 50
    assert len(trace.sql("SELECT * FROM gaps ORDER BY gap_id")) == len(trace.gaps)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY ops TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/other.db'",
        "SELECT * FROM read_csv('https://example.invalid/x.csv')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET threads = 1",
        "PRAGMA memory_limit = '1GB'",
        "RESET memory_limit",
        "SELECT * FROM python_frame",
    ],
)
def test_sql_reaches_nothing_outside_the_tables(trace, tmp_path, query):
    import duckdb

    python_frame = pd.DataFrame({"x": [1]})
    assert len(python_frame) == 1
    file = tmp_path / "data.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(duckdb.Error):
        trace.sql(query.format(file=file, folder=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]


def test_subtree_holds_what_lies_below_and_what_it_launched(trace):
    assert np.flatnonzero(trace.subtree(np.asarray([0]))).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(trace.subtree(np.asarray([4]))).tolist() == [4, 5, 6]


def test_with_a_device_ops_own_the_work_they_launched_and_the_idle_time_they_caused(trace):
    claim = trace.subtree_claim(np.asarray([0]))
    # idle before the launch (0-20), the launch itself (20-30), in the queue (30-40), the work (40-70), idle until the op ends
    assert list(zip(*(part.tolist() for part in claim), strict=True)) == [(0, 100)]
    assert total(trace.subtree_claim(np.asarray([], np.int64))) == 0


def test_without_a_device_ops_own_their_own_interval():
    trace = host_only()
    assert total(trace.subtree_claim(np.asarray([0, 1]))) == 100
    assert total(trace.subtree_claim(np.asarray([0, 2]))) == 150


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_ranks_do_not_hide_each_other(rank):
    one, three = ranks(1), ranks(3)
    each = len(one) if rank else 0
    claim = three.subtree_claim(np.asarray([rank * each, 0]))
    assert total(claim) == total(one.subtree_claim(np.asarray([0]))) * (2 if rank else 1)
    assert total(three.step_intervals()) == 3 * total(one.step_intervals())
    assert total(three.gap_claim(np.arange(len(three.gaps)))) == 3 * int(one.gaps["dur_ns"].sum())


def test_every_rank_has_its_steps_gaps_and_device():
    trace = ranks(3)
    assert trace.steps["rank"].tolist() == [0, 1, 2]
    assert trace.steps["busy_ns"].tolist() == [50, 50, 50]
    assert sorted(set(trace.gaps["rank"])) == [0, 1, 2]
    assert set(trace.gaps["device"]) == {"cuda:0"}
    assert trace.device_stats()["devices"] == 3
    assert trace.device_stats()["busy_share"] == 0.25


def test_host_gaps_of_ranks_do_not_hide_each_other():
    rows = [{"name": "aten::mm", "start_ns": 0, "dur_ns": 60, "rank": rank} for rank in (0, 1)]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100, "rank": rank} for rank in (0, 1)]})
    assert trace.gaps["rank"].tolist() == [0, 1]
    assert total(trace.gap_claim(np.arange(2))) == 80


def test_a_rank_without_steps_claims_no_time_of_another():
    rows = [{"name": "aten::mm", "start_ns": 0, "dur_ns": 60, "rank": rank} for rank in (0, 1)]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100, "rank": 0}]})
    from tracediag.intervals import intersect

    marker_of_rank_0 = 1
    assert trace.ranks.tolist() == [0, 0, 1]
    assert total(intersect(trace.subtree_claim(np.asarray([marker_of_rank_0 + 1])), trace.step_intervals())) == 0


def test_strings_and_numbers_are_told_apart(trace):
    assert isinstance(trace.strings("name"), Coded)
    with pytest.raises(TypeError, match="dur_ns"):
        trace.strings("dur_ns")
    assert trace.col("dur_ns").dtype == np.int64


def test_idle_host_time_during_a_collective_is_communication():
    rows = [
        {"name": "aten::mm", "start_ns": 0, "dur_ns": 30},
        {"name": "gloo:all_reduce", "role": "annotation", "lane": "gloo", "start_ns": 20, "dur_ns": 40},
        {"name": "aten::add_", "start_ns": 70, "dur_ns": 30},
    ]
    trace = Trace.from_rows({"ops": rows, "steps": [{"step": 0, "start_ns": 0, "end_ns": 100}]})
    found = trace.gaps[["owner", "start_ns", "dur_ns"]]
    assert found.to_numpy().tolist() == [["comm", 30, 30], ["python", 60, 10]]


@pytest.mark.parametrize(("windows", "expected"), [
    ([{"first_step": 5, "steps": 2}, {"first_step": 39, "steps": 1}], [5, 6, 39]),
    ([{"first_step": 5, "steps": 0}], [5, 6, 39, 40]),  # the end of no step was told: what there is, is kept
    ([], [5, 6, 39, 40]),
])  # fmt: skip
def test_the_step_in_which_the_script_ended_is_none(windows, expected):
    steps = [{"step": n, "start_ns": i * 100, "end_ns": i * 100 + 100} for i, n in enumerate((5, 6, 39, 40))]
    rows = [{"name": "aten::mm", "start_ns": n * 100 + 10, "dur_ns": 30} for n in range(4)]
    trace = Trace.from_rows({"ops": rows, "steps": steps, "run": {"windows": windows}})
    assert trace.steps["step"].tolist() == expected
    assert trace.ops["step"].notna().tolist()[: len(rows)] == [n in expected for n in (5, 6, 39, 40)]
