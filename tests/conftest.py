"""What every test stands on: a data folder of its own, real servers, no network but loopback."""

import ipaddress
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_django
from django.db import connection
from hypothesis import settings as hypothesis_settings

from lake import child_process
from tests.browser import browser, open_page, page, page_faults
from tests.warm_children import WarmChild, warm_children

__all__ = ["browser", "open_page", "page", "page_faults"]

os.environ.setdefault("COSTWATCH_INSECURE_HTTP", "1")
os.environ.setdefault("COSTWATCH_SECRET_KEY", "a key of the tests, which protects nothing at all")

# The suite draws the same cases each time: what passed here passes there. Look for new ones with
# `make test ARGS=--hypothesis-profile=explore`.
hypothesis_settings.register_profile("same", derandomize=True, deadline=None)
hypothesis_settings.register_profile("explore", max_examples=2000, deadline=None)
hypothesis_settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to start without the real servers, and say how to get them."""
    # A run in the background of a script is born deaf to Ctrl-C, and its children with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "DATABASE_URL" not in os.environ or "REDIS_URL" not in os.environ:
        pytest.exit(
            "The tests need PostgreSQL and Redis: run `make test`, or "
            "`python -m costwatch.embedded --test -- pytest ...`",
            returncode=4,
        )


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests reach loopback and unix sockets only."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            host = str(address[0])
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise AssertionError(f"a test tried to reach {host}: tests stay on loopback")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _data_dir(settings: object, tmp_path: Path) -> None:
    """Give each test its own data folder and lake."""
    settings.DATA_DIR = tmp_path / "data"  # type: ignore[attr-defined]
    settings.LAKE_URL = str(tmp_path / "data" / "lake")  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def _children() -> Iterator[socket.socket]:
    with warm_children() as asking:
        yield asking


@pytest.fixture(autouse=True)
def _warm_children(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _children: socket.socket
) -> None:
    """Let files be read by children that need not load anything; not where children are tested."""
    if hasattr(os, "pidfd_open") and "tests/lake" not in request.path.as_posix():
        monkeypatch.setattr(child_process, "start_child", lambda: WarmChild(_children))


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker
) -> None:
    """Let tests that commit empty the append-only tables; the triggers' tests turn them on."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, quote_ident(tgname) FROM pg_trigger "
            "WHERE NOT tgisinternal AND tgtype & 32 = 32"
        )
        for table, trigger in cursor.fetchall():
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
