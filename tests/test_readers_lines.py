"""Kineto events that are laid out one line a part: read by arrays, and the same as when read one by one."""
# ruff: noqa: E501 - lines of traces are as long as they are

from __future__ import annotations

import random
from dataclasses import fields
from decimal import Decimal

import numpy as np
import pytest

from tracediag.columns import Coded, Ints
from tracediag.readers import kineto, read_all
from tracediag.readers._kineto_layout import find_layout
from tracediag.readers._kineto_templates import Template
from tracediag.readers._words import Words

EVENTS = (
    '"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n},"Record function id": 0, "Sequence number": {n}, "Fwd thread id": 1, "Input Dims": [[4, {m}], []], "Input type": ["float", ""], "Ev Idx": {n}',
    '"ph": "X", "cat": "cpu_op", "name": "aten::t \\u00e9 \\"q\\"", "pid": 7, "tid": 8,|"ts": {ts}, "dur": {dur},|"External id": {n},"Record function id": 0, "Concrete Inputs": ["", "[1, {m}]"], "Ev Idx": {n}',
    '"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{m}", "pid": 7, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n},"Record function id": 0, "Ev Idx": {n}',
    '"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n},      "cbid": 211, "correlation": {n}',
    '"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n},      "queued": 0, "device": {m}, "context": 1,      "stream": 7, "correlation": {n},      "registers per thread": {m},      "grid": [{m}, 1, 1]',
    '"ph": "X", "cat": "kernel", "name": "nan", "pid": 0, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n},      "device": 0, "stream": 7, "correlation": {n},      "blocks per SM": inf',
    '"ph": "X", "cat": "kernel", "name": "nccl", "pid": 0, "tid": 7,|"ts": {ts}, "dur": {dur},|"External id": {n}, "device": 0, "stream": 20, "correlation": {n}, "Collective name": "allreduce", "In msg nelems": {m}, "dtype": "Float"',
    '"ph": "X", "cat": "python_function", "name": "train.py(1): f", "pid": 7, "tid": 7,|"ts": {ts}, "dur": {dur},|"Python parent id": null, "Python id": {n}, "Ev Idx": {n}',
    '"ph": "X", "cat": "cpu_op", "name": "aten::long", "pid": 7, "tid": 7,|"ts": 12345.6789, "dur": -{dur},|"External id": 99999999999999999999',
    '"ph": "X", "cat": "Operator", \n    "name": "aten::old", "pid": 7, "tid": "9",|"ts": {ts}, "dur": {m},|"Input dims": [[2, {m}]]',
    '"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",\n    "pid": 7, "tid": 7,|"ts": {ts},|"Total Reserved": 5, "Total Allocated": {n}, "Bytes": -{m}, "Addr": 1, "Device Id": 0, "Device Type": 1, "Ev Idx": {n}',
    '"name": "thread_name", "ph": "M", "ts": {ts}, "pid": 7, "tid": 7,|"args": 0,|"name": "main"',
)  # fmt: skip
FLOW = '  {{\n    "ph": "{ph}", "id": {n}, "pid": 7, "tid": 7, "ts": {ts},\n    "cat": "ac2g", "name": "ac2g"\n  }}'


def text_of(rng: random.Random, count: int) -> bytes:
    events = []
    for n in range(1, count + 1):
        ts = f"{6_027_413_646_000 + n}.{rng.randrange(1000):03d}"
        if rng.random() < 0.2:
            events.append(FLOW.format(ph=rng.choice("sf"), n=n, ts=ts))
            continue
        parts = rng.choice(EVENTS).format(ts=ts, dur=f"{rng.randrange(900)}.{rng.randrange(10)}", n=n, m=rng.randrange(4)).split("|")
        if parts[1].startswith('"args"'):
            events.append(f'  {{\n    {parts[0]}\n    "args": {{\n      {parts[2]}\n    }}\n  }}')
        else:
            events.append(f'  {{\n    {parts[0]}\n    {parts[1]}\n    "args": {{\n      {parts[2]}\n    }}\n  }}')
    return ('{\n  "schemaVersion": 1,\n  "traceEvents": [\n' + ",\n".join(events) + '\n  ],\n  "traceName": "x"\n}').encode()


