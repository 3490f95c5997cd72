"""A BigQuery on loopback, by the documented shapes of its REST API; SQL is run by DuckDB.

Written from https://cloud.google.com/bigquery/docs/reference/rest: tables.get and list,
jobs.insert (dry run, maximumBytesBilled), jobs.get, getQueryResults with pages, and the errors.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb
import sqlglot
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlglot import exp

STATUS_WORDS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
DUCK_TYPES = {
    "STRING": "VARCHAR",
    "FLOAT": "DOUBLE",
    "NUMERIC": "DECIMAL(38, 9)",
    "TIMESTAMP": "TIMESTAMP",
    "INTEGER": "BIGINT",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}


def scalar(name: str, kind: str = "STRING", mode: str = "NULLABLE") -> dict[str, Any]:
    return {"name": name, "type": kind, "mode": mode}


def record(name: str, *fields: dict[str, Any], mode: str = "NULLABLE") -> dict[str, Any]:
    return {"name": name, "type": "RECORD", "mode": mode, "fields": list(fields)}


LABELS = (scalar("key"), scalar("value"))
STANDARD_SCHEMA = [
    scalar("billing_account_id"),
    record("service", scalar("id"), scalar("description")),
    record("sku", scalar("id"), scalar("description")),
    scalar("usage_start_time", "TIMESTAMP"),
    scalar("usage_end_time", "TIMESTAMP"),
    record("project", scalar("id"), scalar("name"), record("labels", *LABELS, mode="REPEATED")),
    record("labels", *LABELS, mode="REPEATED"),
    record("location", scalar("location"), scalar("region")),
    scalar("export_time", "TIMESTAMP"),
    scalar("cost", "FLOAT"),
    scalar("currency"),
    record("usage", scalar("amount", "FLOAT"), scalar("unit")),
    record(
        "credits",
        scalar("name"),
        scalar("amount", "FLOAT"),
        scalar("type"),
        mode="REPEATED",
    ),
    record("invoice", scalar("month")),
    scalar("cost_type"),
    scalar("cost_at_list", "NUMERIC"),
]
DETAILED_SCHEMA = [*STANDARD_SCHEMA, record("resource", scalar("name"), scalar("global_name"))]
FOCUS_SCHEMA = [
    scalar("BilledCost", "NUMERIC"),
    scalar("BillingCurrency"),
    scalar("BillingPeriodStart", "TIMESTAMP"),
    scalar("ChargePeriodStart", "TIMESTAMP"),
    scalar("x_ExportTime", "TIMESTAMP"),
]


@dataclass(slots=True, kw_only=True)
class Fault:
    """What the next requests of a kind get instead of an answer."""

    on: str  # token, tables.get, tables.list, jobs.insert, jobs.get, results
    status: int
    reason: str = ""
    message: str = "no"
    times: int = 10**6
    after: int = 0  # so many good answers first
    cut: bool = False  # end the connection in the middle of the body


@dataclass(slots=True, kw_only=True)
class FakeTable:
    """One table: its schema, its rows, the partition of each row."""

    schema: list[dict[str, Any]]
    rows: list[tuple[date, dict[str, Any]]] = field(default_factory=list)
    kind: str = "TABLE"
    bytes_of_query: int = 10_000_000


@dataclass(slots=True, kw_only=True)
class FakeBigQuery:
    """The whole server: tables, jobs, faults, and what was asked."""

    project: str = "moe-billing"
    dataset: str = "billing"
    tables: dict[str, FakeTable] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)  # those that were run
    limits: list[str] = field(default_factory=list)
    page_rows: int = 10**6
    port: int = 0
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault(self, **options: Any) -> None:
        self.faults.append(Fault(**options))

    def fault_for(self, kind: str) -> Fault | None:
        for one in self.faults:
            if one.on == kind and one.times > 0:
                if one.after:
                    one.after -= 1
                    continue
                one.times -= 1
                return one
        return None

    def answer(self, sql: str) -> tuple[list[dict[str, Any]], list[list[Any]]]:
        """Run BigQuery's SQL over the rows: schema and rows of the answer."""
        tree = sqlglot.parse_one(sql, read="bigquery")
        name = next(tree.find_all(exp.Table)).name
        table = self.tables[name]
        for one in tree.find_all(exp.Table):
            one.replace(exp.table_("t"))
        with duckdb.connect() as engine:
            engine.execute("SET TimeZone = 'UTC'")
            _load(engine, table)
            text = tree.sql(dialect="duckdb")
            if "SELECT *" in text:
                text = text.replace("SELECT *", 'SELECT * EXCLUDE ("_PARTITIONDATE")')
                schema = table.schema
            else:
                schema = [
                    scalar("billing_month"),
                    scalar("partition_day", "DATE"),
                    scalar("row_count", "INTEGER"),
                    scalar("newest", "TIMESTAMP"),
                ]
            text = text.replace("TIMESTAMPTZ", "TIMESTAMP")
            return schema, [list(row) for row in engine.execute(text).fetchall()]


