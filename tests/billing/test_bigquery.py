"""Pulling Google's billing export from BigQuery, by Google's client over loopback."""

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from google.auth.credentials import CredentialsWithRegionalAccessBoundary

from billing.connectors import bigquery, bigquery_client
from billing.connectors.bigquery import BigQueryConnector
from billing.connectors.contract import Allowed, Connection, ConnectorError
from tests.billing.bigquery_server import (
    DETAILED_SCHEMA,
    FOCUS_SCHEMA,
    STANDARD_SCHEMA,
    FakeBigQuery,
    FakeTable,
    key_file,
    serving,
)

STANDARD = "gcp_billing_export_v1_0A1B2C"
TABLE = f"moe-billing.billing.{STANDARD}"
EXPORTED = datetime(2026, 6, 2, 3, 4, 5, tzinfo=UTC)


def bill_row(month: str = "2026-05", **changed) -> dict:
    """One row of the standard export."""
    day = datetime.fromisoformat(f"{month}-03T00:00:00+00:00")
    return {
        "billing_account_id": "0A-1B",
        "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
        "sku": {"id": "1", "description": "Nvidia H100 80GB GPU running in Iowa"},
        "usage_start_time": day,
        "usage_end_time": day + timedelta(hours=1),
        "project": {"id": "moe", "name": "MoE", "labels": []},
        "labels": [{"key": "team", "value": "pretraining"}],
        "location": {"location": "us-central1", "region": "us-central1"},
        "export_time": EXPORTED,
        "cost": 0.1,
        "currency": "USD",
        "usage": {"amount": 3600.0, "unit": "seconds"},
        "credits": [],
        "invoice": {"month": month.replace("-", "")},
        "cost_type": "regular",
        "cost_at_list": Decimal("0.123456789"),
        **changed,
    }


def put(fake: FakeBigQuery, *rows: dict, table: str = STANDARD) -> None:
    """Add rows to the partition of their first day."""
    for row in rows:
        fake.tables[table].rows.append((row["usage_start_time"].date(), row))


@pytest.fixture
def google(monkeypatch):
    monkeypatch.setattr(bigquery_client, "RETRY_FOR_S", 1.0)
    # Google's library asks an address of its own about regions, in the background.
    monkeypatch.setattr(
        CredentialsWithRegionalAccessBoundary,
        "_is_regional_access_boundary_lookup_required",
        lambda _: False,
    )
    fake = FakeBigQuery(tables={STANDARD: FakeTable(schema=STANDARD_SCHEMA)})
    with serving(fake):
        yield fake


def connector(fake: FakeBigQuery, *, secret: str | None = None, **settings) -> BigQueryConnector:
    return BigQueryConnector(
        Connection(
            kind="bigquery",
            settings={
                "project": fake.project,
                "dataset": fake.dataset,
                "table": STANDARD,
                "endpoint_url": fake.url,
                **settings,
            },
            secret={"service_account_json": secret or key_file(fake)},
            allowed=Allowed(hosts=frozenset({"127.0.0.1"})),
        )
    )


def units(fake: FakeBigQuery, watermark=None, **settings):
    return list(connector(fake, **settings).units(watermark or {}))


def lines(source: BigQueryConnector, unit) -> list[dict[str, str]]:
    """The rows of all parts of a unit, as a CSV reader sees them."""
    found: list[dict[str, str]] = []
    for ref in unit.objects:
        text = b"".join(source.open(ref)).decode()
        found += csv.DictReader(io.StringIO(text))
    return found


def test_each_invoice_month_is_one_unit_with_its_newest_export_time_and_rows(google):
    put(google, bill_row("2026-04"), bill_row("2026-05"), bill_row("2026-05"))

    april, may = units(google)

    assert (april.period, may.period) == ("2026-04", "2026-05")
    assert may.key == f"{TABLE}/2026-05"
    assert may.fingerprint == f"{EXPORTED.isoformat()}+2"
    assert may.version_at == EXPORTED
    assert may.origin["rows"] == 2


