"""Traces from the web, against a server on loopback."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tracediag import cli, download, sources
from tracediag.errors import InputError
from tracediag.sources import open_sources

pytest.importorskip("aiohttp")

STEPS = [
    {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 1e3 * i, "dur": 1e3} for i in range(3)
]
TRACE = json.dumps({"schemaVersion": 1, "traceEvents": STEPS}).encode()


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    """/files/...: as GitHub's attachments, a redirect to a signed link that takes no HEAD; the rest goes wrong in its own way."""

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.send_error(403)

    def do_GET(self):
        self.server.asked.append(self.path)
        path = self.path.split("?")[0]
        if path.startswith("/files/"):
            self.send_response(302)
            self.send_header("Location", f"/signed/{path.removeprefix('/files/')}?key=secret")
            self.end_headers()
        elif path.startswith("/signed/") and path.removeprefix("/signed/") in self.server.files:
            self.send(self.server.files[path.removeprefix("/signed/")])
        elif path == "/slow":
            self.send(TRACE, pause=0.2, block=len(TRACE) // 5)
        elif path == "/stalled":
            self.send(TRACE, pause=3)
        elif path == "/endless":
            self.endless()
        elif path == "/cut":
            self.send(TRACE, length=len(TRACE) + 100)
        elif path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
        else:
            self.send_error(int(path[1:]) if path[1:].isdigit() else 404)

    def send(self, data, length=None, pause=0.0, block=1 << 20):
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(data)))
        self.end_headers()
        for at in range(0, len(data), block):
            time.sleep(pause)
            self.wfile.write(data[at : at + block])

    def endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(400):
                self.wfile.write(bytes(1 << 16))
        except OSError:
            return


@pytest.fixture
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked = []
    server.files = {
        "1/trace.json": TRACE,
        "2/trace.json.gz": gzip.compress(TRACE),
        "3/run.zip": zipped(rank0_pt_trace_json=TRACE, run_json=b"{}", notes_txt=b"x"),
        "4/bomb.zip": zipped(a_json=bytes(80 << 20)),
        "5/page.json": b"<!DOCTYPE html><html><body>Sign in</body></html>",
    }
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("file", "name"), [("1/trace.json", "trace.json"), ("2/trace.json.gz", "trace.json.gz"), ("3/run.zip", "rank0.pt.trace.json")]
)
def test_an_attached_trace_is_fetched_once(web, file, name):
    (source,), runs = open_sources([f"{web.url}/files/{file}?a=b"])
    assert (source.name, source.read(), len(runs)) == (name, TRACE, int("zip" in file))
    assert web.asked == [f"/files/{file}?a=b", f"/signed/{file}?key=secret"]


def test_explain_takes_the_link(web, capsys):
    assert cli.main(["explain", f"{web.url}/files/3/run.zip", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"]["count"] == 3
    assert told["inputs"][0]["path"] == "rank0.pt.trace.json"


def test_limits_of_archives_hold(web):
    (source,), _ = open_sources([f"{web.url}/files/4/bomb.zip"])
    with pytest.raises(InputError, match="150 times its size"):
        source.read()


def test_limits_of_size_and_time(web, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 1 << 20)
    with pytest.raises(InputError, match="more than 1 MiB"):
        open_sources([f"{web.url}/endless"])
    monkeypatch.setattr(download, "QUIET", 0.5)
    assert open_sources([f"{web.url}/slow"])[0][0].read() == TRACE
    with pytest.raises(InputError, match=r"no answer for 0\.5 s"):
        open_sources([f"{web.url}/stalled"])
    monkeypatch.setattr(download, "LONGEST", 0.3)
    with pytest.raises(InputError, match=r"not whole after|no answer for"):
        open_sources([f"{web.url}/slow"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/files/9/gone.zip?key=secret", "not there, or not public"),
        ("/401", "wants a login"),
        ("/403", "not public, or the link has expired"),
        ("/500", "the server answers 500"),
        ("/cut", "cannot be fetched"),
        ("/loop", "the redirects do not end"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(web, path, words, capsys):
    assert cli.main(["explain", web.url + path]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "secret" not in told
    with pytest.raises(InputError, match=words):
        open_sources([web.url + path])


def test_a_page_is_no_trace(web, capsys):
    assert cli.main(["explain", f"{web.url}/files/5/page.json"]) == 2
    assert "this is a web page, not a file; give the link of the attached file itself" in capsys.readouterr().err


def test_no_server_at_all(web):
    url = web.url
    web.shutdown()
    web.server_close()
    with pytest.raises(InputError, match="cannot be fetched"):
        open_sources([f"{url}/files/1/trace.json"])


def test_what_is_no_address():
    with pytest.raises(InputError, match="no address"):
        open_sources(["https://[bad/trace.json"])


def test_without_aiohttp(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(InputError, match="tracediag\\[https\\]"):
        open_sources(["https://127.0.0.1:1/x"])


def test_there_is_room_for_an_attachment():
    assert download.LARGEST >= 100 << 20  # what GitHub takes as an attachment
    assert sources.MAX_BYTES >= download.LARGEST
