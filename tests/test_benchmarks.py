"""Benchmarks of reading: the page they write, how costs are taken, and a quick run of the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="costs are read from /proc")


@pytest.fixture(autouse=True)
def _modules(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def _figure(*seconds, peak=100.0):
    from measure import Cost, Figure

    return Figure(tuple(Cost(value, 2 * value, peak) for value in seconds))


def _results(megabytes=200, size=99 << 20):
    from results import Results, Row, Section

    rows = [
        Row("kineto-200-load", "ours", _figure(1.0, 3.0, 2.0), events=1_000_000),
        Row("kineto-200-gz", "ours, gz", _figure(3.0), events=1_000_000),
        Row("kineto-200-hta", "theirs", None, note="not run: too large"),
    ]
    return Results([("machine", "two cores")], [Section("A file", rows, "kineto", megabytes, size)])


def test_page_has_medians_spreads_and_ratios():
    from results import render

    lines = render(_results()).splitlines()
    assert "| ours | 2.00 (1.00-3.00) | 1.00 | 4.00 (2.00-6.00) | 100 | 500,000 | 3 |" in lines
    assert "| ours, gz | 3.00 | 1.50 | 6.00 | 100 | 333,333 | 1 |" in lines
    assert "| theirs | not run: too large |  |  |  |  |  |" in lines
    assert "| machine | two cores |" in lines


def test_targets_pass_miss_or_stay_open():
    from targets import judge

    found = {target.what: target for target in judge(_results())}
    verdicts = {what.partition(": ")[2]: target.verdict for what, target in found.items() if what.startswith("Kineto")}
    assert verdicts["events a CPU second, file to complete `ops`"] == "PASS"
    assert verdicts["peak memory in sizes of the file"] == "**MISS**"
    assert verdicts["`.json.gz` in times of the plain file"] == "**MISS**"
    assert verdicts["CPU time of HolisticTraceAnalysis in times of ours"] == "-"


def test_large_files_have_the_tighter_bound_of_memory():
    from targets import judge

    bounds = {target.what: target.most for target in (*judge(_results(200)), *judge(_results(1000)))}
    assert bounds["Kineto 200 MB: peak memory in sizes of the file"] == 1.0
    assert bounds["Kineto 1000 MB: peak memory in sizes of the file"] == 0.85


def test_cost_counts_children_and_both_their_memories():
    from measure import run

    hold = "b = bytearray(b'x') * (60 << 20); import time; s = time.process_time()\nwhile time.process_time() - s < 0.4: pass"
    both = f"import subprocess, sys\np = [subprocess.Popen([sys.executable, '-c', {hold!r}]) for _ in range(2)]\nfor q in p: q.wait()"
    cost = run([sys.executable, "-c", both])
    assert cost.cpu_s >= 0.8
    assert cost.peak_mib >= 120


def test_failing_command_says_what_it_wrote():
    from measure import CommandError, run

    with pytest.raises(CommandError, match="ended with 3: no such luck"):
        run([sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"])


def test_slow_peers_run_once(monkeypatch):
    import measure

    monkeypatch.setattr(measure, "SLOW_S", 0.0)
    argv = [sys.executable, "-c", "pass"]
    assert len(measure.repeat(argv, -3).runs) == 1
    assert len(measure.repeat(argv, 3).runs) == 3


def test_quick_run_writes_the_page(tmp_path):
    argv = [sys.executable, str(FOLDER / "bench_reading.py"), "--quick", "--megabytes", "1", "--peers", "pandas,protobuf"]
    page = tmp_path / "page.md"
    done = subprocess.run([*argv, "--folder", str(tmp_path), "--output", str(page)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "| failed |" not in text, done.stderr
    assert "events instead of" not in text  # our counts and those of the peers agree
    assert all(
        f"| {what}" in text for what in ("tracediag load |", "tracediag explain", "json + pandas", "protobuf, parse only", "python,")
    )
    assert str(tmp_path) not in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


def test_lock_is_waited_for_and_given_up_in_the_end(tmp_path):
    from measure import Lock, alone

    path = tmp_path / "lock"
    with alone(Lock(path)) as first, alone(Lock(path, 0.1)) as second:
        assert (first, second) == (True, False)
    with alone(Lock(path)) as held:
        assert held


def test_elapsed_time_is_judged_only_where_nothing_else_ran():
    from measure import Cost, Figure
    from results import Results, Row, Section

    runs = {quiet: Results([], [Section("", [Row("help", "", Figure((Cost(0.1, 0.5, 9, quiet=quiet),)))])]) for quiet in (False, True)}
    assert runs[True].seconds("help") == (0.5, "elapsed s")
    assert runs[False].seconds("help")[0] == 0.1
