"""Factors of a site over single hours, months and years: reads and writes of `HourlyFactor`.

What a meter says about a period lives here; a site's own factor from a day on is site_factors'.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from carbon.models import HourlyFactor, SiteFactor
from carbon.site_factors import FactorError
from projects import trail
from projects.records import Actor
from runs.records import SiteRecord

RANGES: Final = {"host_factor": (1.0, 10.0), "pue": (1.0, 10.0), "wue_l_per_kwh": (0.0, 100.0)}
LEVELS: Final = ("hour", "month", "year")  # the narrowest that covers the hour holds


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodFactor:
    """A factor that holds at a site over [start, end); `level` is hour, month or year.

    A host factor of tier `estimated` comes from RAPL, which sees no accelerator, disk or fan: it is
    a lower bound, for sites that have set no factor of their own.
    """

    factor_id: str
    kind: str
    level: str
    start: datetime
    end: datetime
    value: float
    tier: str
    source: str
    numerator: float | None = None
    denominator: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPeriodFactor:
    """A factor of a period, as a person or a meter gives it."""

    kind: str
    level: str
    start: datetime
    end: datetime
    value: float
    tier: str = SiteFactor.Tier.ESTIMATED
    source: str = ""
    numerator: float | None = None
    denominator: float | None = None


def factors_of_hours(
    site_id: UUID, kind: str, start: datetime, end: datetime
) -> list[PeriodFactor]:
    """The factors of a kind that hold anywhere in [start, end), the narrowest level first.

    `factor_of_hour` picks from the list the one that holds in an hour.
    """
    rows = HourlyFactor.objects.filter(
        site_id=site_id, kind=kind, superseded_at__isnull=True, start__lt=end, end__gt=start
    )
    found = [_record(row) for row in rows]
    return sorted(found, key=lambda one: (LEVELS.index(one.level), one.start))


def factor_of_hour(factors: Iterable[PeriodFactor], hour: datetime) -> PeriodFactor | None:
    """The narrowest factor that holds in the hour; None where none does."""
    holding = [one for one in factors if one.start <= hour < one.end]
    return min(holding, key=lambda one: LEVELS.index(one.level), default=None)


def _record(row: HourlyFactor) -> PeriodFactor:
    return PeriodFactor(
        factor_id=f"hourly-factor/{row.pk}",
        kind=row.kind,
        level=row.level,
        start=row.start,
        end=row.end,
        value=row.value,
        tier=row.tier,
        source=row.source,
        numerator=row.numerator,
        denominator=row.denominator,
    )


def set_period_factors(
    site: SiteRecord, news: Sequence[NewPeriodFactor], *, known_at: datetime
) -> list[NewPeriodFactor]:
    """Let factors hold over their periods instead of those that did; gives those that are new.

    In the caller's transaction, who leaves the row in the trail.

    Raises:
        FactorError: a value is out of range, or a tier is none of the three.
    """
    if not news:
        return []
    for new in news:
        _require_possible(new)
    held = {
        (row.kind, row.level, row.start): row
        for row in HourlyFactor.objects.select_for_update().filter(
            site_id=site.site_id,
            superseded_at__isnull=True,
            kind__in={new.kind for new in news},
            start__gte=min(new.start for new in news),
            start__lte=max(new.start for new in news),
        )
    }
    fresh = [new for new in news if not _same(held.get((new.kind, new.level, new.start)), new)]
    outdated = [held.get((new.kind, new.level, new.start)) for new in fresh]
    HourlyFactor.objects.filter(pk__in=[row.pk for row in outdated if row]).update(
        superseded_at=known_at
    )
    HourlyFactor.objects.bulk_create(
        (HourlyFactor(**_columns(site, new, known_at=known_at)) for new in fresh), batch_size=1_000
    )
    return fresh


def _same(old: HourlyFactor | None, new: NewPeriodFactor) -> bool:
    return old is not None and _told(old) == _told(new)


def _require_possible(new: NewPeriodFactor) -> None:
    low, high = RANGES[new.kind]
    if not low <= new.value <= high:
        raise FactorError(
            _("{kind} from {start} on is {value}; it must lie between {low} and {high}.").format(
                kind=new.kind,
                start=f"{new.start:%Y-%m-%d %H:%M}",
                value=f"{new.value:g}",
                low=low,
                high=high,
            )
        )
    if new.tier not in SiteFactor.Tier.values:
        raise FactorError(_("A factor is measured, published or estimated; say which."))


def _told(one: HourlyFactor | NewPeriodFactor) -> tuple[object, ...]:
    return (one.value, one.tier, one.source, one.numerator, one.denominator)


def _columns(site: SiteRecord, new: NewPeriodFactor, *, known_at: datetime) -> dict[str, Any]:
    return {
        "organisation_id": site.organisation_id,
        "site_id": site.site_id,
        "kind": new.kind,
        "level": new.level,
        "start": new.start,
        "end": new.end,
        "value": new.value,
        "numerator": new.numerator,
        "denominator": new.denominator,
        "tier": new.tier,
        "source": new.source,
        "known_at": known_at,
    }


@transaction.atomic
def withdraw_period_factor(
    actor: Actor, site: SiteRecord, factor_id: UUID, *, known_at: datetime
) -> PeriodFactor:
    """Let a factor of a period hold no longer; gives the one that held.

    Raises:
        FactorError: the site has no such factor, or meters gave it.
    """
    old = HourlyFactor.objects.filter(
        pk=factor_id, site_id=site.site_id, superseded_at__isnull=True
    ).first()
    if old is None:
        raise FactorError(_("No such factor at this site; reload the page."))
    if is_computed(old):
        raise FactorError(_("Meters gave this factor: withdraw their reading instead."))
    HourlyFactor.objects.filter(pk=old.pk).update(superseded_at=known_at)
    trail.note(
        actor,
        "site_period_factor.withdrawn",
        subject=("site", site.slug),
        before=_document(old),
    )
    return _record(old)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Factors of one kind and level whose periods start in [start, end)."""

    kind: str
    level: str
    start: datetime
    end: datetime


