"""What every test stands on: a data folder of its own, real servers, no network but loopback."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("COSTWATCH_INSECURE_HTTP", "1")
os.environ.setdefault("COSTWATCH_SECRET_KEY", "a test key that protects nothing, long enough for checks")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to start without the real servers, and say how to get them."""
    if "DATABASE_URL" not in os.environ or "REDIS_URL" not in os.environ:
        pytest.exit(
            "The tests need PostgreSQL and Redis: run `make test`, or "
            "`python -m costwatch.embedded --test -- pytest ...`",
            returncode=4,
        )


@pytest.fixture(autouse=True)
def _data_dir(settings: object, tmp_path: Path) -> None:
    """Give each test its own data folder and lake."""
    settings.DATA_DIR = tmp_path / "data"  # type: ignore[attr-defined]
    settings.LAKE_URL = str(tmp_path / "data" / "lake")  # type: ignore[attr-defined]
