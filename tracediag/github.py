"""Keep one comment on a GitHub issue or pull request: find it by its marker, update it in place, else create it, never twice.

GitHub has no way to create a comment only if there is none. So after creating one the list is read again: if another run was quicker
(its comment has the lower id) ours is deleted and theirs is updated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracediag.errors import InputError, PostError
from tracediag.githubclient import Client, UncertainError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Posted", "Target", "keep_comment", "parse_target"]

_TARGET = re.compile(r"(?P<owner>[A-Za-z0-9][\w-]{0,100})/(?P<repo>[\w.-]{1,100})#(?P<number>[1-9]\d{0,9})")
_PAGE = re.compile(r"https?://[\w.-]+(?::\d+)?/(?P<owner>[\w-]+)/(?P<repo>[\w.-]+)/(?:issues|pull)/(?P<number>[1-9]\d{0,9})(?:[/#?].*)?")
CREATIONS = 3
"""Times that a comment is sent when GitHub does not say whether it took it."""


@dataclass(frozen=True)
class Target:
    """An issue or pull request."""

    owner: str
    repo: str
    number: int

    def __str__(self) -> str:
        return f"{self.owner}/{self.repo}#{self.number}"


@dataclass(frozen=True)
class Posted:
    """What became of the comment. how: created, updated, unchanged or declined. url: of the comment, None where there is none."""

    how: str
    url: str | None


def parse_target(text: str) -> Target:
    """OWNER/REPO#NUMBER, or the address of the page of an issue or pull request. Raises InputError for anything else."""
    found = _TARGET.fullmatch(text) or _PAGE.fullmatch(text)
    if not found or found["repo"] in (".", ".."):
        raise InputError(f"{text}: not an issue or pull request; say it like octo-org/training#123")
    return Target(found["owner"], found["repo"], int(found["number"]))


def keep_comment(client: Client, target: Target, marker: str, body: str, confirm: Callable[[str], bool]) -> Posted:
    """Make `body`, which starts with `marker`, the one comment of its kind on `target` by the token's user.

    Comments of others are never touched, whatever marker they hold. confirm: asked with the user's name before a comment is created.
    Raises PostError with one line on what GitHub said.
    """
    issue = client.issue(target.owner, target.repo, target.number)
    me = client.me()
    own = _own(client, issue, me, marker)
    if own:
        return _update(client, own, body)
    if not confirm(me.login):
        return Posted("declined", None)
    made = _create(client, issue, me, marker, body)
    own = _own(client, issue, me, marker)
    if not own or own[0].id == made.id:
        return Posted("created", made.html_url)
    client.delete(made)
    return _update(client, own[:1], body)


def _own(client: Client, issue: Any, me: Any, marker: str) -> list[Any]:
    """The token's own comments that start with the marker, oldest first."""
    found = [row for row in client.comments(issue) if (row.body or "").startswith(marker) and me.wrote(row)]
    return sorted(found, key=lambda row: int(row.id))


def _create(client: Client, issue: Any, me: Any, marker: str, body: str) -> Any:
    """Create the comment. When the answer is lost it may be there all the same: look before sending it again."""
    for _ in range(CREATIONS):
        try:
            return client.create(issue, body)
        except UncertainError as lost:
            told = lost
            client.pause(lost)
            own = _own(client, issue, me, marker)
            if own:
                return own[-1]
    raise PostError(told.line)


def _update(client: Client, own: Sequence[Any], body: str) -> Posted:
    """Write the oldest comment anew; later ones, left by runs that were interrupted, go."""
    first = own[0]
    changed = (first.body or "").replace("\r\n", "\n").rstrip() != body.rstrip()
    if changed:
        client.edit(first, body)
    for row in own[1:]:
        client.delete(row)
    return Posted("updated" if changed else "unchanged", first.html_url)
