from __future__ import annotations

import gzip
import json
import random
from fractions import Fraction

import numpy as np
import pytest
from reader_samples import kineto, kineto_bytes
from reference_reader import kineto_rows, rows_of

from tracediag.errors import BrokenTraceError
from tracediag.readers import _jsonscan, read_all
from tracediag.readers._coding import NONE, nanoseconds

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}


def read(tmp_path, data: bytes, name="t.json"):
    path = tmp_path / name
    path.write_bytes(data)
    return read_all([str(path)])[0][0]


def one(tmp_path, **changes):
    """The rows of a trace of one event, as dictionaries."""
    return rows(read(tmp_path, kineto_bytes({"traceEvents": [EVENT | changes]})))


def rows(raw):
    columns = ["name", "role", "device", "lane", "in_shapes", "in_dtypes", "in_strides", "in_values", "out_shapes", "detail"]
    lists = {column: getattr(raw, column).to_objects().tolist() for column in columns}
    for column in ("correlation", "external", "bytes", "flops", "sequence", "step_num"):
        numbers = getattr(raw, column)
        lists[column] = [v if ok else None for v, ok in zip(numbers.values.tolist(), numbers.valid.tolist(), strict=True)]
    lists |= {"start_ns": raw.start_ns.tolist(), "dur_ns": raw.dur_ns.tolist()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def ids(raw):
    return [item.id for item in raw.health]


def test_the_columns_of_the_sample(tmp_path):
    found = {(row["role"], row["name"]): row for row in rows(read(tmp_path, kineto_bytes(kineto())))}
    op = found["op", "aten::mm"]
    assert op["start_ns"] == 1700000000000001125
    assert op["dur_ns"] == 20250
    assert op["in_shapes"] == "[[256,4],[4,8]]"
    assert op["in_dtypes"] == '["float32","float16"]'
    assert op["in_strides"] == "[[4,1],[8,1]]"
    assert op["in_values"] == '["",""]'
    assert op["sequence"] == 0
    assert op["lane"] == "7/8"
    assert found["annotation", "ProfilerStep#5"]["step_num"] == 5
    assert found["annotation", "ProfilerStep#5"]["start_ns"] == 1700000000000000001
    assert found["op", "MmBackward0"]["detail"] == '{"Fwd thread id":1}'
    assert found["op", "MmBackward0"]["in_dtypes"] == '[null,"int64"]'
    kernel = found["kernel", "ampere_sgemm"]
    assert (kernel["device"], kernel["lane"], kernel["correlation"]) == ("cuda:0", "gpu 0 stream 7", 41)
    assert json.loads(kernel["detail"]) == {
        "block": [128, 1, 1], "blocks per SM": 0.5, "est. achieved occupancy %": 50, "grid": [4, 1, 1],
    }  # fmt: skip
    collective = found["kernel", "ncclDevKernel_AllReduce_Sum_bf16"]
    assert collective["bytes"] == 200
    assert json.loads(collective["detail"])["Collective name"] == "allreduce"
    assert found["copy", "Memcpy HtoD (Pageable -> Device)"]["bytes"] == 4096
    assert found["device_sync", "Context Sync"]["detail"] == '{"cuda_sync_kind":"Context Sync"}'
    assert ("op", "PyTorch Profiler (0)") not in found


def test_memory_and_facts_of_the_sample(tmp_path):
    raw = read(tmp_path, kineto_bytes(kineto()))
    assert raw.memory.bytes.tolist() == [512, -64]
    assert raw.memory.device.to_objects().tolist() == ["cuda:1", "cpu"]
    assert raw.memory.t_ns.tolist() == [1700000000000003500, 1700000000000004000]
    assert raw.memory.allocated.values.tolist() == [1024, 0]
    assert raw.memory.reserved.values.tolist() == [2048, 0]
    assert raw.rank == 3
    assert raw.facts["devices"] == [
        {"device": "cuda:0", "name": "NVIDIA A100", "type": "gpu", "sm_count": 108, "memory_bytes": 85, "compute_capability": 8.0,
         "vendor": "nvidia"},
    ]  # fmt: skip
    assert raw.facts["versions"] == {"cuda_runtime": 12040}
    assert raw.facts["record_shapes"] is True
    assert raw.facts["with_stack"] is False
    assert raw.facts["lane_names"] == {"7/8": "thread 8 (python)"}


def test_old_category_and_key_names(tmp_path):
    events = [
        EVENT | {"cat": "Operator", "args": {"Input dims": [[2], []], "Output dims": [], "External id": 5}},
        EVENT | {"cat": "Runtime", "name": "cudaLaunchKernel", "args": {"correlation": 9, "external id": 5}},
        EVENT | {"cat": "Kernel", "pid": 0, "tid": "stream 7 ", "args": {"correlation": 9, "external id": 0, "device": 0, "stream": 7}},
        EVENT | {"cat": "Memcpy", "tid": "stream 7", "pid": 1, "args": {"bytes": 8}},
    ]
    op, runtime, kernel, copied = rows(read(tmp_path, kineto_bytes(events)))
    assert (op["role"], op["in_shapes"], op["out_shapes"], op["external"]) == ("op", "[[2],[]]", None, 5)
    assert (runtime["role"], runtime["correlation"], runtime["external"]) == ("runtime", 9, 5)
    assert (kernel["role"], kernel["lane"], kernel["external"]) == ("kernel", "gpu 0 stream 7", None)
    assert (copied["role"], copied["lane"], copied["bytes"]) == ("copy", "gpu 1 stream 7", 8)


@pytest.mark.parametrize(
    ("cat", "name", "role"),
    [
        ("cpu_op", "ProfilerStep#3", "annotation"),
        ("cpu_op", "nccl:all_reduce", "annotation"),
        ("cpu_op", "Torch-Compiled Region: 0/1", "function"),
        ("", "aten::mul", "op"),
        ("async_gpu", "x", "framework"),
    ],
)
def test_roles_that_depend_on_the_name(tmp_path, cat, name, role):
    assert one(tmp_path, cat=cat, name=name)[0]["role"] == role


def test_numbers_of_odd_types_cost_only_themselves(tmp_path):
    args = {"External id": 10159970886766084423, "Sequence number": None, "Input Dims": "[[64, 768]]", "Input type": None, "flops": "x"}
    (row,) = one(tmp_path, args=args)
    assert row["external"] is None
    assert row["sequence"] is None
    assert row["in_shapes"] == "[[64,768]]"
    assert one(tmp_path, cat="kernel", args={"correlation": 3, "device": "0", "stream": 7.5, "bytes": True})[0]["correlation"] == 3
    assert one(tmp_path, name=None, pid=1.5, tid=[1])[0]["lane"] == "1.5/[1]"
    assert one(tmp_path, args=None)[0]["name"] == "aten::add"


def test_a_missing_duration_is_zero(tmp_path):
    event = {key: value for key, value in EVENT.items() if key != "dur"}
    assert rows(read(tmp_path, kineto_bytes([event])))[0]["dur_ns"] == 0


@pytest.mark.parametrize("dur", ["NaN", "Infinity", "-Infinity", "-0.001", "1e400", "null", '"x"'])
def test_an_unusable_duration_drops_the_event_and_is_counted(tmp_path, dur):
    text = '{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"NaN, inf","ts":1,"dur":%s,"args":{"a":NaN}}, %s]}'
    raw = read(tmp_path, (text % (dur, json.dumps(EVENT))).encode())
    assert raw.events == 2
    assert raw.name.to_objects().tolist() == ["aten::add"]
    assert ids(raw) == ["bad-durations"]
    assert raw.health[0].message.startswith("1 events")


def test_not_a_number_in_args_harms_nothing(tmp_path):
    text = '[{"ph":"X","cat":"gpu_memcpy","name":"a NaN b","pid":0,"tid":7,"ts":1,"dur":2,"args":{"bandwidth":Infinity,"bytes":8}}]'
    raw = read(tmp_path, text.encode())
    assert raw.name.values == ("a NaN b",)
    assert raw.bytes.values.tolist() == [8]
    assert raw.health == ()


@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_file_gives_every_whole_event(tmp_path, packed):
    document = kineto(traceEvents=[EVENT | {"name": f"aten::op{i}", "args": {"External id": i + 1}} for i in range(3000)])
    data = kineto_bytes(document)
    whole = data[: data.index(b"aten::op2000")]
    cut = gzip.compress(whole) if packed else whole
    if packed:
        cut = cut[:-8]
    raw = read(tmp_path, cut, "t.json.gz" if packed else "t.json")
    assert ids(raw) == ["truncated-file"]
    assert raw.health[0].level == "error"
    assert raw.events == 2000
    assert raw.rank == 3


def test_a_bare_list_that_never_closes_is_fine_when_its_events_are_whole(tmp_path):
    assert read(tmp_path, b"[" + json.dumps(EVENT).encode() + b",\n").health == ()
    assert ids(read(tmp_path, b"[" + json.dumps(EVENT).encode() + b',\n{"ph"')) == ["truncated-file"]


def test_damage_inside_costs_only_the_event(tmp_path):
    good = json.dumps(EVENT)
    raw = read(tmp_path, f'{{"traceEvents": [{good}, {{"ph" "X"}}, {good}], "distributedInfo": {{"rank": 2}}}}'.encode())
    assert (raw.events, ids(raw), raw.rank) == (2, ["broken-events"], 2)


def test_bytes_that_are_no_utf8_are_replaced(tmp_path):
    raw = read(tmp_path, b'[{"ph":"X","cat":"cpu_op","name":"a\xff\x01b\\w","ts":1,"dur":1,"pid":1,"tid":1}]')
    assert raw.name.values == ("a\ufffd\x01b\\w",)
    assert ids(raw) == ["invalid-utf8"]


def test_unescaped_quotes_in_a_name(tmp_path):
    raw = read(
        tmp_path, b'{"traceEvents": [{"ph": "X", "cat": "python_function", "name": "f("a",\n"b") (1): g", "pid": 1, "tid": 1, "ts": 1}]}'
    )
    assert raw.name.values == ('f("a",\n"b") (1): g',)


def test_garbage_and_huge_keys_around_the_events(tmp_path):
    document = {"metadata": {"log": "]}{[" * 100_000}, "traceEvents": [EVENT], "tail": [{"x": i} for i in range(1000)]}
    raw = read(tmp_path, kineto_bytes(document) + b"\ngarbage ]}")
    assert (raw.events, raw.health) == (1, ())


def test_trace_level_keys_with_wrong_types_are_left_out(tmp_path):
    document = {"deviceProperties": {"id": 1}, "distributedInfo": [1], "baseTimeNanoseconds": "x", "traceEvents": [EVENT]}
    raw = read(tmp_path, kineto_bytes(document))
    assert raw.facts == {}
    assert raw.rank is None


def test_relative_times_count_from_the_base_and_absolute_ones_do_not(tmp_path):
    base = {"baseTimeNanoseconds": 1700000000000000000}
    assert read(tmp_path, kineto_bytes(base | {"traceEvents": [EVENT]})).start_ns.tolist() == [1700000000000001000]
    absolute = EVENT | {"ts": 1700000000000001}
    assert read(tmp_path, kineto_bytes(base | {"traceEvents": [absolute]})).start_ns.tolist() == [1700000000000001000]


def test_no_events_is_an_empty_trace_and_broken_events_are_an_error(tmp_path):
    assert len(read(tmp_path, b'{"traceEvents": []}')) == 0
    with pytest.raises(BrokenTraceError, match="no whole event"):
        read(tmp_path, b'{"traceEvents": [{"ph" 1}]}')


@pytest.mark.parametrize("batch", [1, 37, 1000])
def test_where_the_stream_is_cut_changes_nothing(tmp_path, monkeypatch, batch):
    """Blocks of any size, events with braces in strings and nested lists of objects, boundaries that only look like one."""
    nested = EVENT | {"name": '},{"ph', "args": {"deep": [{"a": 1}, {"b": [{"c": "]"}, {"d": 2}]}], "External id": 1}}
    document = kineto(traceEvents=kineto()["traceEvents"] * 20 + [nested] * 5)
    expected = kineto_rows(kineto_bytes(document))
    monkeypatch.setattr(_jsonscan, "BATCH", batch)
    monkeypatch.setattr("tracediag.sources.BLOCK", 64)
    raw = read(tmp_path, kineto_bytes(document))
    assert (raw.events, rows_of(raw)) == expected


def spans_by_character(text):
    """What `_spans` finds, by the book."""
    spans, depth, start, end, pos = [], 0, 0, 0, 0
    while pos < len(text):
        char = text[pos : pos + 1]
        pos += 1
        if char == b'"':
            while text[pos : pos + 1] not in (b'"', b""):
                pos += 2 if text[pos : pos + 1] == b"\\" else 1
            if pos >= len(text):
                break
            pos += 1
        elif char in (b"[", b"{"):
            start = start if depth else pos - 1
            depth += 1
        elif char in (b"]", b"}"):
            if depth == 0 and char == b"]":
                return spans, pos, True
            end = pos if depth <= 1 else end
            if depth == 1:
                spans.append((start, end))
            depth = max(depth - 1, 0)
    return spans, end, False


def test_events_are_found_between_brackets_in_any_disorder():
    rng = random.Random(3)
    pieces = [*b'{{}}[""', *b"]a,\\", b'"b",', b'"traceEvents"', b'"c":{"d":[1]},', b'\\"' * 600, b'"",' * 600]
    pieces = [piece if isinstance(piece, bytes) else bytes([piece]) for piece in pieces]
    for _ in range(3000):
        text = b"".join(rng.choices(pieces, k=rng.randrange(1, 30)))
        assert _jsonscan._spans(text) == spans_by_character(text), text


def test_nanoseconds_are_exact():
    rng = random.Random(5)
    texts = [f"{rng.randrange(10 ** rng.randrange(1, 16))}.{rng.randrange(1000):03d}" for _ in range(500)]
    texts += [f"{rng.randrange(10 ** rng.randrange(1, 16))}" for _ in range(500)] + [
        "0.5",
        "12.25",
        "-3.125",
        "3007199254740993.001",
        "1e3",
    ]
    texts += ["0.0005", "0.0015", "1665536373659346.1234", '"7.5"']
    expected = [round(Fraction(text.strip('"')) * 1000) for text in texts]
    for order in (texts, texts[:500], texts[500:1000]):
        assert nanoseconds([text.encode() for text in order]).tolist() == [expected[texts.index(text)] for text in order]
    assert nanoseconds([b"x", b"", b"null", b"1e99", b"99999999999999999999"]).tolist() == [NONE] * 5
    assert nanoseconds([]).dtype == np.int64


def test_values_of_odd_types_become_text(tmp_path):
    odd = [{"ph": "X", "cat": 5, "name": 1.5, "ts": 1, "dur": 1}, {"ph": "X", "cat": True, "name": None, "pid": [1], "tid": False, "ts": 2}]
    events = [*kineto()["traceEvents"], *odd]
    raw = read(tmp_path, kineto_bytes(kineto(traceEvents=events)))
    assert raw.name.to_objects().tolist()[-2:] == ["1.5", ""]
    assert raw.lane.to_objects().tolist()[-2:] == ["", "[1]/False"]


@pytest.mark.parametrize("rank", [10**20, -1, "3", None])
def test_a_rank_that_is_none_is_not_taken(tmp_path, rank):
    assert read(tmp_path, kineto_bytes(kineto(distributedInfo={"rank": rank}))).rank is None
