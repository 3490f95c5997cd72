"""Stores hours of grid intensity: a revision supersedes, and the books of its sites follow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from carbon.adapters.intensity_points import HOUR, IntensityPoint
from carbon.intensity import AVERAGE
from carbon.models import EmissionEntry, HourlyIntensity, IntensitySource, SiteZone
from carbon.services import enqueue_closing
from runs.selectors import site_by_id

_SAME: Final = 1e-9
_BATCH: Final = 2_000
Key = tuple[str, datetime, str, str]


@dataclass(slots=True, kw_only=True)
class Stored:
    """What became of the hours that a source told."""

    new: int = 0
    revised: int = 0
    unchanged: int = 0
    older: int = 0  # an older word than the one on file
    reposted: set[str] = field(default_factory=set)  # sites whose books follow

    def add(self, other: "Stored") -> None:
        """Count another delivery in."""
        self.new += other.new
        self.revised += other.revised
        self.unchanged += other.unchanged
        self.older += other.older
        self.reposted |= other.reposted

    def document(self) -> dict[str, Any]:
        """As jobs and commands show it."""
        return {
            "new": self.new,
            "revised": self.revised,
            "unchanged": self.unchanged,
            "older": self.older,
            "sites_reposted": sorted(self.reposted),
        }


def store_points(
    source: IntensitySource, points: Sequence[IntensityPoint], *, known_at: datetime
) -> Stored:
    """Store what a source told, all of it or nothing; sites' books follow in the changed hours."""
    stored = Stored()
    if not points:
        return stored
    with transaction.atomic():
        IntensitySource.objects.select_for_update().get(pk=source.pk)
        current = _current(source, points)
        fresh: list[HourlyIntensity] = []
        outdated: list[int] = []
        for point in points:
            old = current.get(_key(point))
            if old is not None and _is_older(point, old):
                stored.older += 1
            elif old is not None and _same(point, old):
                stored.unchanged += 1
            else:
                row = _row(source, point, known_at=known_at)
                if old is not None:  # whoever asked later may have stored earlier
                    row.known_at = max(known_at, old.known_at)
                    outdated.append(old.pk)
                fresh.append(row)
        known_at = max((row.known_at for row in fresh), default=known_at)
        HourlyIntensity.objects.filter(pk__in=outdated).update(superseded_at=known_at)
        for row in fresh:
            row.known_at = known_at
        HourlyIntensity.objects.bulk_create(fresh, batch_size=_BATCH)
        stored.revised = len(outdated)
        stored.new = len(fresh) - len(outdated)
        stored.reposted = _repost(source, fresh)
    return stored


def _key(row: IntensityPoint | HourlyIntensity) -> Key:
    return (row.zone, row.hour, row.basis, row.signal)


def _current(
    source: IntensitySource, points: Iterable[IntensityPoint]
) -> dict[Key, HourlyIntensity]:
    """What is on file about the hours of these points."""
    hours = [point.hour for point in points]
    rows = HourlyIntensity.objects.filter(
        source=source,
        zone__in={point.zone for point in points},
        hour__range=(min(hours), max(hours)),
        superseded_at__isnull=True,
    )
    return {_key(row): row for row in rows}


def _same(point: IntensityPoint, old: HourlyIntensity) -> bool:
    """Whether the source says nothing new, its own time of saying apart."""
    return (
        abs(point.value_g_per_kwh - old.value_g_per_kwh) <= _SAME
        and point.is_estimated == old.is_estimated
        and point.method == old.method
    )


def _is_older(point: IntensityPoint, old: HourlyIntensity) -> bool:
    """Whether the source has said something newer: a cache between may bring old words late."""
    if point.told_at is not None and old.told_at is not None:
        return point.told_at < old.told_at
    return point.is_estimated and not old.is_estimated


def _row(source: IntensitySource, point: IntensityPoint, *, known_at: datetime) -> HourlyIntensity:
    return HourlyIntensity(
        organisation_id=source.organisation_id,
        source=source,
        zone=point.zone,
        hour=point.hour,
        basis=point.basis,
        signal=point.signal,
        value_g_per_kwh=point.value_g_per_kwh,
        is_estimated=point.is_estimated,
        method=point.method[:80],
        told_at=point.told_at,
        known_at=known_at,
    )


def _repost(source: IntensitySource, fresh: Iterable[HourlyIntensity]) -> set[str]:
    """Ask for the changed hours of each site of these zones that has entries there."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for row in fresh:
        if row.signal == AVERAGE:
            low, high = spans.get(row.zone, (row.hour, row.hour))
            spans[row.zone] = (min(low, row.hour), max(high, row.hour))
    reposted: set[str] = set()
    for link in SiteZone.objects.filter(source=source, zone__in=spans):
        low, high = spans[link.zone]
        entries = EmissionEntry.objects.filter(
            site_id=link.site_id, hour__gte=low, hour__lt=high + HOUR
        )
        site = site_by_id(source.organisation_id, link.site_id)
        if site is not None and entries.exists():
            enqueue_closing(site, repost=True, start=low, end=high + HOUR)
            reposted.add(site.slug)
    return reposted


def newest_hours(source_ids: Iterable[Any]) -> dict[Any, datetime]:
    """The newest hour that each source has told, marginal ones left out."""
    found: dict[Any, datetime] = {}
    for source_id in source_ids:
        rows = HourlyIntensity.objects.filter(
            source_id=source_id, signal=AVERAGE, superseded_at__isnull=True
        )
        newest = rows.order_by("-hour").values_list("hour", flat=True).first()
        if newest is not None:
            found[source_id] = newest
    return found
