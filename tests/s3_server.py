"""An S3 server on loopback, its own process: for sources that pull, and for the lake itself."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
REGION = "us-east-1"
START_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server; every credential is as good as another."""

    url: str

    def client(self) -> Any:
        """A client of the tests' own."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(s3={"addressing_style": "path"}),
        )

    def bucket(self, name: str) -> str:
        """A new empty bucket of this name."""
        self.client().create_bucket(Bucket=name)
        return name


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Start the server on a free port, stop it afterwards; its words go to `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(server, port, folder / "s3.log")
            yield S3Server(url=f"http://127.0.0.1:{port}")
        finally:
            server.kill()
            server.wait()


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the S3 server did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests of a run; each test takes a bucket of its own."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server
