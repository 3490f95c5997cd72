"""A site's facility, IT and water meters, and its PUE and WUE by period: writes.

Where both meters know a period, its PUE or WUE is measured and holds before what was entered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from carbon.hourly_factors import (
    RANGES,
    NewPeriodFactor,
    Scope,
    replace_computed,
    set_period_factors,
    withdraw_period_factor,
)
from carbon.meter_texts import (
    FACTORS,
    METERS,
    MeterPeriod,
    MeterRow,
    level_of,
    parse_period,
    period_text,
    unit_of,
)
from carbon.models import SiteMeterReading
from carbon.services import enqueue_closing
from carbon.site_factors import FactorError
from formulae.metering import measured_pue, measured_wue
from formulae.units import QuantityError
from projects import trail
from projects.records import Actor
from runs.records import SiteRecord

NOTED_ROWS: Final = 50  # rows of one upload that the trail lists; the rest it counts
LEVELS: Final = ("hour", "day", "month", "year")
RATIOS: Final = {"pue": ("facility_kwh", "it_kwh"), "wue_l_per_kwh": ("water_l", "it_kwh")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """How many rows were new, and the time that they speak of."""

    rows: int
    new: int
    start: datetime
    end: datetime


@transaction.atomic
def enter_meter_rows(
    actor: Actor, site: SiteRecord, rows: Sequence[MeterRow], *, now: datetime
) -> Entered:
    """Store readings and factors of periods; the site's hours in them are posted anew.

    Raises:
        FactorError: a row cannot be; nothing is stored.
    """
    entered = store_meter_rows(actor, site, rows, now=now)
    if entered.new:
        enqueue_closing(site, repost=True, entries_only=True, start=entered.start, end=entered.end)
    return entered


@transaction.atomic
def store_meter_rows(
    actor: Actor, site: SiteRecord, rows: Sequence[MeterRow], *, now: datetime
) -> Entered:
    """Store readings and factors of periods; whoever calls brings the site's hours up to date.

    Raises:
        FactorError: a row cannot be; nothing is stored.
    """
    _require_distinct(rows)
    factors = [_factor(row) for row in rows if row.what in FACTORS]
    new = len(set_period_factors(site, factors, known_at=now))
    new += _store_readings(site, [row for row in rows if row.what in METERS], now=now)
    start, end = min(row.period.start for row in rows), max(row.period.end for row in rows)
    if new:
        start, end = _renew(site, start, end, now=now)
        trail.note(
            actor,
            "site_meters.entered",
            subject=("site", site.slug),
            after={"rows": len(rows), "new": new, "first": _documents(rows)},
        )
    return Entered(rows=len(rows), new=new, start=start, end=end)


def _documents(rows: Sequence[MeterRow]) -> list[dict[str, object]]:
    return [
        {
            "what": row.what,
            "period": period_text(row.period.level, row.period.start),
            "value": row.value,
            "source": row.source,
        }
        for row in rows[:NOTED_ROWS]
    ]


def _require_distinct(rows: Sequence[MeterRow]) -> None:
    """One row for each meter or factor and period."""
    seen: dict[tuple[str, datetime, datetime], MeterRow] = {}
    for row in rows:
        same = seen.setdefault((row.what, row.period.start, row.period.end), row)
        if same != row:
            raise FactorError(
                _("{what} of {period} is there twice, as {one} and {other} {unit}.").format(
                    what=row.what,
                    period=period_text(row.period.level, row.period.start),
                    one=f"{same.value:g}",
                    other=f"{row.value:g}",
                    unit=unit_of(row.what),
                )
            )


def _factor(row: MeterRow) -> NewPeriodFactor:
    if row.period.level == "day":
        raise FactorError(
            _("{what} holds over an hour, a month or a year, not over a day: {period}.").format(
                what=row.what, period=period_text("day", row.period.start)
            )
        )
    return NewPeriodFactor(
        kind=row.what,
        level=row.period.level,
        start=row.period.start,
        end=row.period.end,
        value=row.value,
        tier=row.tier,
        source=row.source,
    )


def _store_readings(site: SiteRecord, rows: Sequence[MeterRow], *, now: datetime) -> int:
    """Let readings hold instead of the earlier ones of their periods; how many are new."""
    if not rows:
        return 0
    held = {
        (row.meter, row.start, row.end): row
        for row in SiteMeterReading.objects.select_for_update().filter(
            site_id=site.site_id,
            superseded_at__isnull=True,
            start__gte=min(row.period.start for row in rows),
            end__lte=max(row.period.end for row in rows),
        )
    }
    distinct = {(row.what, row.period.start, row.period.end): row for row in rows}
    fresh = [
        (key, row)
        for key, row in distinct.items()
        if key not in held or (held[key].value, held[key].source) != (row.value, row.source)
    ]
    outdated = [held[key].pk for key, _row in fresh if key in held]
    SiteMeterReading.objects.filter(pk__in=outdated).update(superseded_at=now)
    SiteMeterReading.objects.bulk_create(
        (
            SiteMeterReading(
                organisation_id=site.organisation_id,
                site_id=site.site_id,
                meter=row.what,
                start=row.period.start,
                end=row.period.end,
                value=row.value,
                source=row.source,
                known_at=now,
            )
            for _key, row in fresh
        ),
        batch_size=1_000,
    )
    return len(fresh)


@transaction.atomic
def withdraw_reading(actor: Actor, site: SiteRecord, reading_id: int, *, now: datetime) -> None:
    """Let a meter's reading hold no longer; what was measured with it goes too.

    Raises:
        FactorError: the site has no such reading.
    """
    row = SiteMeterReading.objects.filter(
        pk=reading_id, site_id=site.site_id, superseded_at__isnull=True
    ).first()
    if row is None:
        raise FactorError(_("No such reading at this site; reload the page."))
    SiteMeterReading.objects.filter(pk=row.pk).update(superseded_at=now)
    start, end = _renew(site, row.start, row.end, now=now)
    trail.note(
        actor,
        "site_meters.withdrawn",
        subject=("site", site.slug),
        before={"what": row.meter, "start": row.start, "end": row.end, "value": row.value},
    )
    enqueue_closing(site, repost=True, entries_only=True, start=start, end=end)


@transaction.atomic
def withdraw_factor_of_period(
    actor: Actor, site: SiteRecord, factor_id: UUID, *, now: datetime
) -> None:
    """Let an entered PUE or WUE of a period hold no longer.

    Raises:
        FactorError: the site has no such factor, or meters gave it.
    """
    gone = withdraw_period_factor(actor, site, factor_id, known_at=now)
    enqueue_closing(site, repost=True, entries_only=True, start=gone.start, end=gone.end)


def _renew(
    site: SiteRecord, start: datetime, end: datetime, *, now: datetime
) -> tuple[datetime, datetime]:
    """Measure PUE and WUE of the hours, months and years that [start, end) touches.

    Gives the time that holds [start, end) and every period whose factor changed.
    """
    first, last = parse_period(f"{start:%Y}").start, parse_period(f"{_last(end):%Y}").end
    totals = _Totals(site.site_id, first, last)
    touched = [MeterPeriod(level="hour", start=start, end=end)]
    for kind, (above, below) in RATIOS.items():
        for level, low in (
            ("hour", start),
            ("month", start.replace(day=1, hour=0)),
            ("year", first),
        ):
            wanted = {
                period.start: _measured(kind, period, totals)
                for period in totals.periods(below, level, low, end)
                if totals.of(above, period) is not None
            }
            scope = Scope(kind=kind, level=level, start=low, end=end)
            touched += [
                parse_period(period_text(level, changed))
                for changed in replace_computed(site, scope, wanted, known_at=now)
            ]
    return min(one.start for one in touched), max(one.end for one in touched)


def _last(end: datetime) -> datetime:
    """The last instant before an end."""
    return end - datetime.resolution


def _measured(kind: str, period: MeterPeriod, totals: "_Totals") -> NewPeriodFactor:
    """The measured factor of a period from its two meters."""
    over, under = RATIOS[kind]
    above, below = totals.of(over, period), totals.of(under, period)
    if above is None or below is None:
        raise ValueError(f"{kind} of {period} needs both meters")
    try:
        value = measured_pue(above, below) if kind == "pue" else measured_wue(above, below)
        low, high = RANGES[kind]
        possible = low <= value <= high
    except QuantityError:
        value, possible = 0.0, False
    if not possible:
        raise FactorError(
            _(
                "In {period}, {over} is {above} {over_unit} and {under} {below} kWh: that is no "
                "possible {kind}. Check the meters and their units."
            ).format(
                period=period_text(period.level, period.start),
                over=over,
                above=f"{above:g}",
                over_unit=unit_of(over),
                under=under,
                below=f"{below:g}",
                kind=kind,
            )
        )
    return NewPeriodFactor(
        kind=kind,
        level=period.level,
        start=period.start,
        end=period.end,
        value=value,
        tier="measured",
        source=f"{over} / {under}",
        numerator=above,
        denominator=below,
    )


class _Totals:
    """What each meter counted over periods: one reading, or shorter ones that fill the period."""

    def __init__(self, site_id: UUID, start: datetime, end: datetime) -> None:
        self.read: dict[tuple[str, str, datetime], float] = {}
        self.touched: dict[tuple[str, str], set[datetime]] = {}
        rows = SiteMeterReading.objects.filter(
            site_id=site_id, superseded_at__isnull=True, start__gte=start, end__lte=end
        )
        for row in rows:
            level = level_of(row.start, row.end)
            if level is not None:
                self.read[row.meter, level, row.start] = row.value
                for whole in LEVELS[LEVELS.index(level) :]:
                    held = parse_period(period_text(whole, row.start)).start
                    self.touched.setdefault((row.meter, whole), set()).add(held)

    def of(self, meter: str, period: MeterPeriod) -> float | None:
        """What the meter counted over the period; None where readings do not fill it."""
        if period.start not in self.touched.get((meter, period.level), ()):
            return None
        whole = self.read.get((meter, period.level, period.start))
        if whole is not None or period.level == "hour":
            return whole
        finer = LEVELS[LEVELS.index(period.level) - 1]
        total, at = 0.0, period.start
        while at < period.end:
            part = parse_period(period_text(finer, at))
            value = self.of(meter, part)
            if value is None:
                return None
            total, at = total + value, part.end
        return total

    def periods(
        self, meter: str, level: str, low: datetime, high: datetime
    ) -> Iterator[MeterPeriod]:
        """The periods from `low` to `high` that the meter fills."""
        for start in sorted(self.touched.get((meter, level), ())):
            period = parse_period(period_text(level, start))
            if low <= start < high and self.of(meter, period) is not None:
                yield period
