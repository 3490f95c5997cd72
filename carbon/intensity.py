"""Hourly grid intensity of a site as the books take it: which source's hour counts. Reads only."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from carbon.attribution import instant_of, microsecond_of
from carbon.metering import HOUR_MICROSECOND
from carbon.models import HourlyIntensity, IntensitySource, SiteZone
from carbon.records import FactorUsed
from runs.records import SiteRecord

AVERAGE: Final = "average"
MARGINAL: Final = "marginal"
DIRECT: Final = "direct"
LIFECYCLE: Final = "lifecycle"
LEVEL: Final = "hour"
HOURS_PER_DAY: Final = 24
_BASES: Final = (DIRECT, LIFECYCLE)  # direct first: scope 2 books what the plants emit


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneOfSource:
    """Where a site stands in one source's zones, in the order in which sources are asked."""

    source_id: UUID
    source: str
    provider: str
    position: int
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneHour:
    """What a source told about one hour of a zone; `versions` counts its revisions."""

    hour: int  # microseconds
    basis: str
    value_g_per_kwh: float
    is_estimated: bool
    method: str
    known_at: datetime
    versions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityDay:
    """How the hours of one UTC day are known; the rest of its hours take the yearly factor."""

    day: date
    measured: int
    estimated: int
    sources: tuple[str, ...]
    mean_g_per_kwh: float | None
    hours: int = HOURS_PER_DAY  # of today those that are over

    @property
    def yearly(self) -> int:
        """Hours that no source has told."""
        return max(0, self.hours - self.measured - self.estimated)

    @property
    def hourly_fraction(self) -> float | None:
        """The share of the day's hours that a source has told; None before the first is over."""
        return (self.measured + self.estimated) / self.hours if self.hours else None


def zones_of_site(site_id: UUID) -> tuple[ZoneOfSource, ...]:
    """The site's zones, the first asked first. A paused source's hours still count."""
    rows = SiteZone.objects.filter(site_id=site_id).select_related("source")
    return tuple(
        ZoneOfSource(
            source_id=row.source_id,
            source=row.source.name,
            provider=row.source.provider,
            position=row.source.position,
            zone=row.zone,
        )
        for row in rows.order_by("source__position", "source__name")
    )


def intensities_for(site: SiteRecord, start: int, end: int) -> dict[int, FactorUsed]:
    """The grid factor of each hour in [start, end) that a source has told; keys are microseconds.

    The first source in order of position that knows the hour, direct before lifecycle. Marginal
    signals never. An hour that nobody has told is left out: the yearly chain holds there.
    """
    return _chosen(site, start, end, as_of=None)


def intensity_as_of(
    site: SiteRecord, start: int, end: int, *, as_of: datetime
) -> dict[int, FactorUsed]:
    """As `intensities_for`, as it would have been answered at `as_of`."""
    return _chosen(site, start, end, as_of=as_of)


def upstream_for(site: SiteRecord, start: int, end: int) -> dict[int, float]:
    """Upstream emissions (fuel, building, losses as the source counts them), g/kWh, by hour.

    Lifecycle less direct, only where one source tells both for the hour that the books take.
    """
    found: dict[int, float] = {}
    taken: set[int] = set()
    for zone in zones_of_site(site.site_id):
        by_hour = _by_hour(zone_hours(zone.source_id, zone.zone, start=start, end=end))
        for hour, told in by_hour.items():
            if hour not in taken and set(_BASES) <= told.keys():
                more = told[LIFECYCLE].value_g_per_kwh - told[DIRECT].value_g_per_kwh
                if more >= 0:
                    found[hour] = more
        taken |= by_hour.keys()
    return found


def _chosen(
    site: SiteRecord, start: int, end: int, *, as_of: datetime | None
) -> dict[int, FactorUsed]:
    chosen: dict[int, FactorUsed] = {}
    for zone in zones_of_site(site.site_id):
        hours = zone_hours(zone.source_id, zone.zone, start=start, end=end, as_of=as_of)
        for hour, told in _by_hour(hours).items():
            if hour not in chosen:
                basis = next(one for one in _BASES if one in told)
                chosen[hour] = factor_of(zone, told[basis])
    return chosen


def _by_hour(hours: Iterable[ZoneHour]) -> dict[int, dict[str, ZoneHour]]:
    found: dict[int, dict[str, ZoneHour]] = defaultdict(dict)
    for one in hours:
        found[one.hour][one.basis] = one
    return dict(found)