def test_rows_come_with_dotted_columns_exact_numbers_and_lists_as_json(google):
    credit = {"name": "CUD", "amount": -0.0123, "type": "COMMITTED_USAGE_DISCOUNT"}
    put(google, bill_row(cost=1e-7, credits=[credit], location=None))
    source = connector(google)
    (may,) = source.units({})

    (row,) = lines(source, may)

    assert row["service.id"] == "6F81-5844-456A"
    assert row["invoice.month"] == "202605"
    assert row["cost"] == "0.0000001"
    assert row["cost_at_list"] == "0.123456789"
    assert row["location.region"] == ""
    assert row["usage_start_time"] == "2026-05-03 00:00:00 UTC"
    assert json.loads(row["labels"]) == [{"key": "team", "value": "pretraining"}]
    assert json.loads(row["credits"]) == [credit]
    assert list(row)[:5] == [
        "billing_account_id",
        "service.id",
        "service.description",
        "sku.id",
        "sku.description",
    ]


def test_every_number_of_the_export_arrives_to_its_last_digit(google):
    costs = [0.1, 0.2, 1 / 3, 123456789.123, 5e-324, -0.0]
    put(google, *(bill_row(cost=cost) for cost in costs))
    source = connector(google)
    (may,) = source.units({})

    assert sorted(float(row["cost"]) for row in lines(source, may)) == sorted(costs)


def test_a_large_month_comes_in_parts_of_pages_from_one_query(google, monkeypatch):
    monkeypatch.setattr(bigquery, "PART_ROWS", 7)
    monkeypatch.setattr(bigquery, "PAGE_ROWS", 3)
    google.page_rows = 3
    put(google, *(bill_row(cost=float(number)) for number in range(24)))
    source = connector(google)
    (may,) = source.units({})
    queries = len(google.queries)

    rows = lines(source, may)

    assert len(may.objects) == 4
    assert sorted(float(row["cost"]) for row in rows) == [float(number) for number in range(24)]
    assert len(google.queries) == queries + 1


def test_every_query_of_a_partitioned_table_names_its_partitions(google):
    put(google, bill_row("2026-04"), bill_row("2026-05"))
    source = connector(google)
    april, _may = source.units({})
    lines(source, april)

    states, month = google.queries
    assert "WHERE _PARTITIONDATE >= DATE '1970-01-01'" in states
    assert "_PARTITIONDATE IN (DATE '2026-04-03')" in month
    assert "SELECT *" not in states


def test_a_row_inserted_late_under_an_old_day_makes_its_month_a_new_state(google):
    put(google, bill_row("2026-04"), bill_row("2026-05"))
    seen = units(google)
    put(google, bill_row("2026-04", export_time=EXPORTED + timedelta(days=20), cost=0.7))
    source = connector(google)

    april, may = source.units({**seen[0].watermark, **seen[1].watermark})

    assert april.fingerprint != seen[0].fingerprint
    assert may.fingerprint == seen[1].fingerprint
    assert sorted(row["cost"] for row in lines(source, april)) == ["0.1", "0.7"]


def test_an_adjustment_to_usage_of_last_year_belongs_to_the_month_that_invoices_it(google):
    old = datetime(2025, 8, 1, tzinfo=UTC)
    put(google, bill_row("2026-05"), bill_row("2026-05", usage_start_time=old, cost=-3.0))
    source = connector(google)
    (may,) = source.units({})

    costs = sorted(Decimal(row["cost"]) for row in lines(source, may))
    assert costs == [Decimal("-3"), Decimal("0.1")]


def test_once_all_older_months_are_here_only_the_trailing_ones_are_looked_at(google):
    put(google, *(bill_row(month) for month in ("2025-01", "2025-12", "2026-04", "2026-05")))
    watermark: dict = {}
    for unit in units(google, trailing_days=60):
        watermark |= unit.watermark
    assert not watermark.get("whole")
    for unit in units(google, watermark, trailing_days=60):
        watermark |= unit.watermark
    assert watermark["whole"]

    found = units(google, watermark, trailing_days=60, lookback_days=30)

    assert [unit.period for unit in found] == ["2026-04", "2026-05"]
    assert "_PARTITIONDATE >= DATE '2026-03-02'" in google.queries[-1]


