"""`explain` says the same, to the byte, where neither torch nor TensorFlow can be imported."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent.parent / "fixtures"
RUNS = (FIXTURES / "report-000-skipgram-torch" / "slow", FIXTURES / "report-000-skipgram-tensorflow" / "slow")
FRAMEWORKS = ("torch", "tensorflow", "keras", "tf_keras", "jax")
PLAIN = """
import sys
from tracediag.cli import main
sys.argv = ["tracediag", "explain", sys.argv[1], "--format", "json"]
main()
"""
BLOCKED = f"""
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {FRAMEWORKS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Nothing())
from tracediag.cli import main
sys.argv = ["tracediag", "explain", sys.argv[1], "--format", "json"]
main()
"""


def explain(python: list[str], run: Path, **more: str) -> bytes:
    done = subprocess.run([*python, str(run)], capture_output=True, check=False, env={**os.environ, **more})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.parent.name)
def test_the_same_json_with_the_frameworks_blocked(run: Path) -> None:
    usual = explain([sys.executable, "-c", PLAIN], run)
    assert explain([sys.executable, "-c", BLOCKED], run) == usual
    assert usual.startswith(b"{")


def test_explain_imports_no_framework() -> None:
    code = (
        f"import sys, tracediag; tracediag.explain(sys.argv[1]).to_json(); print([name for name in {FRAMEWORKS!r} if name in sys.modules])"
    )
    assert explain([sys.executable, "-c", code], RUNS[0]).split()[-1] == b"[]"


@pytest.mark.skipif(not os.environ.get("TRACEDIAG_LIGHT"), reason="makes an environment with pip: `make light` asks for it")
def test_the_same_json_in_an_environment_without_them(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(FIXTURES.parent)], check=True)
    for run in RUNS:
        call = ["-c", "import sys, tracediag; sys.stdout.write(tracediag.explain(sys.argv[1]).to_json())"]
        assert explain([str(python), *call], run) == explain([sys.executable, *call], run)
