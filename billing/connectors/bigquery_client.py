"""Calls to BigQuery by Google's own client: signed in, bounded in time and in bytes read."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import google.auth
from django.utils.translation import gettext as _
from google.auth import impersonated_credentials
from google.auth.transport.requests import Request
from google.cloud import bigquery
from google.oauth2 import service_account

from billing.connectors.bigquery_errors import (
    JOBS_CREATE,
    TABLES_GET,
    TABLES_GET_DATA,
    TABLES_LIST,
    in_our_words,
)
from billing.connectors.bigquery_queries import PREFIXES, ExportTable
from billing.connectors.bigquery_settings import BigQuerySettings
from billing.connectors.contract import ConnectorError, JsonObject
from billing.connectors.network import is_listed

SCOPES: Final = ("https://www.googleapis.com/auth/bigquery",)
WIDER_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
TOKEN_HOSTS: Final = frozenset({"oauth2.googleapis.com", "accounts.google.com"})
SECRET_FIELD: Final = "service_account_json"  # noqa: S105  # the name of a field
RETRY_FOR_S = 60.0
CALL_TIMEOUT_S: Final = 60.0
QUERY_TIMEOUT_S: Final = 1800.0
Answer = TypeVar("Answer")


class Part:
    """Some rows of a query's result, page by page; counts what was read."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.total_rows: int = found.total_rows
        self.schema: Any = found.schema
        self.rows_read = 0

    def pages(self) -> Iterator[list[Mapping[str, Any]]]:
        """Each page's rows."""
        for page in self._found.pages:
            rows = list(page)
            self.rows_read += len(rows)
            yield rows


