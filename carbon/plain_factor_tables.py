"""All rows that speak of a site's factors, read plainly, for `carbon.plain_factors` to choose from.

It shares nothing with the reads that posting makes but the models.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from django.db.models import Min

from carbon.models import (
    EmbodiedAsset,
    EnergyHour,
    GridIntensity,
    HourlyFactor,
    HourlyIntensity,
    ResidualMix,
    SiteBoundary,
    SiteFactor,
    SiteZone,
)
from runs.records import SiteRecord
from runs.selectors import assignments_of_site

FILES: Final = Path(__file__).parent / "data"
DAY: Final = timedelta(days=1)
CLOUDS: Final = {
    "amazon": "aws",
    "amazon web services": "aws",
    "google": "gcp",
    "google cloud": "gcp",
    "microsoft": "azure",
    "microsoft azure": "azure",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All rows that speak of a site, as they hold now."""

    site: SiteRecord
    own: Sequence[SiteFactor]
    of_periods: Mapping[date, Sequence[HourlyFactor]]  # by day that they touch
    told: Sequence["ToldZone"]  # the source that is asked first comes first
    grid: Sequence[GridIntensity]
    mixes: Sequence[ResidualMix]
    boundaries: Sequence[SiteBoundary]
    assets: Sequence[EmbodiedAsset]
    first_seen: Sequence[datetime]  # the hour of each accelerator's first energy or assignment
    zones: Sequence[tuple[str, str]]  # levels with the name of their zone, the nearest first
    country: str
    published: Mapping[str, Sequence[Mapping[str, str]]]  # "pue" and "wue" of clouds


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldZone:
    """What one source has told of the site's zone, all revisions of an hour in their order."""

    row: SiteZone
    hours: Mapping[datetime, Sequence[HourlyIntensity]] = field(default_factory=dict)


def tables_of(site: SiteRecord) -> Tables:
    """Read all that is known of a site's factors."""
    current = {"site_id": site.site_id, "superseded_at__isnull": True}
    by_day: dict[date, list[HourlyFactor]] = defaultdict(list)
    for row in HourlyFactor.objects.filter(**current).order_by("start"):
        day = row.start.astimezone(UTC).date()
        while datetime(day.year, day.month, day.day, tzinfo=UTC) < row.end:
            by_day[day].append(row)
            day += DAY
    zones = _zones(site)
    mixes = ResidualMix.objects.filter(organisation_id=site.organisation_id)
    return Tables(
        site=site,
        own=list(SiteFactor.objects.filter(**current)),
        of_periods=by_day,
        told=list(_told_zones(site.site_id)),
        grid=list(GridIntensity.objects.filter(zone__in=[zone for _level, zone in zones])),
        mixes=list(mixes.filter(superseded_at__isnull=True)),
        boundaries=list(SiteBoundary.objects.filter(**current)),
        assets=list(EmbodiedAsset.objects.filter(**current).order_by("purchased_on", "name", "pk")),
        first_seen=sorted(_first_seen(site.site_id).values()),
        zones=zones,
        country=_place(site)[0],
        published={kind: _file(f"{kind}.csv") for kind in ("pue", "wue")},
    )


def _told_zones(site_id: UUID) -> Iterator[ToldZone]:
    zones = SiteZone.objects.filter(site_id=site_id).select_related("source")
    for row in zones.order_by("source__position", "source__name"):
        hours: dict[datetime, list[HourlyIntensity]] = defaultdict(list)
        told = HourlyIntensity.objects.filter(
            source_id=row.source_id, zone=row.zone, signal="average"
        )
        for one in told.order_by("known_at", "pk").iterator(chunk_size=5_000):
            hours[one.hour].append(one)
        yield ToldZone(row=row, hours=hours)


def _first_seen(site_id: UUID) -> dict[int, datetime]:
    first: dict[int, datetime] = {}
    rows = EnergyHour.objects.filter(site_id=site_id, superseded_at__isnull=True)
    for device_id, hour in rows.values_list("device_id").annotate(Min("hour")).order_by():
        first[device_id] = hour
    for one in assignments_of_site(site_id):
        hour = one.start.replace(minute=0, second=0, microsecond=0)
        first[one.device_id] = min(hour, first.get(one.device_id, hour))
    return first


def _file(name: str) -> list[dict[str, str]]:
    with (FILES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cloud_of(site: SiteRecord) -> str:
    name = site.provider.strip().lower()
    return CLOUDS.get(name, name)


def _place(site: SiteRecord) -> tuple[str, str]:
    """Country and state: as the site says, else where its cloud's region stands."""
    country, state = site.country.upper(), site.state.upper()
    for row in _file("cloud_regions.csv"):
        if (row["provider"], row["region"]) == (cloud_of(site), site.region.strip().lower()):
            return country or row["country"], state or row["state"]
    return country, state


def _zones(site: SiteRecord) -> list[tuple[str, str]]:
    """Levels with the name of their zone, the nearest first; where a name is missing, none."""
    country, state = _place(site)
    region = f"{cloud_of(site)}:{site.region.lower()}"
    every = (
        ("cloud_region", "" if region == ":" else region),
        ("us_state", state),
        ("country", country),
        ("world", "WORLD"),
    )
    return [(level, zone) for level, zone in every if zone]
