"""How much faster is an agent's batch taken than a plain serializer reads the same rows?

    python -m costwatch.embedded -- python bench/agent_batches.py [--devices 8] [--rows 1000]

Both get the same readings as JSON and run in this process. The plain way is the REST framework's
serializer, one object a row. Reading is compared with reading (until the columns are packed), and
the whole request (token, digest, batch and sequence, commit to the disk) with the serializer's
rows stored by bulk_create and committed.
"""

import argparse
import base64
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.power_ingest import Books

MEASURES = {
    "counter_millijoule": lambda row: 1_000_000_000 + row * 4_321,
    "power_w": lambda row: 400.5 + row % 250,
    "utilisation_fraction": lambda row: (row % 100) / 100,
    "memory_used_bytes": lambda row: 64 * 2**30 + row,
    "temperature_c": lambda row: 40.0 + row % 40,
}


def batch(*, devices: int, rows: int, sequence: int) -> dict[str, Any]:
    """An agent's document."""
    start_ms = int(time.time() * 1000) - 3_600_000 + sequence * 10
    return {
        "format": "costwatch-agent/1",
        "agent": {"name": "node-7", "version": "1.0.0"},
        "boot": "0f6e1c9a-7f0e-4b1e-9a55-0d1f2a3b4c5d",
        "sequence": sequence,
        "dropped": 0,
        "node": "node-7",
        "sent_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "devices": [
            {"uuid": f"GPU-{one:08x}", "model": "NVIDIA H100 80GB HBM3", "epoch": 1}
            for one in range(devices)
        ],
        "readings": {
            "device": [row % devices for row in range(rows)],
            "at_ms": [start_ms + row // devices * 1000 for row in range(rows)],
            "power_field": "average",
            **{name: [value(row) for row in range(rows)] for name, value in MEASURES.items()},
        },
        "node_readings": [],
        "jobs": [],
    }


def as_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The same readings, one object each."""
    readings = document["readings"]
    names = ["at_ms", *MEASURES]
    return [
        {"device": document["devices"][device]["uuid"]}
        | {name: readings[name][row] for name in names}
        for row, device in enumerate(readings["device"])
    ]


def plain_reader() -> Callable[[bytes], list[dict[str, Any]]]:
    from rest_framework import serializers

    class Row(serializers.Serializer):
        device = serializers.CharField(max_length=120)
        at_ms = serializers.IntegerField(min_value=0)
        counter_millijoule = serializers.IntegerField(min_value=0, allow_null=True)
        power_w = serializers.FloatField(min_value=0, allow_null=True)
        utilisation_fraction = serializers.FloatField(min_value=0, max_value=1, allow_null=True)
        memory_used_bytes = serializers.IntegerField(min_value=0, allow_null=True)
        temperature_c = serializers.FloatField(allow_null=True)

    def read(body: bytes) -> list[dict[str, Any]]:
        rows = Row(data=json.loads(body), many=True)
        rows.is_valid(raise_exception=True)
        return rows.validated_data

    return read


def store_plainly(site: Any, token: str, rows: list[dict[str, Any]]) -> None:
    """Find the token, store the rows by bulk_create, commit."""
    from django.db import transaction
    from django.utils import timezone

    from carbon.models import CounterReading, PowerSample, UseReading
    from projects.authentication import actor_of_token
    from runs.services import ensure_devices

    actor_of_token(token, None)
    now = timezone.now()
    with transaction.atomic():
        ids = ensure_devices(site, [(one, "", "") for one in {row["device"] for row in rows}])
        by_table: dict[Any, tuple[str, ...]] = {
            PowerSample: ("power_w",),
            CounterReading: ("counter_millijoule",),
            UseReading: ("utilisation_fraction", "memory_used_bytes", "temperature_c"),
        }
        for table, names in by_table.items():
            table.objects.bulk_create(
                (
                    table(
                        organisation_id=site.organisation_id,
                        device_id=ids[row["device"]],
                        at=datetime.fromtimestamp(row["at_ms"] / 1000, tz=UTC),
                        sender_id=-1,
                        received_at=now,
                        **{name: row[name] for name in names},
                    )
                    for row in rows
                ),
                ignore_conflicts=True,
            )


def median_s(work: Callable[[int], object], times: int) -> float:
    found = []
    for number in range(times):
        start = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def measure(*, devices: int, rows: int, times: int) -> dict[str, Any]:
    books = Books()
    site, token = books.site("agents")
    from django.conf import settings
    from django.test import Client

    from carbon.adapters.agent_batches import read_batch
    from carbon.packed import pack

    settings.ALLOWED_HOSTS = ["*"]
    documents = [batch(devices=devices, rows=rows, sequence=one) for one in range(times)]
    bodies = [json.dumps(one).encode() for one in documents]
    by_row = [json.dumps(as_rows(one)).encode() for one in documents]
    plain = plain_reader()
    newest = (int(time.time()) + 300) * 1_000_000
    client = Client(headers={"authorization": f"Bearer {token}"})

    def post(number: int) -> None:
        digest = base64.b64encode(hashlib.sha256(bodies[number]).digest()).decode()
        answer = client.post(
            "/api/v1/power/batches",
            bodies[number],
            content_type="application/json",
            headers={"content-digest": f"sha-256=:{digest}:"},
        )
        if answer.status_code != 200 or answer.json()["rows"] < rows:
            raise SystemExit(f"answered {answer.status_code}: {answer.content[:300]!r}")

    plain_s = median_s(lambda one: plain(by_row[one]), times)
    read_s = median_s(lambda one: pack(read_batch(bodies[one], newest=newest).brought), times)
    post_s = median_s(post, times)
    store_s = median_s(lambda one: store_plainly(site, token, plain(by_row[one])), times)
    return {
        "rows": rows,
        "serializer_rows_per_s": round(rows / plain_s),
        "read_rows_per_s": round(rows / read_s),
        "read_ratio": round(plain_s / read_s, 1),
        "whole_request_rows_per_s": round(rows / post_s),
        "plain_request_rows_per_s": round(rows / store_s),
        "whole_request_ratio": round(store_s / post_s, 1),
        "goal": ">= 5",
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=30)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["COSTWATCH_DATA_DIR"] = name
        found = measure(devices=wanted.devices, rows=wanted.rows, times=wanted.times)
    print(json.dumps(found))
    return int(min(found["read_ratio"], found["whole_request_ratio"]) < 5)


if __name__ == "__main__":
    sys.exit(main())
