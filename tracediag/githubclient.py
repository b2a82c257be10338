"""The GitHub client: PyGithub with a token from where people keep it, patience with limits and outages, and errors in one line.

PyGithub would wait for a rate limit as long as it takes and send a comment again after a lost answer; both are decided here instead.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tracediag.errors import InputError, PostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Result = TypeVar("Result")

__all__ = ["Client", "Me", "Patience", "UncertainError", "api_url", "find_token"]

API = "https://api.github.com"
NEEDS = "posting to GitHub needs PyGithub: pip install 'tracediag[github]'"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
PASSING = {500, 502, 503, 504}


@dataclass(frozen=True)
class Patience:
    """How long to wait for GitHub, in seconds. answer: for one answer. longest: for a limit that passes. tries: of one request."""

    answer: int = 20
    longest: float = 90.0
    tries: int = 5
    backoff: float = 1.0
    between: float = 0.25


class UncertainError(Exception):
    """A write whose answer was lost: it may have been carried out. line: what to tell. wait: seconds GitHub asked for."""

    def __init__(self, line: str, wait: float) -> None:
        super().__init__(line)
        self.line, self.wait = line, wait


@dataclass(frozen=True)
class Me:
    """The account that the token acts as. number: its id, None where GitHub did not say."""

    login: str
    number: int | None

    def wrote(self, comment: Any) -> bool:
        """Whether the comment is of this account."""
        author = comment.user
        if author is None:  # an account that is gone
            return False
        return bool(author.id == self.number) if self.number is not None else _bare(author.login) == _bare(self.login)


def api_url(environment: Mapping[str, str] = os.environ) -> str:
    """GITHUB_API_URL, else that of github.com. Raises InputError where a token would travel in the open."""
    url = (environment.get("GITHUB_API_URL") or API).rstrip("/")
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        if not safe or not parts.hostname or parts.username or parts.query or parts.port == 0:
            raise ValueError("it must start with https:// and hold no user name")
    except ValueError as error:
        raise InputError(f"GITHUB_API_URL cannot be used ({error}); for Enterprise it is https://HOST/api/v3") from error
    return url


def find_token(url: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The token and where it came from: GITHUB_TOKEN, GH_TOKEN, or the login of the `gh` program for the host of `url`."""
    for name in TOKENS:
        if environment.get(name, "").strip():
            return environment[name].strip(), name
    host = urlsplit(url).hostname or ""
    program = shutil.which("gh", path=environment.get("PATH"))
    if program:
        command = [program, "auth", "token", "--hostname", "github.com" if host == "api.github.com" else host]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, env=dict(environment))
        except (OSError, subprocess.TimeoutExpired):
            told = None
        if told is not None and told.returncode == 0 and told.stdout.strip():
            return told.stdout.strip(), "gh auth token"
    raise InputError("no GitHub token: set GITHUB_TOKEN, or log in with `gh auth login`")


