"""The address that the web server listens on: reading it, and saying early when it is taken.

`python -m costwatch.bind HOST:PORT` exits with one line when nothing could listen there.
"""

import errno
import socket
import sys
from dataclasses import dataclass

TRIED_PORTS = 100
LAST_PORT = 65535


class BadBindError(Exception):
    """An address that cannot be listened on; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """Where to listen."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host.startswith("127.") or self.host in {"localhost", "::1"}

    @property
    def local_host(self) -> str:
        """The host under which this machine itself reaches it."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104

    @property
    def local_url(self) -> str:
        """The address to type into this machine's browser."""
        host = "localhost" if self.local_host == "127.0.0.1" else self.local_host
        return f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"


def parse_bind(text: str) -> Bind:
    """Read HOST:PORT, [IPv6]:PORT or PORT."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 1 <= int(port) <= LAST_PORT:
        raise BadBindError(f"{text!r} is no address: write HOST:PORT, like 127.0.0.1:8000")
    return Bind(host=host.strip("[]") or "127.0.0.1", port=int(port))


def require_free(bind: Bind) -> None:
    """Raise with what to do when the address cannot be listened on."""
    error = _listening_error(bind.host, bind.port)
    if error is None:
        return
    if error.errno == errno.EADDRINUSE:
        free = next(
            (
                port
                for port in range(bind.port + 1, min(bind.port + TRIED_PORTS, LAST_PORT))
                if _listening_error(bind.host, port) is None
            ),
            8080,
        )
        raise BadBindError(f"Port {bind.port} is taken; run: make run PORT={free}")
    if error.errno == errno.EACCES:
        raise BadBindError(f"Port {bind.port} needs root; run: make run PORT=8000")
    raise BadBindError(f"Cannot listen on {bind.host}:{bind.port}: {error.strerror}")


def _listening_error(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(1)
        except OSError as error:
            return error
    return None


def main(arguments: list[str]) -> int:
    """Exit status 0 when the address is free."""
    try:
        require_free(parse_bind(arguments[0]))
    except BadBindError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