def test_months_before_the_first_wanted_one_are_left_alone(google):
    put(google, bill_row("2025-12"), bill_row("2026-01"))

    assert [unit.period for unit in units(google, from_month="2026-01")] == ["2026-01"]


def test_the_detailed_export_and_the_focus_view_are_told_apart(google):
    google.tables[STANDARD] = FakeTable(schema=DETAILED_SCHEMA)
    put(google, bill_row(resource={"name": "node-1", "global_name": "//compute/node-1"}))
    source = connector(google)
    (may,) = source.units({})
    assert lines(source, may)[0]["resource.name"] == "node-1"

    start = datetime(2026, 5, 1, tzinfo=UTC)
    focus = {
        "BilledCost": Decimal("1.100000000"),
        "BillingCurrency": "USD",
        "BillingPeriodStart": start,
        "ChargePeriodStart": start,
        "x_ExportTime": EXPORTED,
    }
    view = FakeTable(schema=FOCUS_SCHEMA, kind="VIEW", rows=[(start.date(), focus)])
    google.tables["focus"] = view
    source = connector(google, table="focus")
    (may,) = source.units({})

    assert may.period == "2026-05"
    assert lines(source, may)[0]["BilledCost"] == "1.100000000"
    assert "_PARTITIONDATE" not in google.queries[-1]


def test_the_only_export_of_a_dataset_needs_no_name_and_several_are_named(google):
    put(google, bill_row())
    assert [unit.period for unit in units(google, table="")] == ["2026-05"]
    google.tables["gcp_billing_export_resource_v1_0A1B2C"] = FakeTable(schema=DETAILED_SCHEMA)

    with pytest.raises(ConnectorError, match="gcp_billing_export_resource_v1_0A1B2C") as refusal:
        units(google, table="")
    assert refusal.value.code == "settings"


def test_a_query_over_the_limit_is_not_run_and_says_how_much_it_would_read(google):
    google.tables[STANDARD].bytes_of_query = 3 * 10**9
    put(google, bill_row())

    with pytest.raises(ConnectorError, match=r"3\.0 GB.*2 GB") as refusal:
        units(google, max_query_gb=2)

    assert refusal.value.code == "too_large"
    assert google.queries == []


def test_every_query_that_is_run_carries_the_limit(google):
    put(google, bill_row())
    source = connector(google, max_query_gb=5)
    (may,) = source.units({})
    lines(source, may)

    assert google.limits == [str(5 * 10**9)] * 2


def test_the_test_of_a_connection_says_each_step(google):
    put(google, bill_row())

    report = connector(google).check()

    assert report.ok
    assert [step.name for step in report.steps] == ["reach", "list", "manifest", "read"]
    assert "costwatch@moe-billing.iam.gserviceaccount.com" in report.steps[0].message
    assert "standard billing export" in report.steps[1].message
    assert "0.010 GB" in report.steps[2].message


@pytest.mark.parametrize(
    ("on", "message", "step", "missing"),
    [
        (
            "tables.get",
            f"Access Denied: Table {TABLE}: Permission bigquery.tables.get denied on table "
            f"{TABLE} (or it may not exist).",
            "list",
            f"bigquery.tables.get on table {TABLE}",
        ),
        (
            "jobs.insert",
            "Access Denied: Project moe-billing: User does not have bigquery.jobs.create "
            "permission in project moe-billing.",
            "manifest",
            "bigquery.jobs.create on project moe-billing",
        ),
        (
            "jobs.insert",
            f"Access Denied: Table {TABLE}: User does not have permission to query table {TABLE}, "
            "or perhaps it does not exist.",
            "manifest",
            f"bigquery.tables.getData on table {TABLE}",
        ),
    ],
)
def test_the_test_names_the_missing_permission_and_on_what(google, on, message, step, missing):
    google.fault(on=on, status=403, reason="accessDenied", message=message)

    report = connector(google).check()

    assert not report.ok
    assert report.steps[-1].name == step
    assert report.steps[-1].missing_permission == missing


def test_listing_a_dataset_names_its_own_permission(google):
    google.fault(on="tables.list", status=403, reason="accessDenied", message="Access Denied.")

    report = connector(google, table="").check()

    assert report.steps[-1].missing_permission == (
        "bigquery.tables.list on dataset moe-billing.billing"
    )


