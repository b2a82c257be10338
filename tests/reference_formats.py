"""Second, slow and obvious readers for TensorFlow's lesser formats: rows are tuples of COLUMNS, sorted (see `reference_reader`)."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from reference_reader import message

COLUMNS = ("role", "name", "label", "device", "start_ns", "dur_ns")


def timeline_rows(text: bytes) -> tuple[int, list[tuple]]:
    """(raw records, sorted rows without those of the runs) of a TF 1 timeline."""
    events = json.loads(text.decode("utf-8-sig"))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    ops = [(names[e["pid"]].rsplit(" ", 1)[0], e) for e in events if e["ph"] == "X"]
    nodes = [(place, e["args"]["name"], e["args"]["op"], e["ts"] * 1000, e["dur"] * 1000) for place, e in ops]
    return len(events), _device_once(nodes)


def _device_once(nodes: list[tuple[str, str, str, int, int]]) -> list[tuple]:
    copies = {(start, dur, node) for place, node, _, start, dur in nodes if place.endswith("/memcpy")}
    numbered = any(re.search(r"stream:\d+$", place) for place, *_ in nodes)
    rows = []
    for place, node, op, start, dur in nodes:
        on_device = re.search(r"[gG][pP][uU]:(\d+)/", place)
        op = re.sub("^_Mkl(Native)?", "", op)
        if not on_device:
            rows.append(("op", op, node, None, start, dur))
        elif re.search(r"stream:\d+$", place) or not numbered:
            role = "copy" if op.startswith("MEMCPY") or (start, dur, node) in copies else "kernel"
            rows.append((role, op, node, f"GPU:{on_device.group(1)}", start, dur))
    return sorted(rows, key=repr)


def run_metadata_rows(data: bytes) -> tuple[int, list[tuple]]:
    """The same of a binary RunMetadata."""
    nodes = []
    for device in message(message(data)[1][0])[1]:
        fields = message(device)
        place = fields[1][0].decode()
        for stats in fields.get(2, ()):
            node = message(stats)
            name, label = node[1][0].decode(), node.get(8, [b""])[0].decode()
            op = re.search(r" = (\w+)\(", label) or re.search(r":(\w+)", label) or re.search(r":(\w+)", name)
            short = name.split(":")[0]
            kind = op.group(1) if op else short
            if "num_bytes" in label:
                short, kind = label.split(":")[0], name
            start, dur = node.get(13, [0])[0], node.get(16, [0])[0]
            if not start:
                start, dur = node.get(2, [0])[0] * 1000, node.get(5, [0])[0] * 1000
            nodes.append((place, short, kind, start, dur))
    return len(nodes), _device_once(nodes)


def local_trace_count(data: bytes) -> int:
    """Events of a local.trace."""
    return len(message(data)[4])


def trace_json_rows(text: bytes) -> tuple[int, list[tuple[Any, ...]]]:
    """(raw records, sorted (start_ns, dur_ns) of host events and of events on streams) of a trace.json."""
    events = json.loads(text.decode("utf-8-sig"), parse_float=str)["traceEvents"]
    hidden = {(e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name" and e["args"]["name"] in ("TensorFlow Ops", "XLA Ops")}
    shown = (e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) not in hidden)
    named = (e for e in shown if not e["name"].startswith(("end: ", "ThreadpoolListener::")))
    return len(events), sorted((_ns(e["ts"]), _ns(e.get("dur", 0))) for e in named)


def _ns(value: Any) -> int:
    return round(Fraction(str(value)) * 1000)
