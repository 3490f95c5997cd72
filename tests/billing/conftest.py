"""What several tests of bills share: an S3 server of its own process, a proxy that makes faults."""

from collections.abc import Iterator

import pytest

from tests.billing.stores import FaultyProxy, S3Server, running_s3


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on loopback, for the whole run."""
    with running_s3() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, settings: object) -> S3Server:
    """The server with one empty bucket; no credential comes from this machine."""
    for name, value in {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    settings.PRIVATE_HOSTS = ["127.0.0.1"]  # type: ignore[attr-defined]
    s3_server.reset()
    return s3_server


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    """A proxy in front of the S3 server that answers some requests by itself."""
    with FaultyProxy.running(s3.port) as running:
        yield running
