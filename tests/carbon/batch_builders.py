"""Plain builders of what doors bring: packed bodies and agents' batches."""

import base64
import gzip
import hashlib
import json
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.utils import timezone

from carbon.booking import Booked, book_site
from carbon.doors import accept, ensure_sender
from carbon.packed import (
    Brought,
    CounterColumns,
    DeviceAbout,
    JobNote,
    PowerColumns,
    UseColumns,
    pack,
)
from projects.records import Scope, TokenReach
from runs.records import SiteRecord
from tests.builders import token, with_token
from tests.carbon.builders import site

URL = "/api/v1/power/batches"
BOOT = "0f6e1c9a-7f0e-4b1e-9a55-0d1f2a3b4c5d"


def microsecond(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000)


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def power(*points: tuple[int, datetime, float]) -> PowerColumns:
    """Power readings as (device, at, W)."""
    return PowerColumns(
        device=np.array([one[0] for one in points], dtype=np.int32),
        at=np.array([microsecond(one[1]) for one in points], dtype=np.int64),
        power_w=np.array([one[2] for one in points], dtype=np.float64),
    )


def counters(*points: tuple[int, datetime, int], epoch: int = 1) -> CounterColumns:
    """Counters as (device, at, mJ)."""
    return CounterColumns(
        device=np.array([one[0] for one in points], dtype=np.int32),
        at=np.array([microsecond(one[1]) for one in points], dtype=np.int64),
        counter_millijoule=np.array([one[2] for one in points], dtype=np.int64),
        epoch=np.full(len(points), epoch, dtype=np.int64),
    )


def use(*points: tuple[int, datetime, float | None]) -> UseColumns:
    """Utilisation as (device, at, fraction or None)."""
    values = [np.nan if one[2] is None else one[2] for one in points]
    return UseColumns(
        device=np.array([one[0] for one in points], dtype=np.int32),
        at=np.array([microsecond(one[1]) for one in points], dtype=np.int64),
        measures={"utilisation_fraction": np.array(values, dtype=np.float64)},
    )


def job(device: int, at: datetime, run_name: str, name: str = "4711") -> JobNote:
    return JobNote(device=device, kind="slurm", job=name, run_name=run_name, at=microsecond(at))


def devices(*uuids: str, **about: Any) -> tuple[DeviceAbout, ...]:
    return tuple(DeviceAbout(uuid=uuid, **about) for uuid in uuids or ("GPU-1",))


def brought(
    place: SiteRecord, body: Brought, *, sender: str = "node-1", kind: str = "agent"
) -> bool:
    """Store a body at the door; whether it is new."""
    now = timezone.now()
    key = ensure_sender(place, kind, sender, now=now)
    return accept(place, key, body, sha256=hashlib.sha256(pack(body)).digest(), received_at=now)


def booked(place: SiteRecord) -> Booked:
    """Book everything that waits."""
    return book_site(place, now=timezone.now())


def agent(place: SiteRecord | None = None):
    """A client with the token of an agent of the site."""
    reach = TokenReach(site_id=(place or site()).site_id)
    return with_token(token(Scope.INGEST_POWER, reach=reach))


def batch(*, sequence: int = 1, boot: str = BOOT, start: datetime | None = None, **more: Any):
    """A batch of one device and two readings, as an agent posts it."""
    begin = int((start or ago(minutes=10)).timestamp()) * 1000
    document: dict[str, Any] = {
        "format": "costwatch-agent/1",
        "agent": {"name": "node-7", "version": "1.0.0"},
        "boot": boot,
        "sequence": sequence,
        "dropped": 0,
        "node": "node-7",
        "sent_at": timezone.now().isoformat().replace("+00:00", "Z"),
        "devices": [
            {
                "uuid": "GPU-7",
                "model": "NVIDIA H100 80GB HBM3",
                "power_limit_w": 700.0,
                "epoch": 1_763_700_000,
                "energy_scope": "gpu",
                "mig": None,
            }
        ],
        "readings": {
            "device": [0, 0],
            "at_ms": [begin + 10_000 * sequence, begin + 10_000 * sequence + 5_000],
            "counter_millijoule": [1_000_000, 4_000_000],
            "power_w": [600.0, 610.5],
            "power_field": "average",
            "utilisation_fraction": [0.9, None],
        },
    }
    return {**document, **more}


def with_readings(document: dict[str, Any], **columns: Any) -> dict[str, Any]:
    """The batch with other columns."""
    return {**document, "readings": {**document["readings"], **columns}}


def sent(
    client: Any, document: Any, *, zipped: bool = False, digest: str | None = None, **more: Any
):
    """Post a batch as an agent does; `digest` replaces the right one."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"Content-Encoding": "gzip"} if zipped else {}
    body = gzip.compress(body) if zipped else body
    proper = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
    headers["Content-Digest"] = proper if digest is None else digest
    return client.post(
        more.pop("url", URL), body, content_type="application/json", headers=headers, **more
    )