class BigQuery:
    """One signed-in client; every refusal comes back as a ConnectorError."""

    def __init__(self, *, settings: BigQuerySettings, secret: JsonObject | None) -> None:
        self._settings = settings
        self._secret = secret
        self._client: bigquery.Client | None = None
        self._credentials: Any = None
        self._retry = bigquery.DEFAULT_RETRY.with_timeout(RETRY_FOR_S)

    def today(self) -> date:
        """The day of the test that a person asked for."""
        return datetime.now(UTC).date()

    def sign_in(self) -> str:
        """Get a token; return whom Google will see."""
        with self._words(self._settings.dataset, TABLES_GET):
            credentials = self._signed_in()
            credentials.refresh(Request())
        return str(getattr(credentials, "service_account_email", "") or _("this server's identity"))

    def table(self) -> bigquery.Table:
        """The export table, found by its name or as the only one of its dataset."""
        name = self._settings.table or self._only_table()
        full_name = f"{self._settings.dataset}.{name}"
        return self._call(
            full_name,
            TABLES_GET,
            lambda client: client.get_table(full_name, retry=self._retry, timeout=CALL_TIMEOUT_S),
        )

    def _only_table(self) -> str:
        dataset = self._settings.dataset
        found: list[str] = self._call(
            dataset,
            TABLES_LIST,
            lambda client: [
                item.table_id
                for item in client.list_tables(dataset, retry=self._retry, timeout=CALL_TIMEOUT_S)
            ],
        )
        exports = sorted(name for name in found if name.startswith(PREFIXES))
        if len(exports) == 1:
            return exports[0]
        if not exports:
            words = _(
                "The dataset holds no billing export; it starts to fill a few hours after "
                "the export was switched on."
            )
            raise ConnectorError("not_found", words, object=dataset)
        raise ConnectorError(
            "settings",
            _(
                "The dataset holds several billing exports: name the table. There are {names}."
            ).format(names=", ".join(exports)),
            object=dataset,
        )

    def estimate_bytes(self, sql: str, table: ExportTable) -> int:
        """What the query would read, at no cost.

        Raises:
            ConnectorError: more than the limit, or a permission is missing.
        """
        config = bigquery.QueryJobConfig(dry_run=True, use_query_cache=False)
        job = self._call(
            table.full_name, JOBS_CREATE, lambda client: self._start(client, sql, table, config)
        )
        estimate_bytes = int(job.total_bytes_processed or 0)
        if estimate_bytes > self._settings.max_query_bytes:
            raise ConnectorError(
                "too_large",
                _(
                    "The query would read {estimate} GB, the limit of this source is {limit} GB: "
                    "raise the limit or start from a later month."
                ).format(
                    estimate=f"{estimate_bytes / 1e9:.1f}",
                    limit=f"{self._settings.max_query_bytes / 1e9:g}",
                ),
                object=table.full_name,
            )
        return estimate_bytes

    def rows(self, sql: str, table: ExportTable) -> list[Mapping[str, Any]]:
        """The whole answer of a small query."""
        job_id = self.run(sql, table)
        return self._call(
            table.full_name,
            TABLES_GET_DATA,
            lambda client: list(self._result(client, job_id, table)),
        )

    def run(self, sql: str, table: ExportTable) -> str:
        """Run the query within the limit; return the id of its job."""
        self.estimate_bytes(sql, table)
        config = bigquery.QueryJobConfig(maximum_bytes_billed=self._settings.max_query_bytes)
        job = self._call(
            table.full_name, JOBS_CREATE, lambda client: self._start(client, sql, table, config)
        )
        return str(job.job_id)

    def part(
        self, job_id: str, table: ExportTable, *, first: int, count: int, page_rows: int
    ) -> Part:
        """Rows `first` to `first + count` of a query that was run."""
        return self._call(
            table.full_name,
            TABLES_GET_DATA,
            lambda client: Part(
                self._result(
                    client,
                    job_id,
                    table,
                    start_index=first,
                    max_results=count,
                    page_size=min(page_rows, count),
                )
            ),
        )

    def guarded(self, chunks: Iterable[bytes], table: ExportTable) -> Iterator[bytes]:
        """The chunks, with Google's errors on the way in our words."""
        with self._words(table.full_name, TABLES_GET_DATA):
            yield from chunks

    def _start(
        self, client: bigquery.Client, sql: str, table: ExportTable, config: bigquery.QueryJobConfig
    ) -> bigquery.QueryJob:
        return client.query(
            sql,
            job_config=config,
            location=table.location,
            retry=self._retry,
            job_retry=None,
            timeout=CALL_TIMEOUT_S,
        )

    def _result(
        self, client: bigquery.Client, job_id: str, table: ExportTable, **options: Any
    ) -> Any:
        """The rows of a job, asked for anew: the client keeps the first page of an old handle."""
        job = client.get_job(
            job_id, location=table.location, retry=self._retry, timeout=CALL_TIMEOUT_S
        )
        if not isinstance(job, bigquery.QueryJob):
            raise ConnectorError("changed", _("The query is gone."), object=table.full_name)
        return job.result(retry=self._retry, timeout=QUERY_TIMEOUT_S, **options)

    def _call(self, on: str, permission: str, ask: Callable[[bigquery.Client], Answer]) -> Answer:
        with self._words(on, permission):
            return ask(self._opened())

    def _words(self, on: str, permission: str) -> AbstractContextManager[None]:
        return in_our_words(job_project=self._settings.job_project, table=on, permission=permission)

    def _opened(self) -> bigquery.Client:
        if self._client is None:
            endpoint = self._settings.endpoint
            self._client = bigquery.Client(
                project=self._settings.job_project,
                credentials=self._signed_in(),
                client_options={"api_endpoint": endpoint} if endpoint else None,
            )
        return self._client

    def _signed_in(self) -> Any:
        if self._credentials is None:
            own = self._own_credentials()
            if self._settings.impersonate:
                own = impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
                    source_credentials=own,
                    target_principal=self._settings.impersonate,
                    target_scopes=list(SCOPES),
                )
            self._credentials = own
        return self._credentials

    def _own_credentials(self) -> Any:
        """The stored key of a service account, else what the server is given by its platform."""
        scopes = WIDER_SCOPES if self._settings.impersonate else SCOPES
        text = str((self._secret or {}).get(SECRET_FIELD) or "")
        if not text:
            found, _project = google.auth.default(scopes=list(scopes))
            return found
        try:
            info = json.loads(text)
            if info["type"] != "service_account":
                raise KeyError("type")
            self._require_token_host(str(info["token_uri"]))
            return _of_key(info, scopes)
        except (ValueError, KeyError, TypeError):
            raise ConnectorError(
                "credentials",
                _("The stored credential is not the JSON key of a service account."),
            ) from None

    def _require_token_host(self, token_uri: str) -> None:
        """A key says where to sign in; that must be Google, or what the operator allows."""
        host = urlsplit(token_uri).hostname or ""
        is_google = host in TOKEN_HOSTS and token_uri.startswith("https://")
        if not is_google and not is_listed(host, self._settings.allowed_hosts):
            raise ConnectorError(
                "endpoint",
                _("The key wants to sign in at {host}, not at Google.").format(host=host),
            )


def _of_key(info: Mapping[str, Any], scopes: tuple[str, ...]) -> Any:
    read: Callable[..., Any] = service_account.Credentials.from_service_account_info
    return read(info, scopes=list(scopes))
