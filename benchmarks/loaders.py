"""One way of loading a trace, in a process of its own: `python benchmarks/loaders.py WAY FILE` prints what came of it as JSON.

Runs in the environments of other tools as well: the standard library, and what the way itself needs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

XPLANE = {
    "XSpace": {"planes": (1, "[XPlane]"), "errors": (2, "[str]"), "warnings": (3, "[str]"), "hostnames": (4, "[str]")},
    "XPlane": {
        "id": (1, "int"), "name": (2, "str"), "lines": (3, "[XLine]"), "event_metadata": (4, "[EventEntry]"),
        "stat_metadata": (5, "[StatEntry]"), "stats": (6, "[XStat]"),
    },
    "EventEntry": {"key": (1, "int"), "value": (2, "XEventMetadata")},
    "StatEntry": {"key": (1, "int"), "value": (2, "XStatMetadata")},
    "XLine": {
        "id": (1, "int"), "display_id": (10, "int"), "name": (2, "str"), "display_name": (11, "str"), "timestamp_ns": (3, "int"),
        "duration_ps": (9, "int"), "events": (4, "[XEvent]"),
    },
    "XEvent": {"metadata_id": (1, "int"), "offset_ps": (2, "int"), "num_occurrences": (5, "int"), "duration_ps": (3, "int"),
               "stats": (4, "[XStat]")},
    "XStat": {"metadata_id": (1, "int"), "double_value": (2, "double"), "uint64_value": (3, "uint"), "int64_value": (4, "int"),
              "str_value": (5, "str"), "bytes_value": (6, "bytes"), "ref_value": (7, "uint")},
    "XEventMetadata": {"id": (1, "int"), "name": (2, "str"), "metadata": (3, "bytes"), "display_name": (4, "str"),
                       "stats": (5, "[XStat]"), "child_id": (6, "[int]")},
    "XStatMetadata": {"id": (1, "int"), "name": (2, "str"), "description": (3, "str")},
}  # fmt: skip
"""Messages of xplane.proto, fields in the order of their numbers there: name -> (number, type); a list in brackets."""


def tracediag(path: str) -> dict[str, Any]:
    """Complete `ops` columns: parents, self times, launches."""
    import tracediag

    trace = tracediag.load(path)
    return {"events": sum(item["events"] for item in trace.inputs), "rows": len(trace)}


def hta(path: str) -> dict[str, Any]:
    """HolisticTraceAnalysis, as its documentation starts: a TraceAnalysis of one rank."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(Path(path).resolve())})
    return {"rows": len(analysis.t.get_trace(0))}


def pandas(path: str) -> dict[str, Any]:
    """json, then one DataFrame of the events and their arguments; no parents, no self times."""
    import pandas

    with Path(path).open("rb") as file:
        events = json.load(file)["traceEvents"]
    frame = pandas.DataFrame(events)
    args = pandas.DataFrame.from_records([value if isinstance(value, dict) else {} for value in frame.pop("args")])
    frame = pandas.concat([frame, args.add_prefix("args.")], axis=1)
    return {"events": len(events), "rows": len(frame)}


def ijson(path: str) -> dict[str, Any]:
    """Six columns of each event, streamed: what fits into little memory."""
    import ijson

    names = ("name", "cat", "pid", "tid", "ts", "dur")
    columns: list[list[Any]] = [[] for _ in names]
    with Path(path).open("rb") as file:
        for event in ijson.items(file, "traceEvents.item", use_float=True):
            for column, name in zip(columns, names, strict=True):
                column.append(event.get(name))
    return {"events": len(columns[0]), "rows": len(columns[0]), "backend": ijson.backend}


def _xspace(path: str) -> Any:
    """The file parsed by protobuf's own C parser. Its schema is made here: that of TensorFlow costs its import."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="xplane.proto", package="x", syntax="proto3")
    kinds = {"int": 3, "uint": 4, "double": 1, "str": 9, "bytes": 12}
    for message, fields in XPLANE.items():
        made = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = made.field.add(name=name, number=number, label=3 if kind[0] == "[" else 1, type=kinds.get(kind.strip("[]"), 11))
            if field.type == 11:
                field.type_name = f".x.{kind.strip('[]')}"
    xstat = next(message for message in file.message_type if message.name == "XStat")
    xstat.oneof_decl.add(name="value")
    for field in xstat.field[1:]:
        field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    space = message_factory.GetMessageClass(pool.FindMessageTypeByName("x.XSpace"))
    return space.FromString(Path(path).read_bytes())


def protobuf(path: str) -> dict[str, Any]:
    """Parsed and held; the bytes of the file are let go before memory is looked at."""
    space = _xspace(path)
    rows = Path("/proc/self/status").read_text().splitlines()
    held = next(int(row.split()[1]) / 1024 for row in rows if row.startswith("VmRSS"))
    return {"events": sum(len(line.events) for plane in space.planes for line in plane.lines), "held_mib": held}


def protobuf_walk(path: str) -> dict[str, Any]:
    """Parsed, then every event with its stats visited; nothing is kept of them."""
    events = stats = 0
    for plane in _xspace(path).planes:
        for line in plane.lines:
            for event in line.events:
                _ = event.metadata_id, event.offset_ps, event.duration_ps
                for stat in event.stats:
                    _ = stat.metadata_id, getattr(stat, stat.WhichOneof("value") or "metadata_id")
                    stats += 1
                events += 1
    return {"events": events, "stats": stats}


WAYS = {"tracediag": tracediag, "hta": hta, "pandas": pandas, "ijson": ijson, "protobuf": protobuf, "protobuf-walk": protobuf_walk}


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: a module here must not hide a package of the environment
    print(json.dumps(WAYS[sys.argv[1]](sys.argv[2])))
