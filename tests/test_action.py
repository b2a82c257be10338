"""The action for GitHub: its file and the workflows in its page are checked, its steps are run here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from composite import run_action
from fake_github import FakeGitHub, Fault

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "action.yml"
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "action.md").read_text(encoding="utf-8"), re.DOTALL)
SLOW, FAST = (str(ROOT / "fixtures" / "torch-unfused-adam" / name) for name in ("slow", "fast"))
SETUP = """#!{python}
import os, sys
if sys.argv[1:3] != ["-m", "venv"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
folder = os.path.join(sys.argv[3], "bin")
os.makedirs(folder)
programs = {{
    "python": 'if [ "$2" = pip ]; then echo "$@" >> {log}; else exec {python} "$@"; fi',
    "tracediag": 'exec {python} -m tracediag "$@"',
}}
for name, text in programs.items():
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write("#!/bin/sh\\n" + text + "\\n")
    os.chmod(path, 0o755)
"""
"""Stands for python3: makes an environment of links, whose pip notes what it is asked for."""


@pytest.fixture
def act(tmp_path):
    """Run the action with the given inputs; `job.installed` says what pip was asked for."""
    hub = FakeGitHub()
    programs, temp, log = tmp_path / "programs", tmp_path / "temp", tmp_path / "pip.log"
    programs.mkdir()
    temp.mkdir()
    log.touch()
    (programs / "python3").write_text(SETUP.format(python=sys.executable, log=log))
    (programs / "python3").chmod(0o755)

    def run(event="pull_request", **inputs):
        import os

        github = {
            "action_path": str(ROOT),
            "token": "token-app",
            "event": {"pull_request": {"number": 7}} if event == "pull_request" else {},
        }
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_REPOSITORY": "octo/train",
            "GITHUB_API_URL": hub.url,
            "PYTHONPATH": str(ROOT),
            "GH_TOKEN": "",
            "OMP_NUM_THREADS": "1",
        }
        job = run_action(ACTION, temp, {name.replace("_", "-"): value for name, value in inputs.items()}, github, environment)
        job.installed = log.read_text()
        return job

    run.hub = hub
    run.folder = tmp_path
    yield run
    hub.close()


def test_a_trace_is_explained_and_nothing_else_is_asked_for(act):
    job = act(trace=SLOW)
    assert (job.code, job.ran, job.used) == (0, ["Install tracediag", "Profile and explain", "Summary"], {}), job.log
    assert f"pip install --quiet --disable-pip-version-check {ROOT}[github]" in job.installed
    assert job.outputs["failed"] == "false"
    assert job.outputs["run"] == SLOW
    report = json.loads(Path(job.outputs["report"]).read_text())
    assert report["verdict"]["rule"] == "opt-not-fused"
    assert "\n## The optimizer goes over its tensors" in job.summary
    assert act.hub.log == []


def test_it_comments_uploads_and_fails(act):
    job = act(trace=SLOW, fail_on="medium", comment="true", sarif="true", package="tracediag==0.1.0", explain_options="--ignore 'O03,M04'")
    assert job.code == 1
    assert job.ran == ["Install tracediag", "Profile and explain", "Summary", "Send to code scanning", "Comment", "Fail"], job.log
    assert job.outputs["failed"] == "true"
    assert "tracediag==0.1.0" in job.installed
    ((used, given),) = job.used.items()
    assert used.startswith("github/codeql-action/upload-sarif@")
    results = json.loads(Path(given["sarif_file"]).read_text())["runs"][0]["results"]
    assert [row["ruleId"] for row in results] == ["opt-not-fused"]
    (comment,) = act.hub.comments.values()
    assert comment["user"]["login"] == "github-actions[bot]"
    assert "The optimizer goes over its tensors" in comment["body"]
    assert act(trace=SLOW, comment="true").code == 0
    assert len(act.hub.comments) == 1


def test_a_regression_against_the_baseline_fails(act):
    job = act(trace=SLOW, baseline=FAST, fail_on_regression="10", comment="true")
    assert (job.code, job.outputs["failed"]) == (1, "true"), job.log
    assert job.summary.count("<!-- tracediag ") == 2
    assert sorted(row["body"].split()[2] for row in act.hub.comments.values()) == ["comparison", "report"]
    assert act(trace=FAST, baseline=SLOW, fail_on_regression="10").code == 0


def test_on_a_push_there_is_nothing_to_comment_on(act):
    job = act(event="push", trace=SLOW, comment="true")
    assert (job.code, act.hub.log) == (0, []), job.log


def test_a_token_that_may_not_write_is_a_warning(act):
    act.hub.faults = [Fault("POST", "/comments", 403, "Resource not accessible by integration")]
    job = act(trace=SLOW, comment="true")
    assert (job.code, act.hub.comments) == (0, {})
    assert "::warning::tracediag could not comment" in job.log
    assert "needs write access" in job.log


@pytest.mark.parametrize(("inputs", "words"), [({"trace": "missing"}, "no such file"), ({}, "give a script")])
def test_what_cannot_be_used_ends_the_job(act, inputs, words):
    job = act(**inputs)
    assert job.code == 2
    assert re.search(words, job.log, re.IGNORECASE)


def test_words_of_an_input_run_nothing(act):
    marked = act.folder / "marked"
    job = act(trace=SLOW, explain_options=f"--ignore \"$(touch {marked})\" --select 'O02'")
    assert job.code == 2
    assert not marked.exists()
    assert "touch" in job.log  # the words were taken as the name of a rule


@pytest.mark.torch
def test_a_script_is_profiled(act):
    pytest.importorskip("torch")
    place = act.folder / "code with space"
    place.mkdir()
    (place / "train.py").write_text(
        "import sys, torch\nassert sys.argv[1:] == ['--name', 'a b'], sys.argv\nmodel = torch.nn.Linear(8, 8)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(12):\n    opt.zero_grad()\n"
        "    model(torch.ones(4, 8)).sum().backward()\n    opt.step()\n"
    )
    job = act(
        script="train.py --name 'a b'",
        working_directory=str(place),
        profile_options="--steps 3 --warmup 2 --no-stacks",
        python=sys.executable,
    )
    assert job.code == 0, job.log
    assert json.loads(Path(job.outputs["report"]).read_text())["steps"]["count"] == 3
    assert (Path(job.outputs["run"]) / "run.json").is_file()


def test_inputs_reach_the_shell_through_the_environment_only():
    for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def checked(kind: str, file: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", kind, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_keeps_to_the_schema():
    pytest.importorskip("check_jsonschema")
    checked("vendor.github-actions", ACTION)


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_workflows_of_the_page_keep_to_the_schema_and_give_known_inputs(workflow, tmp_path):
    pytest.importorskip("check_jsonschema")
    (tmp_path / "workflow.yml").write_text(workflow)
    checked("vendor.github-workflows", tmp_path / "workflow.yml")
    action = yaml.safe_load(ACTION.read_text())
    jobs = yaml.safe_load(workflow)["jobs"].values()
    ours = [step for job in jobs for step in job["steps"] if "/tracediag@" in step.get("uses", "")]
    assert ours
    for step in ours:
        assert set(step["with"]) <= set(action["inputs"])
    assert set(re.findall(r"steps\.\w+\.outputs\.([\w-]+)", workflow)) <= set(action["outputs"])
