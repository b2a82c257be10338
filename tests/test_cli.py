from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from report_samples import FINDING, QUIET, SAMPLES, replace, report

import tracediag
from tracediag import api, cli, cliargs
from tracediag.capture.launcher import LaunchResult
from tracediag.errors import InputError
from tracediag.rules import rules_folder

RECORDED = {"windows": [{"file": "rank0.pt.trace.json.gz"}]}
TAKING = {"--out", "--steps", "-m"}


def run(*args: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tracediag", *args], capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory):
    """A Kineto trace of one thread: three steps of two operators."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    for step in range(3):
        at = 1000.0 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 1000.0})
        for i, name in enumerate(("aten::mm", "aten::relu")):
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at + 400 * i, "dur": 350.0, "args": {}})
    file = tmp_path_factory.mktemp("trace") / "rank0.pt.trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return str(file)


@pytest.mark.parametrize(
    ("args", "own", "target", "launcher"),
    [
        (["train.py"], [], ["train.py"], False),
        (["--out", "d", "train.py", "--out", "x", "--", "-y"], ["--out", "d"], ["train.py", "--out", "x", "--", "-y"], False),
        (["--out=d", "--quiet", "train.py"], ["--out=d", "--quiet"], ["train.py"], False),
        (["--steps", "3", "-m", "pkg.train", "-v"], ["--steps", "3"], ["-m", "pkg.train", "-v"], False),
        (["-mpkg.train"], [], ["-mpkg.train"], False),
        (["--quiet", "--", "torchrun", "-n", "2", "t.py"], ["--quiet"], ["torchrun", "-n", "2", "t.py"], True),
        (["--out", "--", "train.py"], ["--out", "--"], ["train.py"], False),
        (["--help"], ["--help"], [], False),
        ([], [], [], False),
    ],
)
def test_options_before_the_script_are_ours_and_the_rest_is_the_scripts(args, own, target, launcher):
    assert cliargs.split_target(args, TAKING) == (own, target, launcher)


@pytest.mark.parametrize(
    ("args", "argv", "kind"),
    [
        (["--steps", "3", "t.py", "--steps", "4", "--", "-q"], ("t.py", "--steps", "4", "--", "-q"), "script"),
        (["--quiet", "-m", "pkg.train", "--help"], ("pkg.train", "--help"), "module"),
        (["-mpkg.train", "--", "x"], ("pkg.train", "--", "x"), "module"),
        (["--", "torchrun", "--nproc", "2", "t.py"], ("torchrun", "--nproc", "2", "t.py"), "command"),
    ],
)
def test_profile_hands_the_command_on_untouched(monkeypatch, tmp_path, args, argv, kind):
    seen = []
    monkeypatch.setattr(api, "record", lambda request: seen.append(request) or LaunchResult(7, tmp_path, RECORDED, ""))
    assert cli.main(["profile", "--no-explain", *args]) == 7
    assert (seen[0].argv, seen[0].kind) == (argv, kind)
    assert seen[0].out.parts[0] == "tracediag-runs"


def test_profile_explains_leaves_reports_and_passes_on_the_exit_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(api, "record", lambda _: LaunchResult(3, tmp_path, RECORDED, "the script raised; 12 steps were kept"))
    monkeypatch.setattr(api, "explain", lambda *_, **__: SAMPLES["one"])
    assert cli.main(["profile", "--out", str(tmp_path), "t.py"]) == 3
    told = capsys.readouterr()
    assert told.err == "tracediag: the script raised; 12 steps were kept\n"
    assert "HIGH" in told.out
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["rule"] == "emb-dense-grad-torch"
    assert (tmp_path / "report.md").read_text().startswith("## ")


def test_a_script_too_short_for_a_window_is_told_so_and_keeps_its_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(api, "record", lambda _: LaunchResult(0, tmp_path, {"windows": []}, "3 steps timed, 0 recorded"))
    assert cli.main(["profile", "t.py"]) == 0
    assert capsys.readouterr() == ("", "tracediag: 3 steps timed, 0 recorded\n")


@pytest.mark.parametrize(("script", "code"), [(0, 2), (9, 9)])
def test_profile_without_a_trace(monkeypatch, tmp_path, capsys, script, code):
    def explain(*_, **__):
        raise InputError("run: no trace in it")

    monkeypatch.setattr(api, "record", lambda _: LaunchResult(script, tmp_path, RECORDED, ""))
    monkeypatch.setattr(api, "explain", explain)
    assert cli.main(["profile", "t.py"]) == code
    assert capsys.readouterr().err == "tracediag: run: no trace in it\n"


@pytest.mark.parametrize(
    "args",
    [
        ["explain", "no-such-file.json"],
        ["explain"],
        ["explain", "--format", "pdf", "x"],
        ["explain", "--no-such-option", "x"],
        ["explain", __file__],
        ["explain", "--rules", "no-such-folder", __file__],
        ["explain", "--min-saving", "much", "x"],
        ["profile"],
        ["profile", "-m"],
        ["profile", "--steps", "0", "x.py"],
        ["rules", "show", "no-such-rule"],
        ["rules", "test", "no-such-file.yaml"],
        ["no-such-command"],
    ],
)
def test_unusable_input_is_one_line_and_exit_code_2(args, capsys):
    assert cli.main(args) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tracediag: ")
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err


def test_a_bug_is_one_line_exit_code_70_and_a_file_with_the_traceback(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(api, "explain", lambda *_, **__: 1 / 0)
    assert cli.main(["explain", "x"]) == 70
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    (file,) = tmp_path.iterdir()
    assert str(file) in told
    assert "ZeroDivisionError" in file.read_text()
    assert cli.main(["explain", "--debug", "x"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert cli.main(["explain", "x"]) == 70
    assert "Traceback" not in capsys.readouterr().err


def test_explain_prints_writes_and_is_deterministic(trace_file, capsys, tmp_path):
    assert cli.main(["explain", trace_file]) == 0
    assert "3 steps, median 1 ms" in capsys.readouterr().out
    told = []
    for name in ("a.json", "b.json"):
        assert cli.main(["explain", "--format", "json", "--output", str(tmp_path / name), trace_file]) == 0
        told.append((tmp_path / name).read_bytes())
    assert told[0] == told[1]
    assert json.loads(told[0])["inputs"][0]["path"] == "rank0.pt.trace.json"
    assert capsys.readouterr().out == ""


def test_output_that_cannot_be_written_is_exit_code_2(trace_file, capsys, tmp_path):
    assert cli.main(["explain", "--output", str(tmp_path / "no" / "x.txt"), trace_file]) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(("level", "code"), [("never", 0), ("high", 0), ("medium", 1), ("low", 1)])
def test_fail_on(monkeypatch, capsys, level, code):
    monkeypatch.setattr(api, "explain", lambda *_, **__: report(replace(FINDING, severity="medium"), QUIET))
    assert cli.main(["explain", "--fail-on", level, "x"]) == code
    assert "MEDIUM" in capsys.readouterr().out


def test_rules_are_listed_shown_and_tested(capsys):
    assert cli.main(["rules", "list"]) == 0
    first = capsys.readouterr().out.splitlines()[0].split()
    for name in first[:2]:
        assert cli.main(["rules", "show", name]) == 0
        assert first[1] in capsys.readouterr().out
    file = rules_folder() / f"{first[1]}.yaml"
    assert cli.main(["rules", "test", str(file)]) == 0
    assert "passed, 0 failed" in capsys.readouterr().out


PAIR_RULE = """
id: twice-the-batch
code: Z01
title: One side has twice the batch
severity: low
confidence: likely
summary: Two batch sizes.
why: Other work.
fix: [{framework: any, text: Use one batch size., code: null}]
query: SELECT 'A' AS side, a FROM work WHERE quantity = 'batch' AND a = 2 * b
message: "{side} has a batch of {a}"
references: []
since: "0.1"
tests:
  - {name: twice, given: {work: [{quantity: batch, a: 8, b: 4}]}, expect: {fires: true, message_contains: of 8}}
  - {name: the same, given: {work: [{quantity: batch, a: 8, b: 8}]}, expect: {fires: false}}
"""


@pytest.fixture
def pair_file(tmp_path):
    file = tmp_path / "mine" / "pairs" / "twice-the-batch.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(PAIR_RULE)
    return file


def test_rules_of_two_traces_are_listed_shown_and_tested(capsys, pair_file):
    assert cli.main(["rules", "list", "--rules", str(pair_file.parents[1])]) == 0
    out = capsys.readouterr().out
    assert out.index("unequal-work") < out.index("twice-the-batch")
    for name in ("unequal-work", "M03"):
        assert cli.main(["rules", "show", name]) == 0
        assert capsys.readouterr().out.startswith("# M03 unequal-work\n")
    bundled = rules_folder() / "pairs"
    for place in (bundled, bundled / "unequal-work.yaml", pair_file, pair_file.parent, pair_file.parents[1]):
        assert cli.main(["rules", "test", str(place)]) == 0, place
        assert "0 passed" not in capsys.readouterr().out


def test_two_files_of_one_folder_of_rules_are_tested_together(capsys, pair_file):
    other = pair_file.with_name("half-the-batch.yaml")
    other.write_text(PAIR_RULE.replace("twice-the-batch", "half-the-batch").replace("Z01", "Z02"))
    assert cli.main(["rules", "test", str(pair_file), str(other)]) == 0
    assert capsys.readouterr().out == "4 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: One", "titel: One", "missing required field `title`"),
        ("code: Z01", "code: M03", "code 'M03' is taken"),
        ("quantity =", "quantty =", "rule twice-the-batch: query:"),
        ("severity: low", "severity: [", "twice-the-batch.yaml"),
    ],
)
def test_a_wrong_rule_of_two_traces_is_one_clear_line(capsys, pair_file, old, new, said):
    pair_file.write_text(PAIR_RULE.replace(old, new))
    assert cli.main(["rules", "test", str(pair_file)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_failing_test_of_a_rule_of_two_traces_is_named(capsys, pair_file):
    pair_file.write_text(PAIR_RULE.replace("of 8", "of 9"))
    assert cli.main(["rules", "test", str(pair_file)]) == 1
    assert (
        capsys.readouterr().out == "FAILED twice-the-batch: twice: 'of 9' is not in the message: A has a batch of 8\n1 passed, 1 failed\n"
    )


def test_a_failing_rule_test_is_exit_code_1(monkeypatch, capsys):
    from tracediag import ruletests

    monkeypatch.setattr(ruletests, "run_rule_tests", lambda _: (ruletests.TestResult("r", "t", "no finding"),))
    assert cli.main(["rules", "test"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAILED r: t: no finding\n")
    assert out.endswith(" passed, 1 failed\n")


def test_a_reader_that_leaves_is_no_error(trace_file):
    done = subprocess.run(
        f"{sys.executable} -m tracediag explain {trace_file} | true; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
    )
    assert done.returncode == 0
    assert done.stderr == b""


def test_stdout_that_knows_ascii_only_is_served(trace_file):
    done = run("explain", trace_file, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PATH": ""})
    assert done.returncode == 0
    assert "3 steps" in done.stdout


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"tracediag {tracediag.__version__}\n"
    assert cli.main([]) == 2
    assert "Commands:" in capsys.readouterr().out
    for name in ("profile", "explain", "rules"):
        assert cli.main([name, "--help"]) == 0
        assert "Usage: tracediag" in capsys.readouterr().out


HEAVY = ("numpy", "pandas", "duckdb", "rich", "yaml", "fsspec", "msgspec", "torch", "tensorflow")


@pytest.mark.parametrize(
    "code",
    ["import tracediag", "from tracediag.cli import main; main(['--help'])", "from tracediag.cli import main; main(['profile', '-h'])"],
)
def test_import_and_help_stay_light(code):
    """Help within 0.3 s comes from what is not imported; counting modules does not depend on the machine."""
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sorted(sys.modules))"], capture_output=True, text=True, check=True
    )
    loaded = told.stdout.splitlines()[-1].split()
    assert not set(HEAVY) & set(loaded)


def test_public_names_are_pinned():
    assert tracediag.__all__ == ["Comparison", "Finding", "Report", "Trace", "__version__", "compare", "explain", "load", "profile"]
    for name in tracediag.__all__:
        assert getattr(tracediag, name) is not None


@pytest.mark.parametrize(("setting", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals_that_want_them(trace_file, setting, coloured):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **setting}
    with subprocess.Popen([sys.executable, "-m", "tracediag", "explain", trace_file], stdout=theirs, env=environment) as child:
        os.close(theirs)
        told = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            told += block
    os.close(ours)
    assert child.returncode == 0
    assert b"3 steps" in told
    assert (b"\x1b[" in told) is coloured


def test_shell_completion_knows_commands_and_options():
    for words, place, wanted in (("tracediag exp", "1", "explain"), ("tracediag profile --war", "2", "--warmup")):
        shell = {**os.environ, "_TRACEDIAG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
        done = subprocess.run(
            [sys.executable, "-c", "from tracediag.cli import main; raise SystemExit(main())"], env=shell, capture_output=True, text=True
        )
        assert wanted in done.stdout.split()