class Client:
    """What is needed of GitHub's REST API. Every method raises PostError with one line, `create` also UncertainError."""

    def __init__(self, url: str, token: str, source: str, patience: Patience | None = None) -> None:
        try:
            import github
        except ImportError as error:
            raise InputError(NEEDS) from error
        self.patience = patience or Patience()
        self._source, self._host, self._subject = source, urlsplit(url).hostname or url, "GitHub"
        self._github = github.Github(
            auth=github.Auth.Token(token),
            base_url=url,
            timeout=self.patience.answer,
            per_page=100,
            retry=0,
            seconds_between_requests=self.patience.between,
            seconds_between_writes=self.patience.between,
            user_agent="tracediag",
        )

    def issue(self, owner: str, repo: str, number: int) -> Any:
        """The issue or pull request, also after the repository was renamed."""
        self._subject = f"{owner}/{repo}#{number}"

        def found() -> Any:
            issue = self._github.get_repo(f"{owner}/{repo}").get_issue(number)
            issue.id  # noqa: B018 - read now: whether it is there is asked only when something of it is wanted
            return issue

        return self._ask(found)

    def me(self) -> Me:
        """The account behind the token. An app's token, as in a workflow, may not ask for its user, but for its viewer."""
        from github import GithubException

        def asked() -> Me:
            try:
                user = self._github.get_user()
                return Me(user.login, user.id)
            except GithubException as error:
                if error.status != 403 or _limited(error):
                    raise
            _, told = self._github.requester.graphql_query("query { viewer { login databaseId } }", {})
            viewer = told["data"]["viewer"]
            return Me(str(viewer["login"]), viewer.get("databaseId"))

        return self._ask(asked)

    def comments(self, issue: Any) -> list[Any]:
        """All comments, of all pages."""
        return self._ask(lambda: list(issue.get_comments()))

    def edit(self, comment: Any, body: str) -> None:
        """Write a comment anew: doing so twice does no harm."""
        self._ask(lambda: comment.edit(body))

    def delete(self, comment: Any) -> None:
        """Delete a comment; one that is gone is no error."""
        from github import UnknownObjectException

        def gone() -> None:
            try:
                comment.delete()
            except UnknownObjectException:
                return

        self._ask(gone)

    def create(self, issue: Any, body: str) -> Any:
        """Create a comment. Raises UncertainError when the answer was lost; refusals that say "later" are waited out."""
        return self._ask(lambda: issue.create_comment(body), sure=False)

    def pause(self, lost: UncertainError) -> None:
        """Wait before a write is tried again."""
        time.sleep(lost.wait)

    def _ask(self, call: Callable[[], Result], *, sure: bool = True) -> Result:
        """The result of a request, tried again while what stands in its way may pass. sure: it may be sent twice."""
        import requests
        from github import GithubException

        for attempt in range(self.patience.tries):
            backoff = self.patience.backoff * 2**attempt * random.uniform(0.8, 1.2)
            try:
                return call()
            except GithubException as error:
                wait, line = _wait(error, backoff), self._explained(error)
                lost = error.status in PASSING
            except (requests.exceptions.Timeout, requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
                wait, line, lost = backoff, self._unreached(error), not isinstance(error, requests.exceptions.ConnectTimeout)
            except RuntimeError as error:  # PyGithub: a redirect that leads away from the API
                raise PostError(f"GITHUB_API_URL is not the API of this server ({_flat(error)})") from error
            if wait is None:
                raise PostError(line)
            if lost and not sure:
                raise UncertainError(line, min(wait, self.patience.longest))
            if wait > self.patience.longest:
                raise PostError(f"{line}; try again in {_span(wait)}")
            if attempt + 1 < self.patience.tries:
                time.sleep(wait)
        raise PostError(f"{line}; tried {self.patience.tries} times, try again later")

    def _unreached(self, error: Exception) -> str:
        import requests

        if isinstance(error, requests.exceptions.Timeout):
            return f"{self._host} did not answer within {self.patience.answer} s"
        return f"{self._host} cannot be reached (is GITHUB_API_URL right, and the network there?)"

    def _explained(self, error: Any) -> str:
        """What an answer means and what to do about it, in one line."""
        status, told, headers = error.status, _message(error), _headers(error)
        if _limited(error):
            return f"GitHub's rate limit is used up ({status})"
        if status in PASSING:
            return f"GitHub is out of order ({status})"
        if status == 401:
            return f"GitHub refuses the token of {self._source} (401: {told}); make a new one, or log in with `gh auth login`"
        if status in (403, 423) and "locked" in told.lower():
            return f"{self._subject} is locked ({status}): nobody may comment; unlock the conversation"
        if status == 403 and "x-github-sso" in headers:
            return f"the organisation wants the token of {self._source} authorised for single sign-on (403); see github.com/settings/tokens"
        if status == 403:
            return (
                f"the token of {self._source} may not do this on {self._subject} (403: {told}); it needs write access to issues or pull"
                " requests, in a workflow `permissions: pull-requests: write`"
            )
        if status == 404:
            return f"{self._subject} is not there, or the token of {self._source} cannot see it (404)"
        if status == 410:
            return f"{self._subject} is gone (410): it was deleted, or the repository has issues switched off"
        if status == 422:
            return f"GitHub does not take the comment on {self._subject} (422: {told})"
        return f"GitHub answers {status} for {self._subject}: {told}"


def _wait(error: Any, backoff: float) -> float | None:
    """Seconds to wait before trying again; None where trying again is of no use."""
    headers = _headers(error)
    if error.status in PASSING or _limited(error):
        asked = headers.get("retry-after", "")
        if asked.isdigit():
            return max(float(asked), backoff)
        if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
            return max(float(headers["x-ratelimit-reset"]) - time.time() + 1, backoff)
        return backoff if error.status in PASSING else max(backoff, 60.0 * backoff)
    return None


def _limited(error: Any) -> bool:
    """Whether GitHub asks for fewer requests: its primary limit, or a secondary one."""
    headers = _headers(error)
    spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    return error.status == 429 or (error.status == 403 and (spent or "rate limit" in _message(error).lower()))


def _headers(error: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}


def _message(error: Any) -> str:
    """GitHub's own words, one printable line, with the first detail."""
    data = error.data if isinstance(error.data, dict) else {}
    details = [row.get("message") for row in data.get("errors") or () if isinstance(row, dict)]
    return _flat(": ".join(str(part) for part in (data.get("message"), *details[:1]) if part) or "no reason given")


def _flat(text: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text))[:300]


def _bare(login: str) -> str:
    """A login as both interfaces write it: an app's ends in [bot] in one of them."""
    return login.removesuffix("[bot]").lower()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
