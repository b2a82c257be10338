"""Post a report to a GitHub issue or pull request: without private names, as the one comment on its subject."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracediag.comparison import COMPARISON_SCHEMA, Comparison
from tracediag.errors import InputError
from tracediag.findings import REPORT_SCHEMA, Report
from tracediag.privacy import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracediag.github import Posted, Target

__all__ = ["Comment", "attach", "comment_of", "read_report"]

HEAD = 512
"""Bytes in which a report says what it is."""
LARGEST = 64 << 20
KINDS: dict[str, type[Report] | type[Comparison]] = {REPORT_SCHEMA: Report, COMPARISON_SCHEMA: Comparison}
_SCHEMA = re.compile(r'\A\s*\{\s*"schema"\s*:\s*"(tracediag\.(?:report|comparison))/(\d+)"')


class Comment(msgspec.Struct, frozen=True):
    """What is posted. marker: the line, hidden by GitHub, that it is found again by; body starts with it."""

    marker: str
    body: str


def comment_of(told: Report | Comparison) -> Comment:
    """The comment for a report or a comparison; private names are gone from it."""
    safe: Report | Comparison = redacted(told)
    marker = f"<!-- tracediag {safe.schema.split('/')[0].split('.')[1]} {_subject(safe)} -->"
    return Comment(marker, f"{marker}\n{safe.to_markdown()}")


def attach(told: Report | Comparison, target: Target, confirm: Callable[[str], bool]) -> Posted:
    """Post a report, or update the comment that holds an earlier one on the same subject.

    confirm: asked with the name of the token's user before a comment is created. Raises InputError without a token or PyGithub, and
    PostError with what GitHub said.
    """
    from tracediag.github import keep_comment
    from tracediag.githubclient import Client, api_url, find_token

    url = api_url()
    token, source = find_token(url)
    comment = comment_of(told)
    return keep_comment(Client(url, token, source), target, comment.marker, comment.body, confirm)


def read_report(path: str) -> Report | Comparison | None:
    """The report or comparison in a JSON file; None when the path is something else, such as a trace.

    Raises InputError for a report that is broken or of a later major version.
    """
    file = Path(path)
    if not file.is_file() or file.stat().st_size > LARGEST:
        return None
    with file.open("rb") as stream:
        named = _SCHEMA.match(stream.read(HEAD).decode("utf-8", "replace"))
    if not named:
        return None
    kind = KINDS.get(f"{named[1]}/{named[2]}")
    if kind is None:
        raise InputError(f"{path}: {named[1]}/{named[2]} is of a later version of tracediag; upgrade it")
    try:
        return msgspec.convert(json.loads(file.read_bytes()), kind)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: a broken report ({error}); make it again with --format json") from error


def _subject(told: Report | Comparison) -> str:
    """What the comment is about, as 16 hex digits: a later report on the same subject takes its place."""
    subjects: list[Any] = [told.subject] if isinstance(told, Report) else [side.get("subject") or {} for side in (told.a, told.b)]
    parts = [[subject.get(key) for key in ("script", "framework", "kind")] for subject in subjects]
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]
