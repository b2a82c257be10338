"""Lines of a report relative to the root of the git repository, where code scanning and reviews look for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracediag.findings import Place, Report

__all__ = ["rooted"]


def rooted(report: Report, start: Path | None = None) -> Report:
    """The report with the files of its findings, and its script, relative to the repository around `start` (default: working directory).

    A file that is found neither there nor below the root stays as it is, and so does everything outside of a repository.
    """
    here = (start or Path.cwd()).resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if root is None:
        return report

    def moved(spot: Place) -> Place:
        return replace(spot, file=_inside(spot.file, here, root))

    findings = tuple(replace(finding, where=tuple(map(moved, finding.where))) for finding in report.findings)
    script = report.subject.get("script")
    subject = {**report.subject, "script": _inside(script, here, root)} if script else report.subject
    return replace(report, findings=findings, subject=subject)


def _inside(file: str, here: Path, root: Path) -> str:
    """`file` as seen from root, when it is a file below root."""
    plain = PureWindowsPath(file).as_posix() if "\\" in file and "/" not in file else file
    if "\0" in plain:
        return file
    for place in (here / plain, root / plain):
        try:
            seen = place.resolve()
            if seen.is_file() and seen.is_relative_to(root):
                return PurePosixPath(seen.relative_to(root)).as_posix()
        except OSError:  # a name too long, or a loop of links: no file
            continue
    return file
