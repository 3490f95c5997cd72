"""Builders of pulled bills: manifests as providers write them, sources, pulls."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from billing.connectors import Allowed, Connection
from billing.models import Delivery, Pull, Source
from billing.services import ask_for_pull
from jobs.models import Job
from jobs.services import run_job
from tests.billing.builders import focus_csv, in_month, organisation
from tests.billing.stores import BUCKET, KEYS

REPORT = "exports/costs"
MONTH = "20260501-20260601"


def bill(month: str, *costs: str, **columns: str) -> bytes:
    """A FOCUS file with one row for each cost."""
    rows = [
        in_month(month, BilledCost=cost, ChargeDescription=f"{number}-{uuid4()}", **columns)
        for number, cost in enumerate(costs)
    ]
    return focus_csv(rows)


def cur_manifest(
    assembly: str, keys: Sequence[str], *, month: str = "2026-05", bucket: str = BUCKET
) -> bytes:
    """A manifest as AWS writes it beside a Cost and Usage Report."""
    year, number = month.split("-")
    after = f"{int(year) + int(number) // 12}{int(number) % 12 + 1:02}"
    return json.dumps(
        {
            "assemblyId": assembly,
            "account": "123456789012",
            "columns": [{"category": "identity", "name": "LineItemId"}],
            "charset": "UTF-8",
            "compression": "GZIP",
            "contentType": "text/csv",
            "reportId": "0" * 64,
            "reportName": "costs",
            "billingPeriod": {
                "start": f"{year}{number}01T000000.000Z",
                "end": f"{after}01T000000.000Z",
            },
            "bucket": bucket,
            "reportKeys": list(keys),
            "additionalArtifactKeys": [],
        }
    ).encode()


def azure_manifest(
    run: str, blobs: Mapping[str, int], *, submitted: str, start: str = "2026-05-01"
) -> bytes:
    """A manifest as Azure writes it beside the partitions of a cost export."""
    return json.dumps(
        {
            "manifestVersion": "2024-04-01",
            "byteCount": sum(blobs.values()),
            "blobCount": len(blobs),
            "dataRowCount": 2,
            "exportConfig": {
                "exportName": "daily",
                "resourceId": "/subscriptions/0/providers/Microsoft.CostManagement/exports/daily",
                "dataVersion": "1.0",
                "apiVersion": "2023-08-01",
                "type": "FocusCost",
                "timeFrame": "MonthToDate",
                "granularity": "Daily",
            },
            "deliveryConfig": {
                "partitionData": True,
                "dataOverwriteBehavior": "CreateNewReport",
                "fileFormat": "Csv",
                "containerUri": "/subscriptions/0/storageAccounts/bills",
                "rootFolderPath": "exports",
            },
            "runInfo": {
                "executionType": "Scheduled",
                "submittedTime": submitted,
                "runId": run,
                "startDate": f"{start}T00:00:00",
                "endDate": f"{start[:8]}31T00:00:00Z",
            },
            "blobs": [
                {"blobName": name, "byteCount": size, "dataRowCount": 1}
                for name, size in blobs.items()
            ],
        }
    ).encode()


def export_manifest(execution: str, keys: Sequence[str], *, bucket: str = BUCKET) -> bytes:
    """A manifest as AWS Data Exports writes it."""
    return json.dumps(
        {
            "executionId": execution,
            "exportArn": "arn:aws:bcm-data-exports:us-east-1:123456789012:export/costs-1",
            "contentType": "text/csv",
            "compression": "GZIP",
            "columns": [{"name": "BilledCost", "type": "Decimal"}],
            "dataFiles": [f"s3://{bucket}/{key}" for key in keys],
        }
    ).encode()


def s3_connection(url: str, **settings: Any) -> Connection:
    """A connection to the tests' bucket by keys."""
    return Connection(
        kind="s3",
        settings={"bucket": BUCKET, "endpoint_url": url, "region": "us-east-1", **settings},
        secret=KEYS,
        allowed=Allowed(hosts=frozenset({"127.0.0.1"})),
    )


def s3_source(url: str, **settings: Any) -> Source:
    """A source that is pulled from the tests' bucket."""
    return make_source(
        "s3", {"bucket": BUCKET, "endpoint_url": url, "region": "us-east-1", **settings}
    )


def make_source(kind: str, connection: Mapping[str, Any], **fields: Any) -> Source:
    return Source.objects.create(
        organisation=organisation(),
        name=fields.pop("name", "pulled"),
        kind=kind,
        connection=dict(connection),
        **fields,
    )


def pulled(source: Source, *, again: bool = False) -> Pull:
    """Pull now, import what came, and return how it went; a failing store is not tried again."""
    job_id = ask_for_pull(source)
    if again:
        Job.objects.filter(pk=job_id).update(payload={"source_id": str(source.pk), "again": True})
    run_job(job_id)
    pull = Pull.objects.get(job_id=job_id)
    for unit in pull.report.get("units", []):
        run_job(Delivery.objects.get(pk=UUID(unit["delivery_id"])).job_id)
    source.refresh_from_db()
    return pull


def codes(pull: Pull) -> list[str]:
    return [one["code"] for one in pull.report.get("problems", [])]