def replace_computed(
    site: SiteRecord,
    scope: Scope,
    wanted: Mapping[datetime, NewPeriodFactor],
    *,
    known_at: datetime,
) -> list[datetime]:
    """Bring the factors that follow from meters to `wanted`, by start; gives the periods changed.

    In the caller's transaction. No person wrote them, so the trail has no row of them; the
    superseded ones are kept. What a person entered stays unless meters know the same period.
    """
    held = {
        row.start: row
        for row in HourlyFactor.objects.filter(
            site_id=site.site_id, kind=scope.kind, level=scope.level, superseded_at__isnull=True
        ).filter(start__gte=scope.start, start__lt=scope.end)
    }
    fresh = [new for start, new in wanted.items() if not _same(held.get(start), new)]
    outdated = [held[new.start] for new in fresh if new.start in held]
    outdated += [row for start, row in held.items() if start not in wanted and is_computed(row)]
    HourlyFactor.objects.filter(pk__in=[row.pk for row in outdated]).update(superseded_at=known_at)
    HourlyFactor.objects.bulk_create(
        (HourlyFactor(**_columns(site, new, known_at=known_at)) for new in fresh), batch_size=1_000
    )
    return sorted({*(row.start for row in outdated), *(new.start for new in fresh)})


def is_computed(one: HourlyFactor | PeriodFactor) -> bool:
    """Whether meters gave the factor: then both of their figures are with it."""
    return one.denominator is not None


def _document(row: HourlyFactor) -> dict[str, object]:
    return {
        "kind": row.kind,
        "level": row.level,
        "start": row.start,
        "end": row.end,
        "value": row.value,
        "tier": row.tier,
        "source": row.source,
    }
