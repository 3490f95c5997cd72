"""Plain builders of power: files, sites, factors."""

import csv
import gzip
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from carbon.records import PowerReport
from carbon.services import import_power
from carbon.site_factors import NewFactor, set_factor
from projects.access import system_actor
from projects.records import Actor
from runs.records import SiteRecord
from runs.services import ensure_site
from tests.builders import organisation

START = datetime(2025, 10, 1, tzinfo=UTC)
NOW = datetime(2025, 10, 20, 12, 30, tzinfo=UTC)
SAMPLES = ("at", "device_uuid", "power_w")
INTERVALS = ("start", "end", "device_uuid", "energy_millijoule")


def operator() -> Actor:
    return system_actor(organisation().pk, "tests")


def site(slug: str = "hall-1") -> SiteRecord:
    return ensure_site(operator(), slug=slug)


def instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def samples(
    *,
    devices: int = 1,
    count: int = 241,
    every_s: float = 15,
    power_w: float | str = 650,
    start: datetime = START,
) -> list[tuple[str, str, str]]:
    return [
        (instant(start + timedelta(seconds=every_s * step)), f"GPU-{device:04d}", str(power_w))
        for step in range(count)
        for device in range(devices)
    ]


def interval(
    start: datetime, end: datetime, millijoule: int | str, device: str = "GPU-0000"
) -> tuple[str, str, str, str]:
    return (instant(start), instant(end), device, str(millijoule))


def write_csv(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], *, zipped: bool = False
) -> Path:
    opener = gzip.open if zipped else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def imported(
    *paths: Path, site_name: str = "hall-1", now: datetime = NOW, actor: Actor | None = None
) -> PowerReport:
    return import_power(actor or operator(), site_name=site_name, paths=list(paths), now=now)


def factor(place: SiteRecord, kind: str, value: float, **more: Any) -> None:
    set_factor(operator(), place, NewFactor(kind=kind, value=value, **more), known_at=NOW)
