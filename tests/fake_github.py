"""The part of GitHub's REST API that `attach` uses, on a loopback port: pages, ETags, limits, faults on demand.

Written after the public documentation of the API. Tokens are names of accounts: `token-jane` acts as jane.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "/api/v3"
IDS = {"jane": 11, "eve": 12, "github-actions[bot]": 41898282}


@dataclass
class Fault:
    """What goes wrong with the next `times` requests of a method whose path has `path` in it.

    carried: the request is carried out all the same. drop: the connection closes without an answer. sleep: seconds before the answer.
    """

    method: str
    path: str = ""
    status: int = 0
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    carried: bool = False
    drop: bool = False
    sleep: float = 0.0


class FakeGitHub:
    """The server and all it knows. comments: id -> comment as the API shows it. log: method, path, headers, body of each request."""

    def __init__(self, page_limit: int = 100) -> None:
        self.comments: dict[int, dict[str, Any]] = {}
        self.log: list[tuple[str, str, dict[str, str], str]] = []
        self.faults: list[Fault] = []
        self.locked = False
        self.page_limit = page_limit
        self.moved_from: str | None = None
        self.before_create: Callable[[], object] = lambda: None
        self.lock = threading.Lock()
        self.next_id = 1000
        outer = self

        class Handler(_Handler):
            github = outer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}{PREFIX}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put(self, login: str | None, body: str) -> int:
        """A comment that is there already. login: None for an account that is gone."""
        with self.lock:
            self.next_id += 1
            api = f"{self.url}/repos/octo/train/issues/comments/{self.next_id}"
            page = f"https://github.example/octo/train/issues/7#issuecomment-{self.next_id}"
            user = None if login is None else account(login)
            self.comments[self.next_id] = {"id": self.next_id, "url": api, "html_url": page, "user": user, "body": body}
            return self.next_id

    def requests(self, method: str) -> list[str]:
        return [path for verb, path, _, _ in self.log if verb == method]

    def fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and fault.path in path and fault.times > 0:
                fault.times -= 1
                return fault
        return None


def account(login: str) -> dict[str, Any]:
    return {"login": login, "id": IDS[login], "type": "Bot" if login.endswith("[bot]") else "User"}


class _Handler(BaseHTTPRequestHandler):
    github: FakeGitHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def handle_any(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        hub = self.github
        with hub.lock:
            hub.log.append((self.command, self.path, dict(self.headers.items()), text))
            fault = hub.fault(self.command, self.path)
        if fault is None:
            self.answer(*self.act(text))
            return
        time.sleep(fault.sleep)
        done = self.act(text) if fault.carried or not (fault.status or fault.drop) else None
        if fault.drop:
            self.close_connection = True
            self.connection.close()
        elif fault.status:
            self.answer(fault.status, {"message": fault.message}, fault.headers)
        elif done:
            self.answer(*done)

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names http.server looks for

    def answer(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        body = b"" if data is None else json.dumps(data).encode()
        etag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        if status == 200 and self.headers.get("If-None-Match") == etag:
            status, body = 304, b""
        try:
            self.send_response(status)
            limits = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": str(int(time.time()) + 3600)}
            for name, value in {"Content-Type": "application/json", "ETag": etag, **limits, **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client has left
            self.close_connection = True

    def act(self, text: str) -> tuple[int, object, dict[str, str]]:
        """Carry the request out: status, data, headers."""
        hub, parts = self.github, urlsplit(self.path)
        token = (self.headers.get("Authorization") or "").split(" ")[-1]
        login = "github-actions[bot]" if token == "token-app" else token.removeprefix("token-")
        if login not in IDS:
            return 401, {"message": "Bad credentials"}, {}
        if parts.path == "/api/graphql":
            return 200, {"data": {"viewer": {"login": login, "databaseId": IDS[login]}}}, {}
        path = parts.path.removeprefix(PREFIX)
        if path == "/user":
            if token == "token-app":
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, {**account(login), "url": f"{hub.url}/user"}, {}
        if hub.moved_from and path.startswith(hub.moved_from):
            return 301, {"message": "Moved Permanently"}, {"Location": hub.url + path.replace(hub.moved_from, "/repos/octo/train")}
        body = json.loads(text).get("body", "") if text else ""
        if path == "/repos/octo/train":
            return 200, {"id": 1, "full_name": "octo/train", "url": f"{hub.url}{path}"}, {}
        if path == "/repos/octo/train/issues/7":
            return 200, {"id": 70, "number": 7, "locked": hub.locked, "url": f"{hub.url}{path}"}, {}
        if path == "/repos/octo/train/issues/7/comments":
            return self.create(login, body) if self.command == "POST" else self.page(parse_qs(parts.query))
        one = re.fullmatch(r"/repos/octo/train/issues/comments/(\d+)", path)
        if not one or int(one[1]) not in hub.comments:
            return 404, {"message": "Not Found"}, {}
        return self.one(int(one[1]), login, body)

    def create(self, login: str, body: str) -> tuple[int, object, dict[str, str]]:
        if self.github.locked:
            return 403, {"message": "Unable to create comment because issue is locked."}, {}
        if len(body) > 65536:
            return 422, {"message": "Validation Failed", "errors": [{"message": "body is too long (maximum is 65536 characters)"}]}, {}
        self.github.before_create()
        return 201, self.github.comments[self.github.put(login, body)], {}

    def page(self, query: dict[str, list[str]]) -> tuple[int, object, dict[str, str]]:
        size = min(int(query.get("per_page", ["30"])[0]), self.github.page_limit)
        page = int(query.get("page", ["1"])[0])
        with self.github.lock:
            rows = [self.github.comments[number] for number in sorted(self.github.comments)]
        more = len(rows) > page * size
        link = f'<{self.github.url}/repos/octo/train/issues/7/comments?per_page={size}&page={page + 1}>; rel="next"'
        return 200, rows[(page - 1) * size : page * size], {"Link": link} if more else {}

    def one(self, number: int, login: str, body: str) -> tuple[int, object, dict[str, str]]:
        comment = self.github.comments[number]
        if self.command != "GET" and (comment["user"] or {}).get("login") != login:
            return 403, {"message": "Must have admin rights to Repository."}, {}
        if self.command == "DELETE":
            del self.github.comments[number]
            return 204, None, {}
        if self.command == "PATCH":
            comment["body"] = body
        return 200, comment, {}
