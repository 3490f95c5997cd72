"""The agent's own address for Prometheus: GET /metrics and GET /healthz, nothing else."""

import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)
TIMEOUT_S: Final = 5.0
MAX_REQUEST_BYTES: Final = 16 * 1024
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class Endpoint:
    """Answers one caller after another on a thread that sleeps in between."""

    def __init__(self, host: str, port: int, write: Callable[[], str]) -> None:
        """Take the port. OSError: it is taken already."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(8)
        except OSError:
            self._socket.close()
            raise
        self._write = write
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while True:
            caller, _ = self._socket.accept()
            with caller:
                try:
                    caller.settimeout(TIMEOUT_S)
                    caller.sendall(self.answer(_request_line(caller)))
                except OSError as error:
                    log.debug("a caller of the endpoint went away: %s", error)

    def answer(self, line: str) -> bytes:
        """The bytes of the answer to a request's first line."""
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in {"GET", "HEAD"}:
            return _response("405 Method Not Allowed", "only GET\n")
        if path == "/metrics":
            text = self._write()
        elif path == "/healthz":
            text = "ok\n"
        else:
            return _response("404 Not Found", "try /metrics\n")
        return _response("200 OK", text, with_body=method == "GET")


def _request_line(caller: socket.socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MAX_REQUEST_BYTES:
        piece = caller.recv(4096)
        if not piece:
            break
        data += piece
    return data.partition(b"\r\n")[0].decode("latin-1")


def _response(status: str, text: str, *, with_body: bool = True) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {TEXT}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (body if with_body else b"")
