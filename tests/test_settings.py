"""Settings in pyproject.toml: found, checked, merged with the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracediag import cli, settings
from tracediag.errors import InputError

FIXTURE = Path(__file__).parent.parent / "fixtures" / "torch-double-model" / "slow"


def write(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)


def test_nothing_asked_for(tmp_path):
    assert settings.find(tmp_path) == settings.Settings()
    write(tmp_path, "[project]\nname = 'x'\n")
    assert settings.find(tmp_path) == settings.Settings()


def test_every_key(tmp_path):
    write(
        tmp_path,
        "[tool.tracediag]\nrules = ['more']\nselect = ['float64']\nignore = ['M04']\nmin-saving = 3\nfail-on = 'high'\n"
        "[tool.tracediag.params.float64]\nmin_share = 0.9\n",
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert settings.find(below) == settings.Settings(
        (str(tmp_path.resolve() / "more"),), ("float64",), ("M04",), 3.0, "high", {"float64": {"min_share": 0.9}}
    )


def test_the_nearest_file_counts(tmp_path):
    write(tmp_path, "[tool.tracediag]\nfail-on = 'high'\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    write(inner, "[project]\nname = 'inner'\n")
    assert settings.find(inner).fail_on == "never"


@pytest.mark.parametrize(
    "text",
    ["nonsense = 1", "select = 'E01'", "min-saving = 'much'", "fail-on = 'always'", "params = 3", "params = {a = {b = [1]}}", "rules ="],
)
def test_what_means_nothing_is_named(tmp_path, text):
    write(tmp_path, f"[tool.tracediag]\n{text}\n")
    with pytest.raises(InputError, match=r"pyproject\.toml"):
        settings.find(tmp_path)


def test_the_command_line_uses_them_and_wins(tmp_path, monkeypatch, capsys):
    write(tmp_path, "[tool.tracediag]\nselect = ['float64']\nfail-on = 'high'\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explain", str(FIXTURE), "--no-cache"]) == 1
    assert cli.main(["explain", str(FIXTURE), "--no-cache", "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert cli.main(["explain", str(FIXTURE), "--no-cache", "--select", "launch-bound", "--format", "json"]) == 0
    assert '"rule": "float64"' not in capsys.readouterr().out


def test_parameters_of_rules(tmp_path, monkeypatch, capsys):
    write(tmp_path, "[tool.tracediag.params.float64]\nmin_share = 1.0\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explain", str(FIXTURE), "--no-cache", "--format", "json"]) == 0
    assert '"rule": "float64"' not in capsys.readouterr().out


def test_an_unknown_rule_in_them_ends_in_one_line(tmp_path, monkeypatch, capsys):
    write(tmp_path, "[tool.tracediag.params.no-such-rule]\nmin_share = 1.0\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explain", str(FIXTURE), "--no-cache"]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_export_takes_the_rules_of_the_project(tmp_path, monkeypatch, capsys):
    write(tmp_path, "[tool.tracediag]\nrules = ['missing']\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export", str(FIXTURE), "--to", "perfetto", "--output", str(tmp_path / "out.json")]) == 2
    assert "missing" in capsys.readouterr().err
