"""A server on this machine that answers downloads as told."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from privreg.data import fetch

HTML_PAGE = b"<!DOCTYPE html>\n<html><body>Please sign in to the network.</body></html>"
CONTENT = bytes(range(256)) * 8


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def plain_file(name: str = "numbers.bin", content: bytes = CONTENT) -> fetch.DataFile:
    return fetch.DataFile(f"tiny/{name}", digest(content), name, digest(content))


@dataclass
class Answer:
    body: bytes
    status: int = 200
    promised: int | str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Mirror:
    """A server that gives each path its answers in turn and repeats the last one."""

    address: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(self, name: str, *answers: Answer) -> None:
        self.answers[f"/files/{name}"] = list(answers)

    def next_answer(self, path: str) -> Answer:
        self.requests.append(path)
        queue = self.answers.get(path, [Answer(b"not here", status=404)])
        return queue.pop(0) if len(queue) > 1 else queue[0]


def start_mirror() -> tuple[Mirror, ThreadingHTTPServer]:
    mirror = Mirror()

    class Handler(Silent):
        def do_GET(self) -> None:
            answer = mirror.next_answer(self.path)
            self.send_response(answer.status)
            length = len(answer.body) if answer.promised is None else answer.promised
            if length != "":
                self.send_header("Content-Length", str(length))
            for header in answer.headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(answer.body)

    return mirror, serve(mirror, Handler)


class Silent(BaseHTTPRequestHandler):
    """Answers that are not logged."""

    def log_message(self, *_: object) -> None:
        pass


def serve(mirror: Mirror, handler: type[Silent]) -> ThreadingHTTPServer:
    """Start a server of these answers, and tell the mirror its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    # A short poll, because closing waits for it.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    mirror.address = f"http://127.0.0.1:{server.server_address[1]}/files/"
    return server


def cached(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())
