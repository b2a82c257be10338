"""Every command and every Python line of the README runs, in its order, in a folder with a script called train.py."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tracediag.rules import rules_folder

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
LEFT_OUT = {"pip install tracediag"}  # what it installs is tested by building the wheel
SCRIPT = """\
import sys
import torch
table = torch.nn.Embedding(150_000, 16)
optimizer = torch.optim.Adam(table.parameters())
for step in range(25):
    optimizer.zero_grad()
    table(torch.randint(150_000, (64,))).sum().backward()
    optimizer.step()
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


COMMANDS = [row for block in blocks("sh") for row in block.splitlines() if row not in LEFT_OUT]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working directory with a training script and a folder of one rule under another name."""
    place = tmp_path_factory.mktemp("readme")
    (place / "train.py").write_text(SCRIPT)
    (place / "my-rules").mkdir()
    rule = (rules_folder() / "emb-dense-grad-torch.yaml").read_text(encoding="utf-8")
    mine = re.sub(r"(?m)^code: .*", "code: E99", rule.replace("id: emb-dense-grad-torch", "id: my-rule"))
    (place / "my-rules" / "my-rule.yaml").write_text(re.sub(r"(?m)^excludes:.*", "excludes: []", mine), encoding="utf-8")
    return place


def test_the_first_screen_is_a_sentence_a_command_and_a_finding():
    screen = README.splitlines()[:40]
    assert len(screen[2]) < 200
    assert screen[4:7] == ["```sh", "tracediag profile train.py", "```"]
    assert any(row.startswith(("HIGH", "MEDIUM")) for row in screen)
    assert "PLACEHOLDER" not in README


@pytest.mark.torch
def test_commands_of_the_readme_run(folder):
    pytest.importorskip("torch")
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for command in COMMANDS:
        name, *args = shlex.split(command)
        assert name == "tracediag", f"how is {command!r} tested?"
        done = subprocess.run([sys.executable, "-m", name, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        allowed = (0, 1) if any(arg.startswith("--fail-on") for arg in args) else (0,)
        assert done.returncode in allowed, f"{command}: {done.stderr}"
    assert (folder / "report.json").exists()


PRELUDE = """\
import torch
table = torch.nn.Embedding(150_000, 16)
optimizer = torch.optim.Adam(table.parameters())
loader = [torch.randint(150_000, (64,)) for _ in range(25)]
def train_on(batch):
    optimizer.zero_grad()
    table(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_python_of_the_readme_runs(folder):
    pytest.importorskip("torch")
    if not (folder / "run").exists():
        pytest.skip("the commands did not run")
    (folder / "readme.py").write_text(PRELUDE + "\n".join(blocks("python")))
    done = subprocess.run([sys.executable, "readme.py"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "gets a dense gradient" in done.stdout
    assert "steps, median" in done.stdout
