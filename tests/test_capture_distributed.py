"""Jobs of several processes: torchrun and multiprocessing.spawn with gloo, and how ranks are told from launchers."""

import importlib.util
import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

import tracediag
from tracediag.capture.finish import complete
from tracediag.capture.launcher import LaunchRequest, LaunchResult, launch

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

TRAIN = """
import os, time
import torch, torch.distributed as dist
from torch import nn

def main(rank, *args):
    if args:
        dist.init_process_group("gloo", init_method="file://" + args[0], rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(14):
        if rank == 1:
            time.sleep(0.02)
        opt.zero_grad(); model(torch.randn(16, 64)).sum().backward(); opt.step()
    time.sleep(0.3)  # torch 2.13 hangs now and then when the model goes while a thread of gloo still lets go of its last exchange
    dist.destroy_process_group()
"""
RANKED = TRAIN + "\nmain(int(os.environ['RANK']))\n"
SPAWNED = TRAIN + "\nif __name__ == '__main__':\n    torch.multiprocessing.spawn(main, args=(os.path.abspath('meet'),), nprocs=2)\n"


def run(folder: Path, source: str, argv: tuple[str, ...], **options) -> LaunchResult:
    (folder / "train.py").write_text(textwrap.dedent(source))
    old = Path.cwd()
    os.chdir(folder)
    try:
        return launch(LaunchRequest(argv, folder / "run", steps=5, stacks=False, timeout=100, **options))
    finally:
        os.chdir(old)


def check(result: LaunchResult, folder: Path) -> None:
    names = {path.name for path in (folder / "run").iterdir()}
    assert result.exit_code == 0
    assert names == {"rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz", "run.json", "run.rank1.json"}
    assert (result.run["script"], result.run["notes"], len(result.run["step_series"]["wall_ns"])) == ("train.py", [], 14)
    assert "14 steps timed, 5 recorded on each of 2 ranks" in result.message
    trace = tracediag.load(folder / "run")
    assert trace.steps.groupby("rank")["step"].apply(list).to_dict() == {0: [5, 6, 7, 8, 9], 1: [5, 6, 7, 8, 9]}
    met = trace.sql("SELECT count(*) AS n, bool_and(met) AS met, min(late_rank) AS late, max(ranks) AS ranks FROM collectives")
    assert met.iloc[0].to_dict() == {"n": 10, "met": True, "late": 1, "ranks": 2}
    waits = next(finding for finding in tracediag.explain(trace).findings if finding.rule == "straggler")
    assert waits.confidence == "likely"
    assert "mostly rank 1" in waits.message and "Python between the operators" in waits.message


@needs_torch
@pytest.mark.torch
def test_torchrun_records_every_rank_and_not_itself(tmp_path):
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    check(run(tmp_path, RANKED, command, kind="command"), tmp_path)


@needs_torch
@pytest.mark.torch
def test_spawned_processes_record_from_when_they_join_a_group(tmp_path):
    check(run(tmp_path, SPAWNED, ("train.py",), python=sys.executable), tmp_path)


def facts(**more):
    windows = {"windows": [{"file": more.pop("file"), "steps": 1, "stacks": False}]} if "file" in more else {"windows": []}
    series = {"step_series": {"wall_ns": [1, 2]}}
    return json.dumps({"schema": "tracediag.run/1", "framework": "torch", "flags": {}, "notes": [], **series, **windows, **more})


def test_the_lowest_rank_of_this_machine_gives_the_facts_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for rank in (10, 9):
        (tmp_path / f"run.rank{rank}.json").write_text(facts(file=f"rank{rank}.pt.trace.json.gz", mark=rank))
        (tmp_path / f".child.rank{rank}.json").write_text('{"pid": 1, "prefixes": []}')
        (tmp_path / f"rank{rank}.pt.trace.json").write_text("{}")
    (tmp_path / "rank3.pt.trace.json").write_text("of a window that was dropped")
    told, message = complete(tmp_path, ("torchrun", "train.py"), "command", 0, False, "python")
    assert told["mark"] == 9 and "of 2 ranks" in message
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["rank10.pt.trace.json.gz", "rank9.pt.trace.json.gz", "run.json", "run.rank10.json"]