def test_a_table_that_is_not_there_is_named(google):
    report = connector(google, table="gone").check()

    assert "moe-billing.billing.gone" in report.steps[-1].message


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [(429, "rateLimitExceeded", "throttled"), (500, "backendError", "unavailable")],
)
def test_a_busy_google_is_asked_again_a_while_and_then_left_for_later(google, status, reason, code):
    put(google, bill_row())
    google.fault(on="jobs.insert", status=status, reason=reason, times=1)
    assert len(units(google)) == 1
    google.fault(on="jobs.insert", status=status, reason=reason)

    with pytest.raises(ConnectorError) as refusal:
        units(google)

    assert refusal.value.code == code
    assert not refusal.value.permanent


@pytest.mark.parametrize("fault", [{"cut": True, "status": 200}, {"status": 500}])
def test_a_page_that_breaks_half_way_ends_the_part_with_an_error(google, monkeypatch, fault):
    monkeypatch.setattr(bigquery, "PAGE_ROWS", 2)
    google.page_rows = 2
    put(google, *(bill_row() for _ in range(6)))
    source = connector(google)
    (may,) = source.units({})
    google.fault(on="results", reason="backendError", after=2, **fault)

    with pytest.raises(ConnectorError) as refusal:
        lines(source, may)

    assert refusal.value.code in {"unavailable", "timeout"}
    assert not refusal.value.permanent


def test_rows_that_arrive_between_look_and_fetch_wait_for_the_next_pull(google):
    put(google, bill_row())
    source = connector(google)
    (may,) = source.units({})
    put(google, bill_row(export_time=EXPORTED + timedelta(hours=1), cost=9.0))

    assert [row["cost"] for row in lines(source, may)] == ["0.1"]


def test_a_month_whose_seen_rows_changed_is_not_delivered(google):
    put(google, bill_row(), bill_row())
    source = connector(google)
    (may,) = source.units({})
    google.tables[STANDARD].rows.pop()

    with pytest.raises(ConnectorError) as refusal:
        lines(source, may)
    assert refusal.value.code == "changed"
    assert refusal.value.is_incomplete


def test_a_revoked_key_and_a_text_that_is_no_key_are_told(google):
    google.fault(on="token", status=400, message="invalid_grant")
    with pytest.raises(ConnectorError) as refusal:
        units(google)
    assert refusal.value.code == "credentials"

    with pytest.raises(ConnectorError, match="service account") as refusal:
        units(google, secret="{}")
    assert refusal.value.code == "credentials"


def test_a_key_may_not_send_the_sign_in_elsewhere(google):
    with pytest.raises(ConnectorError, match=r"169\.254\.169\.254") as refusal:
        units(google, secret=key_file(google, token_uri="http://169.254.169.254/token"))
    assert refusal.value.code == "endpoint"


@pytest.mark.parametrize(
    "wrong",
    [
        {"dataset": "d`; DROP TABLE x"},
        {"table": "t` WHERE 1=1 --"},
        {"project": "169.254.169.254/x"},
        {"from_month": "May"},
        {"trailing_days": "-1"},
        {"impersonate": "x@evil.example"},
        {"endpoint_url": "http://169.254.169.254"},
        {"dataset": ""},
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_reached(google, wrong):
    with pytest.raises(ConnectorError) as refusal:
        connector(google, **wrong)
    assert refusal.value.code in {"settings", "endpoint"}


def test_a_month_that_names_no_invoice_month_is_told_not_dropped(google):
    put(google, bill_row(), bill_row(invoice=None))

    nameless, may = units(google)

    assert nameless.problem is not None
    assert nameless.problem.is_incomplete
    assert may.period == "2026-05"


def test_partitions_before_the_lookback_are_counted_apart(google):
    put(google, bill_row("2026-05"))
    google.tables[STANDARD].rows.append((date(2024, 1, 1), bill_row("2026-05")))

    (may,) = units(google)

    assert may.origin["rows"] == 1
    assert may.origin["rows_before_lookback"] == 1
