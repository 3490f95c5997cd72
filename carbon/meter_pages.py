"""What the page of a site's meters shows, put together from reads; nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Avg, Count, Max, Min

from carbon.hourly_factors import factors_of_hours, is_computed
from carbon.meter_texts import level_of, period_text, unit_of
from carbon.models import EnergyHour, HourlyFactor, SiteMeterReading

SHOWN: Final = 200
DIVERGING: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRow:
    """What a meter counted, in the table of the page."""

    reading_id: int
    meter: str
    period: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorRow:
    """A PUE or WUE of a period, in the table of the page."""

    factor_id: UUID
    kind: str
    period: str
    value: float
    unit: str
    tier: str
    source: str
    is_computed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergingHour:
    """A device's hour in which its counter and its power disagree."""

    device_id: int
    device_uuid: str
    hour: datetime
    divergence_fraction: float


def reading_rows(site_id: UUID) -> list[ReadingRow]:
    """The newest readings of a site's meters."""
    rows = SiteMeterReading.objects.filter(site_id=site_id, superseded_at__isnull=True)
    return [
        ReadingRow(
            reading_id=row.pk,
            meter=row.meter,
            period=_named(row.start, row.end),
            value=row.value,
            unit=unit_of(row.meter),
            source=row.source,
        )
        for row in rows.order_by("-start", "meter")[:SHOWN]
    ]


def factor_rows(site_id: UUID) -> list[FactorRow]:
    """The newest PUE and WUE of periods at a site."""
    rows = HourlyFactor.objects.filter(
        site_id=site_id,
        superseded_at__isnull=True,
        kind__in=[HourlyFactor.Kind.PUE, HourlyFactor.Kind.WUE],
    )
    return [
        FactorRow(
            factor_id=row.pk,
            kind=row.kind,
            period=_named(row.start, row.end),
            value=row.value,
            unit="L/kWh" if row.kind == HourlyFactor.Kind.WUE else "",
            tier=row.tier,
            source=row.source,
            is_computed=is_computed(row),
        )
        for row in rows.order_by("-start", "level", "kind")[:SHOWN]
    ]


def _named(start: datetime, end: datetime) -> str:
    level = level_of(start, end)
    return period_text(level, start) if level else f"{start:%Y-%m-%dT%H:%M} – {end:%Y-%m-%dT%H:%M}"


def measured_hosts(site_id: UUID) -> dict[str, Any] | None:
    """How many hours have a measured host factor, their mean and range; None where none has."""
    rows = HourlyFactor.objects.filter(
        site_id=site_id, superseded_at__isnull=True, kind=HourlyFactor.Kind.HOST_FACTOR
    )
    found = rows.aggregate(
        hours=Count("pk"), low=Min("value"), high=Max("value"), mean=Avg("value"), last=Max("start")
    )
    if not found["hours"]:
        return None
    (newest,) = factors_of_hours(
        site_id, "host_factor", found["last"], found["last"].replace(minute=1)
    )
    return {**found, "tier": newest.tier, "source": newest.source}


def diverging_hours(
    site_id: UUID, *, start: datetime | None = None, end: datetime | None = None, limit: int = 50
) -> Sequence[DivergingHour]:
    """Device-hours whose counter is off the integrated power by more than 5 %, newest first.

    Of every hour in which both knew at least five minutes; a note on quality, not an error.
    """
    rows = EnergyHour.objects.filter(site_id=site_id, superseded_at__isnull=True)
    rows = rows.exclude(divergence_fraction__range=(-DIVERGING, DIVERGING))
    rows = rows.filter(divergence_fraction__isnull=False)
    if start is not None:
        rows = rows.filter(hour__gte=start)
    if end is not None:
        rows = rows.filter(hour__lt=end)
    return [
        DivergingHour(
            device_id=device_id, device_uuid=uuid, hour=hour, divergence_fraction=divergence
        )
        for device_id, uuid, hour, divergence in rows.order_by("-hour", "device_id").values_list(
            "device_id", "device__uuid", "hour", "divergence_fraction"
        )[:limit]
        if divergence is not None
    ]
