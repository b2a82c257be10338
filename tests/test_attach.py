"""`tracediag attach` from the command line to a server on loopback: what is sent, what is asked, what is said."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import pytest
from fake_github import FakeGitHub, Fault
from report_samples import EVIL, FINDING, SAMPLES, report

import tracediag
from tracediag import attach as attaching
from tracediag import cli, console, privacy
from tracediag.attach import comment_of, read_report
from tracediag.errors import InputError
from tracediag.findings import Place, Report
from tracediag.reports.budget import LIMIT

pytest.importorskip("github")

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
SECRETS = ("jane", "doe", "node-17", "corp.example", "projekt-x", "10.1.2.3")
PRIVATE = (
    "/home/jane/projekt-x/train.py",
    "/Users/Jane Doe/projekt-x/train.py",
    "C:\\Users\\Jane Doe\\projekt-x\\train.py",
    "file:///home/jane/projekt-x/train.py",
    "~/projekt-x/train.py",
    "/scratch/jane/projekt-x/train.py",
    "\\\\node-17\\projekt-x\\train.py",
    "jane@node-17.corp.example",
    "tcp://10.1.2.3:29500",
    "node-17.corp.example",
    "node-17",
    "doe",
    "/home/doe",
)


def read_back(told):
    """As a report is after its way through JSON, where tuples are lists."""
    return msgspec.convert(asdict(told), Report)


@pytest.fixture
def hub(monkeypatch):
    server = FakeGitHub()
    for name in ("GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GH_TOKEN", "token-jane")
    yield server
    server.close()


@pytest.fixture
def report_file(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(report(FINDING).to_json())
    return str(file)


def secretive():
    """A report with private names wherever a trace can put them."""
    told = report(
        *(
            replace(
                FINDING,
                rule=f"r{i}",
                message=f"{FINDING.message} {name} of 12 rows",
                where=(Place(name, 3, f"main of {name}"),),
                evidence=(
                    {"op": f"{name}(12): forward", "kind": None, "count_per_step": 1, "ms_per_step": 1.0, "shapes": name, "note": name},
                ),
            )
            for i, name in enumerate(PRIVATE)
        ),
        inputs=tuple(
            {"path": path, "format": "kineto", "framework": "torch", "bytes": 1, "events": 1, "rank": None}
            for path in (*PRIVATE, "node-17_4242.1700000000.pt.trace.json.gz", "plugins/profile/2026/node-17.xplane.pb")
        ),
        health=tuple({"id": "x", "level": level, "message": name, "effect": name} for level in ("info", "error") for name in PRIVATE),
        verdict={"rule": "r0", "text": " ".join(PRIVATE)},
    )
    return replace(
        told,
        subject={"script": PRIVATE[0], "framework": "torch", "kind": "training"},
        run={**told.run, "devices": [{"device": "cuda:0", "name": "NVIDIA A100", "bus": PRIVATE[9]}], "environment": {"X": PRIVATE[0]}},
        skipped=({"rule": "float64", "reason": f"failed: {PRIVATE[0]}"},),
    )


def test_nothing_private_leaves_the_machine(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(privacy, "names_here", lambda: ["node-17.corp.example", "node-17", "jane", "doe"])
    monkeypatch.setenv("HOME", "/home/jane")
    (tmp_path / "report.json").write_text(secretive().to_json())
    assert cli.main(["attach", "--yes", str(tmp_path / "report.json"), "octo/train#7"]) == 0
    sent = [body for verb, _, _, body in hub.log if verb == "POST"]
    assert len(sent) == 1
    plain = sent[0].replace("\\", "").replace("&#8203;", "").lower()
    assert [name for name in SECRETS if name in plain] == []
    assert "train.py" in plain
    assert "nvidia a100" in plain
    heads = str([headers for _, _, headers, _ in hub.log]).lower().replace("token-jane", "")
    assert [name for name in SECRETS if name in heads] == []


def test_sarif_is_made_to_be_sent_and_holds_nothing_private_either(tmp_path, monkeypatch):
    monkeypatch.setattr(privacy, "names_here", lambda: ["node-17.corp.example", "node-17", "jane", "doe"])
    console.emit(secretive(), "sarif", tmp_path / "told.sarif")
    told = (tmp_path / "told.sarif").read_text().lower()
    assert [name for name in SECRETS if name in told] == []
    assert '"uri": "train.py"' in told


def test_names_of_this_machine_are_found(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "node-17")
    monkeypatch.setattr("socket.getfqdn", lambda: "node-17.corp.example")
    monkeypatch.setattr("getpass.getuser", lambda: "jane")
    assert privacy.names_here() == ["node-17.corp.example", "node-17", "jane"]
    assert privacy.scrub("rank 3 on Node-17 by jane_doe, janet and root") == "rank 3 on private by private_doe, janet and root"


@pytest.mark.parametrize("piece", ["/", "\\", "/a", "/a b", "a.", "a@", "10.", "a", "a_1.1", "/home/", "C:\\a ", "file:"])
def test_a_name_that_goes_on_and_on_takes_no_time(piece):
    began = time.monotonic()
    privacy.scrub(piece * 50_000, ["jane"])
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "aten::add",
        "model/dense/MatMul",
        "/job:localhost/replica:0/task:0/device:GPU:0",
        "void k<float, 4>(a / b, c/d)",
        "3/4 of the step; and/or",
        "train.py:31 in main",
        "package/train.py",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        "2.13.0+cpu, cuDNN 9.10.2.21",
    ],
)
def test_what_is_not_private_stays(text):
    assert privacy.scrub(text, ["jane"]) == text


def test_a_file_of_an_installed_package_keeps_its_place_in_it():
    assert (
        privacy.scrub("/opt/env/lib/python3.11/site-packages/torch/nn/functional.py(7): linear", []) == "torch/nn/functional.py(7): linear"
    )


def test_a_report_without_private_names_stays_itself():
    assert privacy.redacted(SAMPLES["many"], ["jane"]) == read_back(SAMPLES["many"])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_comment_is_marked_and_short_enough(name):
    comment = comment_of(SAMPLES[name])
    assert re.fullmatch(r"<!-- tracediag report [0-9a-f]{16} -->", comment.marker)
    assert comment.body.startswith(f"{comment.marker}\n## ")
    assert len(comment.body) <= LIMIT + len(comment.marker) + 1 <= 65_536


def test_a_subject_has_one_comment_and_another_subject_another():
    def marker(**subject):
        return comment_of(report(FINDING, subject={"script": "train.py", "framework": "torch", "kind": "training", **subject})).marker

    assert marker() == comment_of(report()).marker
    assert len({marker(), marker(script="other.py"), marker(framework="tensorflow"), marker(script=EVIL)}) == 4


def test_a_comparison_has_a_comment_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(privacy, "names_here", lambda: ["node-17.corp.example", "node-17", "jane", "doe"])
    slow, fast = (FIXTURES / "torch-unfused-adam" / side for side in ("slow", "fast"))
    told = tracediag.compare(str(slow), str(fast))
    private = replace(told, verdict={**told.verdict, "text": " ".join(PRIVATE)})
    comment = comment_of(replace(private, a={**told.a, "name": PRIVATE[0]}))
    assert re.fullmatch(r"<!-- tracediag comparison [0-9a-f]{16} -->", comment.marker)
    assert comment.marker == comment_of(told).marker != comment_of(tracediag.compare(str(fast), str(slow))).marker
    plain = comment.body.replace("\\", "").replace("&#8203;", "").lower()
    assert [name for name in SECRETS if name in plain] == []
    file = tmp_path / "comparison.json"
    file.write_text(told.to_json())
    assert comment_of(read_report(str(file))) == comment_of(told)


def test_posted_then_updated(hub, report_file, capsys):
    assert cli.main(["attach", report_file, "octo/train#7", "--yes"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"tracediag: octo/train#7: posted: https://github.example/octo/train/issues/7#issuecomment-\d+\n", told.err)
    assert cli.main(["attach", report_file, "octo/train#7"]) == 0
    assert "already says so" in capsys.readouterr().err
    (comment,) = hub.comments.values()
    assert comment["body"].startswith("<!-- tracediag report ")


def test_a_dry_run_sends_nothing(hub, report_file, capsys, monkeypatch):
    monkeypatch.delenv("GH_TOKEN")
    assert cli.main(["attach", "--dry-run", report_file, "octo/train#7"]) == 0
    told = capsys.readouterr()
    assert told.out == comment_of(report(FINDING)).body
    assert "would be posted to octo/train#7" in told.err
    assert hub.log == []


@pytest.mark.parametrize(("terminal", "answer", "code", "posts"), [(False, "", 2, 0), (True, "n\n", 0, 0), (True, "y\n", 0, 1)])
def test_it_asks_before_the_first_post(hub, report_file, capsys, monkeypatch, terminal, answer, code, posts):
    import io

    stdin = io.StringIO(answer)
    monkeypatch.setattr(stdin, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda prompt: stdin.readline().strip())
    assert cli.main(["attach", report_file, "octo/train#7"]) == code
    assert len(hub.requests("POST")) == posts
    told = capsys.readouterr().err
    assert ("wants a yes" in told) == (not terminal)
    assert ("not posted" in told) == (answer == "n\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["octo/train"], "not an issue or pull request"),
        (["octo/train#7", "--yes"], "no GitHub token"),
    ],
)
def test_what_cannot_be_done_is_one_line(hub, report_file, capsys, monkeypatch, arguments, words):
    monkeypatch.setenv("GH_TOKEN", "")
    monkeypatch.setenv("PATH", "")
    assert cli.main(["attach", report_file, *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_without_the_client_library(hub, report_file, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "github", None)
    assert cli.main(["attach", report_file, "octo/train#7", "--yes"]) == 2
    assert "pip install 'tracediag[github]'" in capsys.readouterr().err


def test_the_token_is_in_no_output_log_or_argument(hub, report_file, capsys, monkeypatch):
    records = []
    handler = logging.Handler(0)
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    monkeypatch.setattr(logging.getLogger("github.Requester"), "level", 0)
    logging.getLogger("github.Requester").setLevel(1)
    logging.getLogger("urllib3").setLevel(1)
    try:
        cli.main(["attach", report_file, "octo/train#7", "--yes", "--debug"])
        hub.faults = [Fault("GET", "/user", 401, "Bad credentials", times=9)]
        cli.main(["attach", report_file, "octo/train#7", "--yes", "--debug"])
    finally:
        logging.getLogger().removeHandler(handler)
    told = capsys.readouterr()
    assert records
    assert "token-jane" not in told.out + told.err + "".join(records)
    assert any(headers.get("Authorization") == "token token-jane" for _, _, headers, _ in hub.log)


def test_explain_attaches_what_it_says(hub, tmp_path, capsys):
    events = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 1000.0 * i, "dur": 1000.0}
        for i in range(3)
    ]
    trace = tmp_path / "rank0.pt.trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert cli.main(["explain", str(trace), "--attach", "octo/train#7", "--yes", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "tracediag.report/1"
    assert cli.main(["attach", str(trace), "octo/train#7"]) == 0  # a trace is explained first
    assert len(hub.comments) == 1
    assert cli.main(["explain", str(trace), "--attach", "octo"]) == 2


def test_two_processes_at_once_leave_one_comment(hub, report_file):
    both = threading.Barrier(2, timeout=60)
    hub.before_create = both.wait
    command = [sys.executable, "-m", "tracediag", "attach", report_file, "octo/train#7", "--yes"]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) for _ in range(2)]
    said = [run.communicate(timeout=100)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert len(hub.comments) == 1
    assert all(line.startswith("tracediag: octo/train#7: ") and line.count("\n") == 1 for line in said)


def test_reports_are_read_back_and_other_files_are_not_reports(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(report(FINDING).to_json())
    assert read_report(str(file)).to_json() == report(FINDING).to_json()
    file.write_text('{"traceEvents": []}')
    assert read_report(str(file)) is None
    assert read_report(str(tmp_path)) is None
    assert read_report(str(tmp_path / "missing")) is None
    file.write_text('{"schema": "tracediag.report/2"}')
    with pytest.raises(InputError, match="later version of tracediag; upgrade"):
        read_report(str(file))
    file.write_text('{"schema": "tracediag.report/1", "tool": 3}')
    with pytest.raises(InputError, match="broken report"):
        read_report(str(file))
    assert attaching.LARGEST > 1 << 20