def factor_of(zone: ZoneOfSource, told: ZoneHour) -> FactorUsed:
    """The factor of an hour as an entry names it: source, zone, hour, and which version."""
    at = f"{instant_of(told.hour):%Y-%m-%dT%HZ}"
    known = f"{told.known_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
    quality = "estimated" if told.is_estimated else "measured"
    method = f" ({told.method})" if told.method else ""
    revised = f", revision {told.versions - 1}" if told.versions > 1 else ""
    return FactorUsed(
        factor_id=f"{series_id(zone.source_id, zone.zone)}/{at}/{known}",
        kind="grid_intensity",
        value=told.value_g_per_kwh,
        unit="gCO2e/kWh",
        year=instant_of(told.hour).year,
        source=f"{zone.source} ({zone.provider}, {zone.zone})",
        level=LEVEL,
        basis=f"{told.basis}, {AVERAGE}, {quality}{method}",
        version=f"{known}{revised}",
    )


def series_id(source_id: UUID, zone: str) -> str:
    """What all hours of a source's zone are called together, as the registry lists them."""
    return f"intensity/{source_id}/{zone}"


def zone_hours(  # noqa: PLR0913  # one question: which zone, when, as known when
    source_id: UUID,
    zone: str,
    *,
    start: int,
    end: int,
    as_of: datetime | None = None,
    signal: str = AVERAGE,
) -> list[ZoneHour]:
    """What a source tells about the hours [start, end) of a zone, by hour and basis."""
    rows = HourlyIntensity.objects.filter(
        source_id=source_id,
        zone=zone,
        signal=signal,
        hour__gte=instant_of(start),
        hour__lt=instant_of(end),
    )
    if as_of is not None:
        rows = rows.filter(known_at__lte=as_of)
    versions: dict[tuple[datetime, str], int] = defaultdict(int)
    current: dict[tuple[datetime, str], ZoneHour] = {}
    fields = ("hour", "basis", "value_g_per_kwh", "is_estimated", "method", "known_at")
    for *told, superseded_at in rows.order_by("hour", "known_at", "pk").values_list(
        *fields, "superseded_at"
    ):
        hour, basis, value, is_estimated, method, known_at = told
        versions[hour, basis] += 1
        if superseded_at is None or (as_of is not None and superseded_at > as_of):
            current[hour, basis] = ZoneHour(
                hour=microsecond_of(hour),
                basis=basis,
                value_g_per_kwh=value,
                is_estimated=is_estimated,
                method=method,
                known_at=known_at,
                versions=versions[hour, basis],
            )
    return list(current.values())


def intensity_days(
    site: SiteRecord, first: date, last: date, *, until: datetime | None = None
) -> list[IntensityDay]:
    """How the hours of each UTC day from `first` to `last` are known, oldest first.

    With `until`, hours that are not over by then are not counted.
    """
    start = microsecond_of(datetime(first.year, first.month, first.day, tzinfo=UTC))
    count = (last - first).days + 1
    end = start + count * HOURS_PER_DAY * HOUR_MICROSECOND
    by_day: dict[date, list[FactorUsed]] = defaultdict(list)
    for hour, factor in intensities_for(site, start, end).items():
        by_day[instant_of(hour).date()].append(factor)
    days = (first + timedelta(days=step) for step in range(count))
    return [_day(day, by_day.get(day, ()), until=until) for day in days]


def _day(day: date, factors: Sequence[FactorUsed], *, until: datetime | None) -> IntensityDay:
    over = HOURS_PER_DAY
    if until is not None:
        begun = until - datetime(day.year, day.month, day.day, tzinfo=UTC)
        over = min(HOURS_PER_DAY, max(0, begun // timedelta(hours=1)))
    estimated = sum(is_estimated(one) for one in factors)
    values = [one.value for one in factors]
    return IntensityDay(
        day=day,
        measured=len(factors) - estimated,
        estimated=estimated,
        sources=tuple(sorted({one.source for one in factors})),
        mean_g_per_kwh=sum(values) / len(values) if values else None,
        hours=over,
    )


def is_estimated(factor: FactorUsed) -> bool:
    """Whether the source estimated this hour."""
    return f"{AVERAGE}, estimated" in factor.basis


def marginal_hours(site: SiteRecord, start: int, end: int) -> Mapping[int, ZoneHour]:
    """Marginal intensity by hour, for advice on when to run; the books never take it."""
    found: dict[int, ZoneHour] = {}
    for zone in zones_of_site(site.site_id):
        hours = zone_hours(zone.source_id, zone.zone, start=start, end=end, signal=MARGINAL)
        found = {**{one.hour: one for one in hours}, **found}
    return found


def sources_of(organisation_id: UUID) -> list[IntensitySource]:
    """The organisation's sources, the first asked first."""
    return list(
        IntensitySource.objects.filter(organisation_id=organisation_id).order_by("position", "name")
    )


def current_intensity(site: SiteRecord, now: datetime) -> FactorUsed | None:
    """The newest hour of the last two days that a source has told; None without one."""
    end = microsecond_of(now) // HOUR_MICROSECOND * HOUR_MICROSECOND + HOUR_MICROSECOND
    start = end - 2 * HOURS_PER_DAY * HOUR_MICROSECOND
    told = intensities_for(site, start, end)
    return told[max(told)] if told else None
