"""The process that the tests fork confined children from: what those load is loaded once.

It does what `python -m lake.parse_child` does, in a process of its own for each request; only the
imports come before the confinement instead of after it. `tests/lake` starts the real one.
"""

import os
import signal
import socket
import sys

from lake import archives, csv_parsing, line_finding, parquet_parsing, parse_child

LOADED = (archives, csv_parsing, line_finding, parquet_parsing)
PID_BYTES = 8


def serve(asked: socket.socket) -> None:
    """Fork a child for each pair of pipes that comes in; answer its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    while True:
        _, pipes, _, _ = socket.recv_fds(asked, 1, 2)
        if not pipes:
            return
        pid = os.fork()
        if pid == 0:
            asked.close()
            _be_child(*pipes)
        for pipe in pipes:
            os.close(pipe)
        asked.sendall(pid.to_bytes(PID_BYTES, "big"))


def _be_child(requests: int, answers: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(requests, 0)
    os.dup2(answers, 1)
    os.closerange(3, 256)
    code = 1
    try:
        parse_child.main()
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
