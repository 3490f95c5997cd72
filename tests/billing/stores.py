"""An S3 server in its own process, a proxy that makes faults, and small web servers for stores."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.config import Config

BUCKET = "bills"
KEYS = {"access_key_id": "testing", "secret_access_key": "testing"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running S3 server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str = "s3", **keys: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=keys.get("access_key_id", "testing"),
            aws_secret_access_key=keys.get("secret_access_key", "testing"),
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def reset(self) -> None:
        self._post("/moto-api/reset")
        self.client().create_bucket(Bucket=BUCKET)

    def enforce_access(self) -> None:
        """From now on every request is checked against the policies of its user."""
        self._post("/moto-api/reset-auth", b"0")

    def stop_enforcing(self) -> None:
        self._post("/moto-api/reset-auth", b"inf")

    def put(self, key: str, body: bytes, *, bucket: str = BUCKET) -> None:
        self.client().put_object(Bucket=bucket, Key=key, Body=body)

    def delete(self, key: str) -> None:
        self.client().delete_object(Bucket=BUCKET, Key=key)

    def _post(self, path: str, body: bytes = b"") -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("POST", path, body)
        assert connection.getresponse().read() is not None
        connection.close()


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """Start the server, wait for it, stop it."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield S3Server(port=port)
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]

    def is_listing(self) -> bool:
        return self.method == "GET" and "list-type" in self.query

    def is_get_of(self, end: str) -> bool:
        return self.method == "GET" and "list-type" not in self.query and self.path.endswith(end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is answered instead; `cut_at` lets the true answer through and cuts it there."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_at: int | None = None


Rule = Callable[[Asked], Answer | None]


def s3_error(status: int, code: str, message: str = "no") -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(status=status, body=body.encode(), headers={"Content-Type": "application/xml"})


class WebServer:
    """A web server on loopback whose every answer a function gives; it keeps what was asked."""

    def __init__(self, answer: Callable[[Asked, bytes], Answer]) -> None:
        self.asked: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                parts = urlsplit(self.path)
                asked = Asked(
                    method=self.command,
                    path=parts.path,
                    query=parse_qs(parts.query, keep_blank_values=True),
                    headers=dict(self.headers),
                )
                outer.asked.append(asked)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                given = outer.answer(asked, body, self.path)
                self.send_response_only(given.status)
                for name, value in given.headers.items():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                length = given.headers.get("Content-Length") or str(len(given.body))
                self.send_header("Content-Length", length)
                self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(given.body[: given.cut_at])
                self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = _serve  # noqa: N815

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        self._answer = answer
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, asked: Asked, body: bytes, _raw: str) -> Answer:
        return self._answer(asked, body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class FaultyProxy(WebServer):
    """Passes requests on to the S3 server, but for those that a rule answers."""

    def __init__(self, target_port: int) -> None:
        super().__init__(lambda _asked, _body: Answer())
        self.rules: list[Rule] = []
        self._target_port = target_port

    @classmethod
    @contextmanager
    def running(cls, target_port: int) -> Iterator["FaultyProxy"]:
        proxy = cls(target_port)
        try:
            yield proxy
        finally:
            proxy.close()

    def answer(self, asked: Asked, body: bytes, raw: str) -> Answer:
        cut_at = None
        for rule in self.rules:
            given = rule(asked)
            if given is not None and given.cut_at is None:
                return given
            cut_at = given.cut_at if given is not None else cut_at
        connection = http.client.HTTPConnection("127.0.0.1", self._target_port, timeout=30)
        connection.request(asked.method, raw, body or None, dict(asked.headers))
        true = connection.getresponse()
        found = Answer(
            status=true.status, body=true.read(), headers=dict(true.getheaders()), cut_at=cut_at
        )
        connection.close()
        return found

    def count(self, matches: Callable[[Asked], bool]) -> int:
        return sum(1 for asked in self.asked if matches(asked))


def times(count: int, matches: Callable[[Asked], bool], answer: Answer) -> Rule:
    """A rule that answers so the first few times."""
    left = [count]

    def rule(asked: Asked) -> Answer | None:
        if left[0] > 0 and matches(asked):
            left[0] -= 1
            return answer
        return None

    return rule
