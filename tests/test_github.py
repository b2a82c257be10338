"""Comments on GitHub, against a server on loopback that speaks its API."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from fake_github import FakeGitHub, Fault

from tracediag.errors import InputError, PostError
from tracediag.github import Posted, Target, keep_comment, parse_target

pytest.importorskip("github")
from tracediag.githubclient import Client, Patience, api_url, find_token

TARGET = Target("octo", "train", 7)
MARK = "<!-- tracediag report 0123456789abcdef -->"
QUICK = Patience(answer=10, longest=1.5, tries=4, backoff=0.01, between=0.0)
IMPATIENT = replace(QUICK, answer=1)


@pytest.fixture
def hub():
    server = FakeGitHub()
    yield server
    server.close()


def keep(hub, body="first", who="jane", patience=QUICK, confirm=lambda login: True) -> Posted:
    return keep_comment(Client(hub.url, f"token-{who}", "GITHUB_TOKEN", patience), TARGET, MARK, f"{MARK}\n{body}", confirm)


def bodies(hub):
    return [row["body"].removeprefix(MARK).strip() for row in hub.comments.values()]


def test_created_once_then_updated_in_place(hub):
    assert keep(hub).how == "created"
    (number,) = hub.comments
    assert keep(hub, "second") == Posted("updated", hub.comments[number]["html_url"])
    assert keep(hub, "second").how == "unchanged"
    assert bodies(hub) == ["second"]
    assert hub.requests("POST") == ["/api/v3/repos/octo/train/issues/7/comments"]


def test_it_is_found_on_a_later_page(hub):
    hub.page_limit = 10
    for i in range(35):
        hub.put("eve", f"talk {i}")
    assert keep(hub).how == "created"
    for i in range(25):
        hub.put("eve", f"more {i}")
    assert keep(hub, "second").how == "updated"
    assert len(hub.comments) == 61
    assert len(hub.requests("POST")) == 1


def test_a_marker_in_somebody_elses_comment_is_not_ours(hub):
    forged = hub.put("eve", f"{MARK}\nforged")
    gone = hub.put(None, f"{MARK}\nof an account that is gone")
    quoted = hub.put("jane", f"> {MARK}\nquoted by ourselves")
    assert keep(hub).how == "created"
    assert keep(hub, "second").how == "updated"
    assert hub.comments[forged]["body"].endswith("forged")
    assert hub.comments[gone]["body"].endswith("gone")
    assert hub.comments[quoted]["body"].endswith("ourselves")
    assert len(hub.comments) == 4


def test_a_workflows_token_knows_its_own_comments(hub):
    assert keep(hub, who="app").how == "created"
    assert keep(hub, "second", who="app").how == "updated"
    assert [row["user"]["login"] for row in hub.comments.values()] == ["github-actions[bot]"]


def test_another_account_has_a_comment_of_its_own(hub):
    keep(hub)
    keep(hub, "of eve", who="eve")
    assert bodies(hub) == ["first", "of eve"]


@pytest.mark.parametrize("fault", [{"drop": True}, {"status": 502}, {"sleep": 1.3}])
def test_an_answer_that_is_lost_makes_no_second_comment(hub, fault):
    hub.faults = [Fault("POST", carried=True, **fault)]
    assert keep(hub, patience=IMPATIENT if "sleep" in fault else QUICK).how == "created"
    assert bodies(hub) == ["first"]


@pytest.mark.parametrize("fault", [{"drop": True}, {"status": 503, "times": 2}])
def test_a_comment_that_was_not_taken_is_sent_again(hub, fault):
    hub.faults = [Fault("POST", **fault)]
    assert keep(hub).how == "created"
    assert bodies(hub) == ["first"]


def test_after_an_interrupted_first_run_the_comment_is_found(hub):
    hub.faults = [Fault("GET", "comments", status=500, times=0)]

    def broken(login):
        hub.faults[0].times = 99  # from the first post on, the list cannot be read
        return True

    with pytest.raises(PostError, match="out of order"):
        keep(hub, confirm=broken)
    assert bodies(hub) == ["first"]
    hub.faults = []
    assert keep(hub, "second").how == "updated"
    assert bodies(hub) == ["second"]


def test_duplicates_of_interrupted_runs_are_cleared(hub):
    kept = hub.put("jane", f"{MARK}\nold")
    hub.put("jane", f"{MARK}\nolder run's twin")
    hub.put("eve", f"{MARK}\nnot ours")
    assert keep(hub, "new").how == "updated"
    assert bodies(hub) == ["new", "not ours"]
    assert next(iter(hub.comments)) == kept


def test_two_racing_runs_leave_one_comment(hub):
    both = threading.Barrier(2, timeout=10)
    hub.before_create = both.wait  # no comment is made before both runs have seen that there is none
    done = []
    runs = [threading.Thread(target=lambda name=name: done.append(keep(hub, name).how)) for name in ("one", "two")]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    assert len(hub.requests("POST")) == 2
    assert len(hub.comments) == 1
    assert bodies(hub)[0] in ("one", "two")
    assert sorted(done) in (["created", "updated"], ["created", "unchanged"])


def test_a_renamed_repository_is_followed(hub):
    hub.moved_from = "/repos/octo/old"  # answers 301 to whatever is sent there, as GitHub does for reading
    client = Client(hub.url, "token-jane", "GITHUB_TOKEN", QUICK)
    assert keep_comment(client, Target("octo", "old", 7), MARK, f"{MARK}\nx", lambda login: True).how == "created"
    assert all("/train/" in path for path in hub.requests("POST"))


def test_nothing_is_posted_without_a_yes(hub):
    asked = []
    assert keep(hub, confirm=lambda login: bool(asked.append(login))) == Posted("declined", None)
    assert (asked, hub.comments, hub.requests("POST")) == (["jane"], {}, [])
    keep(hub)
    assert keep(hub, "second", confirm=lambda login: 1 / 0).how == "updated"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("GET", "/issues/7", 401, "Bad credentials", times=9), "refuses the token of GITHUB_TOKEN .401: Bad credentials"),
        (Fault("POST", "", 403, "Resource not accessible by personal access token"), "needs write access to issues or pull requests"),
        (Fault("GET", "/issues/7", 403, "x", {"X-GitHub-SSO": "required; url=x"}, times=9), "single sign-on"),
        (Fault("GET", "/issues/7", 404, "Not Found", times=9), "octo/train#7 is not there, or the token of GITHUB_TOKEN cannot see it"),
        (Fault("GET", "/issues/7", 410, "This issue was deleted", times=9), "is gone .410"),
        (Fault("POST", "", 422, "Validation Failed", times=9), "does not take the comment .* .422: Validation Failed"),
        (Fault("POST", "", 403, "Unable to create comment because issue is locked.", times=9), "is locked .403"),
        (Fault("GET", "/user", 500, "oops", times=9), "out of order .500.; tried 4 times"),
        (Fault("GET", "/user", drop=True, times=9), "127.0.0.1 cannot be reached"),
        (Fault("GET", "/user", sleep=1.2, times=9), "did not answer within 1 s"),
        (Fault("GET", "/user", 418, "tea\x1b[31m\nred", times=9), "answers 418 for octo/train#7: tea .31m red"),
        (Fault("GET", "/user", 429, "slow down", {"Retry-After": "600"}, times=9), "rate limit is used up .429.; try again in 10 min"),
    ],
)
def test_each_refusal_is_one_line_that_says_what_to_do(hub, fault, words):
    hub.faults = [fault]
    with pytest.raises(PostError, match=words) as caught:
        keep(hub, patience=IMPATIENT if fault.sleep else QUICK)
    assert str(caught.value).isprintable()
    assert "token-jane" not in str(caught.value)
    assert len(hub.comments) == 0


def test_a_locked_issue(hub):
    hub.locked = True
    with pytest.raises(PostError, match="locked"):
        keep(hub)


def test_a_wrong_token():
    hub = FakeGitHub()
    with pytest.raises(PostError, match="401"):
        keep(hub, who="nobody")
    hub.close()
    with pytest.raises(PostError, match="cannot be reached"):
        keep(hub)


@pytest.mark.parametrize("method", ["GET", "PATCH", "POST", "DELETE"])
@pytest.mark.parametrize(
    "limit",
    [
        {"status": 429, "headers": {"Retry-After": "1"}},
        {"status": 403, "message": "You have exceeded a secondary rate limit.", "headers": {"Retry-After": "1"}},
        {"status": 403, "message": "API rate limit exceeded for user ID 11.", "headers": {"X-RateLimit-Remaining": "0"}},
        {"status": 403, "message": "You have exceeded a secondary rate limit."},
    ],
)
def test_limits_that_pass_are_waited_out(hub, method, limit):
    if method in ("PATCH", "DELETE"):
        hub.put("jane", f"{MARK}\nold")
        hub.put("jane", f"{MARK}\ntwin")
    hub.faults = [Fault(method, **{**limit, "headers": dict(limit.get("headers", {}))})]
    if "X-RateLimit-Remaining" in hub.faults[0].headers:
        hub.faults[0].headers["X-RateLimit-Reset"] = str(int(time.time()))
    began = time.monotonic()
    keep(hub)
    assert bodies(hub) == ["first"]
    assert time.monotonic() - began >= 0.1


def test_a_limit_that_lasts_is_not_waited_for(hub):
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 1800)}
    hub.faults = [Fault("GET", "/user", 403, "API rate limit exceeded", reset, times=9)]
    with pytest.raises(PostError, match="try again in 30 min"):
        keep(hub)
    assert len([path for path in hub.requests("GET") if path.endswith("/user")]) == 1


def test_slow_answers_are_waited_for(hub):
    hub.faults = [Fault("GET", "/user", sleep=0.3), Fault("POST", sleep=0.3), Fault("GET", "comments", sleep=0.3)]
    assert keep(hub).how == "created"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("octo/train#7", TARGET),
        ("octo-org/tr.ain_x#12", Target("octo-org", "tr.ain_x", 12)),
        ("https://github.com/octo/train/issues/7", TARGET),
        ("https://github.example.com/octo/train/pull/7#issuecomment-1", TARGET),
    ],
)
def test_targets(text, target):
    assert parse_target(text) == target


@pytest.mark.parametrize(
    "text", ["", "octo/train", "octo/train#0", "octo/train#x", "octo/..#1", "octo#1", "a/b/c#1", "octo/tra in#1", "octo/train#1\n"]
)
def test_what_is_no_target(text):
    with pytest.raises(InputError, match="not an issue"):
        parse_target(text)


@pytest.mark.parametrize(
    "url", ["http://ghe.example/api/v3", "ftp://x", "ghe.example", "https://user@ghe.example", "http://[::bad", "https://h:0"]
)
def test_a_token_never_travels_in_the_open(url):
    with pytest.raises(InputError, match="GITHUB_API_URL cannot be used"):
        api_url({"GITHUB_API_URL": url})


def test_where_the_api_is():
    assert api_url({}) == "https://api.github.com"
    assert api_url({"GITHUB_API_URL": "https://ghe.example/api/v3/"}) == "https://ghe.example/api/v3"


def test_where_the_token_comes_from(tmp_path):
    program = tmp_path / "gh"
    program.write_text('#!/bin/sh\n[ "$1 $2 $3" = "auth token --hostname" ] && echo "of $4"\n')
    program.chmod(0o755)
    path = {"PATH": str(tmp_path)}
    api = "https://api.github.com"
    assert find_token(api, {"GITHUB_TOKEN": "a", "GH_TOKEN": "b", **path}) == ("a", "GITHUB_TOKEN")
    assert find_token(api, {"GITHUB_TOKEN": " ", "GH_TOKEN": "b", **path}) == ("b", "GH_TOKEN")
    assert find_token(api, path) == ("of github.com", "gh auth token")
    assert find_token("https://ghe.example/api/v3", path) == ("of ghe.example", "gh auth token")
    program.write_text("#!/bin/sh\nexit 1\n")
    for nothing in (path, {"PATH": str(tmp_path / "empty")}):
        with pytest.raises(InputError, match="no GitHub token"):
            find_token(api, nothing)