def _load(engine: Any, table: FakeTable) -> None:
    columns = ", ".join(f'"{one["name"]}" {_duck_type(one)}' for one in table.schema)
    engine.execute(f'CREATE TABLE t ("_PARTITIONDATE" DATE, {columns})')
    marks = ", ".join("?" for _ in range(len(table.schema) + 1))
    for day, row in table.rows:
        values = [_without_zone(row.get(one["name"])) for one in table.schema]
        engine.execute(f"INSERT INTO t VALUES ({marks})", [day, *values])


def _without_zone(value: Any) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _duck_type(one: Mapping[str, Any]) -> str:
    if one["type"] == "RECORD":
        inner = ", ".join(f'"{part["name"]}" {_duck_type(part)}' for part in one["fields"])
        name = f"STRUCT({inner})"
    else:
        name = DUCK_TYPES[one["type"]]
    return f"{name}[]" if one["mode"] == "REPEATED" else name


def cell(value: Any, one: Mapping[str, Any]) -> dict[str, Any]:
    """A value as getQueryResults writes it: every scalar is text, instants are microseconds."""
    if one["mode"] == "REPEATED":
        single = {**one, "mode": "NULLABLE"}
        return {"v": [cell(part, single) for part in value or []]}
    if value is None:
        return {"v": None}
    if one["type"] == "RECORD":
        return {"v": {"f": [cell(value[part["name"]], part) for part in one["fields"]]}}
    if isinstance(value, datetime):
        since = value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return {"v": str((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds)}
    if isinstance(value, date):
        return {"v": value.isoformat()}
    if isinstance(value, bool):
        return {"v": "true" if value else "false"}
    return {"v": repr(value) if isinstance(value, float) else str(value)}


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        path = urlsplit(self.path).path
        if path == "/token":
            self._send_or_fail("token", lambda: {"access_token": "t", "expires_in": 3600})
        elif path.endswith("/jobs"):
            self._send_or_fail("jobs.insert", lambda: self._insert(json.loads(body)))
        else:
            self._refuse(404, "notFound", path)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        words = parts.path.strip("/").split("/")[2:]  # behind bigquery/v2
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if words[2:3] == ["queries"]:
            self._send_or_fail("results", lambda: self._results(words[3], query))
        elif words[2:3] == ["jobs"]:
            self._send_or_fail("jobs.get", lambda: self._job(words[3]))
        elif words[-1] == "tables":
            self._send_or_fail("tables.list", self._tables)
        else:
            self._table(words[-1])

    @property
    def _fake(self) -> FakeBigQuery:
        return self.server.fake

    def _send_or_fail(self, kind: str, answer: Any) -> None:
        fault = self._fake.fault_for(kind)
        if fault is not None and fault.cut:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"kind": "bigquery#getQueryResultsResponse", "rows": [')
            self.wfile.flush()
            self.close_connection = True
        elif fault is not None:
            self._refuse(fault.status, fault.reason, fault.message)
        else:
            document = answer()
            if document is not None:
                self._send(200, document)

    def _refuse(self, status: int, reason: str, message: str) -> None:
        entry = {"message": message, "domain": "global", "reason": reason}
        word = STATUS_WORDS.get(status, "UNKNOWN")
        error = {"code": status, "message": message, "errors": [entry], "status": word}
        self._send(status, {"error": error})

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reference(self, name: str) -> dict[str, str]:
        fake = self._fake
        return {"projectId": fake.project, "datasetId": fake.dataset, "tableId": name}

    def _tables(self) -> dict[str, Any]:
        listed = [
            {"kind": "bigquery#table", "tableReference": self._reference(name), "type": one.kind}
            for name, one in self._fake.tables.items()
        ]
        return {"kind": "bigquery#tableList", "tables": listed, "totalItems": len(listed)}

    def _table(self, name: str) -> None:
        table = self._fake.tables.get(name)
        if table is None:
            return self._refuse(404, "notFound", f"Not found: Table {name}")
        partitioned = {"timePartitioning": {"type": "DAY"}} if table.kind == "TABLE" else {}
        return self._send_or_fail(
            "tables.get",
            lambda: {
                "kind": "bigquery#table",
                "tableReference": self._reference(name),
                "schema": {"fields": table.schema},
                "type": table.kind,
                "location": "EU",
                **partitioned,
            },
        )

    def _insert(self, wish: dict[str, Any]) -> dict[str, Any] | None:
        fake = self._fake
        configuration = wish["configuration"]
        sql = configuration["query"]["query"]
        name = next(sqlglot.parse_one(sql, read="bigquery").find_all(exp.Table)).name
        if name not in fake.tables:
            self._refuse(404, "notFound", f"Not found: Table {name}")
            return None
        size = fake.tables[name].bytes_of_query
        limit = configuration["query"].get("maximumBytesBilled")
        if configuration.get("dryRun"):
            return self._job_document("dry", wish, size, state="DONE")
        fake.limits.append(str(limit))
        if limit is not None and size > int(limit):
            self._refuse(400, "bytesBilledLimitExceeded", "Query exceeded limit for bytes billed")
            return None
        fake.queries.append(sql)
        schema, rows = fake.answer(sql)
        job_id = wish["jobReference"]["jobId"]
        fake.jobs[job_id] = {"wish": wish, "size": size, "schema": schema, "rows": rows}
        return self._job(job_id)

    def _job(self, job_id: str) -> dict[str, Any]:
        known = self._fake.jobs[job_id]
        return self._job_document(job_id, known["wish"], known["size"], state="DONE")

    def _job_document(
        self, job_id: str, wish: dict[str, Any], size: int, *, state: str
    ) -> dict[str, Any]:
        return {
            "kind": "bigquery#job",
            "jobReference": {
                "projectId": self._fake.project,
                "jobId": job_id,
                "location": wish["jobReference"].get("location", "EU"),
            },
            "configuration": {**wish["configuration"], "jobType": "QUERY"},
            "status": {"state": state},
            "statistics": {
                "totalBytesProcessed": str(size),
                "query": {"totalBytesProcessed": str(size), "statementType": "SELECT"},
            },
        }

    def _results(self, job_id: str, query: dict[str, str]) -> dict[str, Any]:
        known = self._fake.jobs[job_id]
        start = int(query.get("pageToken") or query.get("startIndex") or 0)
        wanted = int(query["maxResults"]) if "maxResults" in query else 10**9
        end = min(start + min(wanted, self._fake.page_rows), len(known["rows"]))
        document = {
            "kind": "bigquery#getQueryResultsResponse",
            "jobReference": {"projectId": self._fake.project, "jobId": job_id, "location": "EU"},
            "schema": {"fields": known["schema"]},
            "jobComplete": True,
            "totalRows": str(len(known["rows"])),
            "totalBytesProcessed": str(known["size"]),
        }
        if wanted:
            rows = known["rows"][start:end]
            document["rows"] = [
                {"f": [cell(value, one) for value, one in zip(row, known["schema"], strict=True)]}
                for row in rows
            ]
            if end < len(known["rows"]):
                document["pageToken"] = str(end)
        return document


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeBigQuery


@contextmanager
def serving(fake: FakeBigQuery) -> Iterator[FakeBigQuery]:
    """Run it on a free port of loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake, fake.port = fake, server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_file(fake: FakeBigQuery, **changed: str) -> str:
    """The JSON key of a service account that signs in at this server."""
    pem = _KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    return json.dumps(
        {
            "type": "service_account",
            "project_id": fake.project,
            "private_key_id": "k1",
            "private_key": pem,
            "client_email": f"costwatch@{fake.project}.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{fake.url}/token",
            **changed,
        }
    )