def columns(raw):
    found = {"events": raw.events, "health": raw.health, "facts": raw.facts}
    for field in fields(raw):
        found[field.name] = plain(getattr(raw, field.name))
    found["memory"] = [plain(getattr(raw.memory, field.name)) for field in fields(raw.memory)] if raw.memory else None
    return found


def plain(cells):
    if isinstance(cells, Coded):
        return cells.to_objects().tolist()
    if isinstance(cells, Ints):
        return np.where(cells.valid, cells.values, -7).tolist()
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


@pytest.mark.parametrize("seed", range(8))
def test_rows_by_arrays_are_the_rows_one_by_one(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    path = tmp_path / "t.json"
    path.write_bytes(text_of(rng, rng.choice([3, 50, 2000])))
    by_arrays = read_all([str(path)])[0][0]
    monkeypatch.setattr(kineto, "LineRows", lambda *_: type("Off", (), {"add": staticmethod(lambda buffer: 0)}))
    one_by_one = read_all([str(path)])[0][0]
    assert columns(by_arrays) == columns(one_by_one)


def test_the_usual_layout_is_recognised():
    body = text_of(random.Random(1), 300)
    text = Words(body[body.index(b"[\n") + 1 :])
    layout = find_layout(text)
    assert layout is not None
    assert 250 < len(layout.start) <= 300
    assert layout.plain.sum() + layout.flow.sum() > 0.7 * len(layout.start)
    assert find_layout(Words(b'[{"ph": "X"}]' + bytes(64))) is None


def test_a_template_ends_behind_the_last_number_that_tells_events_apart():
    template = Template.of(b'  "External id": 4, "device": 0, "stream": 7, "correlation": 8,   "registers per thread": 32, "grid": [1, 1]')
    assert template.keys == (b"External id", b"device", b"stream", b"correlation")
    assert template.tail == b",   "
    assert Template.of(b'  "blocks per SM": 1.5').keys == ()


def test_numbers_at_many_places():
    rng = random.Random(0)
    numbers = ["".join(rng.choices("0123456789", k=rng.randrange(0, 22))) for _ in range(3000)]
    ends = rng.choices(',. a"/:é', k=len(numbers))
    data, at = b"", []
    for number, end in zip(numbers, ends, strict=True):
        at.append(len(data))
        data += f"{number}{end} ".encode()
    value, end = Words(data + bytes(64)).digits(np.array(at))
    for start, number, got, stop in zip(at, numbers, value.tolist(), end.tolist(), strict=True):
        assert stop == start + (len(number) if len(number) <= 18 else 0)
        assert stop == start or got == int(number)
    after = np.array([place + len(number) for place, number in zip(at, numbers, strict=True) if place > 0 and len(number) <= 16])
    short = [place for place, number in zip(at, numbers, strict=True) if place > 0 and len(number) <= 16]
    assert Words(b" " * 16 + data).before_digits(after + 16).tolist() == [place + 16 for place in short]


def test_nanoseconds_at_many_places():
    numbers = ["6027413646370.922", "12", "0.5", "12.25", "1.2345", "x", "12.", "9999999999999999999.1"]
    data, at = b"", []
    for number in numbers:
        at.append(len(data))
        data += number.encode() + b","
    ns, end = Words(data + bytes(64)).nanoseconds(np.array(at))
    exact = [int(Decimal(number) * 1000) for number in numbers[:4]]
    assert ns[:4].tolist() == exact
    assert (end > np.array(at)).tolist() == [True] * 4 + [False] * 4


def test_text_at_many_places():
    data = b"abcdefghijklmnopqrstuvwxyz" * 3
    text = Words(data + bytes(64))
    for size in range(1, 27):
        wanted = [data[i : i + size] == data[:size] for i in range(52)]
        assert text.equal(np.arange(52), data[:size]).tolist() == wanted
