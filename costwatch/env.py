"""Typed readers of environment variables that fail loudly. Reads nothing else."""

import os
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


class EnvironmentVariableError(Exception):
    """A variable that cannot be used: says which, what it held and what it should hold."""


def env_str(name: str, default: str = "") -> str:
    """Return the variable, or `default` when it is unset or empty."""
    return os.environ.get(name) or default


def env_bool(name: str, *, default: bool) -> bool:
    """Return true for 1/true/yes/on and false for 0/false/no/off; anything else is an error."""
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return default
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise EnvironmentVariableError(f"{name} is {text!r}: write 1 or 0")


def env_int(name: str, default: int, *, minimum: int = 0) -> int:
    """Return a whole number not below `minimum`."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        raise EnvironmentVariableError(f"{name} is {text!r}: write a whole number") from None
    if number < minimum:
        raise EnvironmentVariableError(f"{name} is {number}: it must be at least {minimum}")
    return number


def env_list(name: str, default: str = "") -> list[str]:
    """Return the parts of a comma-separated variable, blanks dropped."""
    return [part.strip() for part in env_str(name, default).split(",") if part.strip()]


def env_secret(name: str) -> str | None:
    """Return NAME, or the content of the file that NAME_FILE points to, or None."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EnvironmentVariableError(f"{name}_FILE: {error.strerror}: {path}") from error
    return os.environ.get(name) or None


def database_from_url(url: str) -> dict[str, object]:
    """Return Django's settings for a postgresql:// URL; `?host=/path` names a socket folder."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise EnvironmentVariableError(
            f"DATABASE_URL starts with {parts.scheme!r}: Costwatch needs postgresql://"
        )
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = query.pop("host", "") or parts.hostname or ""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "costwatch",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or query.pop("port", "")),
        "OPTIONS": query,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }
