"""What a connection to BigQuery says, checked before anything is reached."""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from billing.connectors.contract import Allowed, ConnectorError, JsonObject
from billing.connectors.network import is_listed

TRAILING_DAYS: Final = 90
LOOKBACK_DAYS: Final = 400
MAX_QUERY_GB: Final = 200
_PROJECT: Final = re.compile(r"[a-z][a-z0-9.:-]{2,62}")
_DATASET: Final = re.compile(r"\w{1,1024}", re.ASCII)
_TABLE: Final = re.compile(r"[\w-]{1,1024}", re.ASCII)
_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_ACCOUNT: Final = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+\.iam\.gserviceaccount\.com")


@dataclass(frozen=True, slots=True, kw_only=True)
class BigQuerySettings:
    """Where the export lies, who runs the queries, and how much they may read."""

    job_project: str  # queries run and are billed here
    dataset: str  # project.dataset
    table: str = ""  # empty: the only billing export in the dataset
    from_month: str = ""  # nothing before it is pulled
    trailing_days: int = TRAILING_DAYS
    lookback_days: int | None = LOOKBACK_DAYS  # None: every partition counts for every month
    max_query_bytes: int = MAX_QUERY_GB * 10**9
    impersonate: str = ""
    endpoint: str = ""
    allowed_hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: JsonObject, allowed: Allowed) -> "BigQuerySettings":
        """Read a connection's settings.

        Raises:
            ConnectorError: one of them cannot be.
        """
        project, dataset = _text(settings, "project"), _text(settings, "dataset")
        home, dot, name = dataset.rpartition(".")
        home = home if dot else project
        _require(_PROJECT, home or project, "project")
        _require(_PROJECT, project or home, "project")
        _require(_DATASET, name, "dataset")
        lookback_days = _count(settings, "lookback_days", LOOKBACK_DAYS)
        return cls(
            job_project=project or home,
            dataset=f"{home}.{name}",
            table=_require(_TABLE, _text(settings, "table"), "table", may_lack=True),
            from_month=_require(_MONTH, _text(settings, "from_month"), "from_month", may_lack=True),
            trailing_days=_count(settings, "trailing_days", TRAILING_DAYS),
            lookback_days=lookback_days or None,
            max_query_bytes=max(_count(settings, "max_query_gb", MAX_QUERY_GB), 1) * 10**9,
            impersonate=_require(
                _ACCOUNT, _text(settings, "impersonate"), "impersonate", may_lack=True
            ),
            endpoint=_endpoint(_text(settings, "endpoint_url"), allowed),
            allowed_hosts=allowed.hosts,
        )


def _text(settings: JsonObject, name: str) -> str:
    return str(settings.get(name) or "").strip()


def _require(pattern: re.Pattern[str], text: str, name: str, *, may_lack: bool = False) -> str:
    if (may_lack and not text) or pattern.fullmatch(text):
        return text
    raise ConnectorError(
        "settings", _("{name}: {value!r} cannot be.").format(name=name, value=text[:80])
    )


def _count(settings: JsonObject, name: str, default: int) -> int:
    value: Any = settings.get(name)
    if value in (None, ""):
        return default
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0:
        raise ConnectorError("settings", _("{name}: give a whole number.").format(name=name))
    return number


def _endpoint(text: str, allowed: Allowed) -> str:
    """Another address of the API: only one that the operator of this installation allows."""
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not is_listed(parts.hostname or "", allowed.hosts):
        raise ConnectorError(
            "endpoint",
            _(
                "{host} is not Google. The operator of this installation can allow it in "
                "COSTWATCH_PRIVATE_HOSTS."
            ).format(host=parts.hostname or text[:80]),
        )
    return text.rstrip("/")
