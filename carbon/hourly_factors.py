"""Factors of a site over single hours, months and years: reads and writes of `HourlyFactor`.

What a meter says about a period lives here; a site's own factor from a day on is site_factors'.
"""

from collections.abc import Iterable, Mapping
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


@transaction.atomic
def set_period_factor(
    actor: Actor, site: SiteRecord, new: NewPeriodFactor, *, known_at: datetime
) -> bool:
    """Let a factor hold over its period instead of the one that did; say whether that is new.

    Raises:
        FactorError: the value is out of range, or the tier is none of the three.
    """
    _require_possible(new)
    old = (
        HourlyFactor.objects.select_for_update()
        .filter(site_id=site.site_id, kind=new.kind, level=new.level, start=new.start)
        .filter(superseded_at__isnull=True)
        .first()
    )
    if old is not None and _told(old) == _told(new):
        return False
    if old is not None:
        HourlyFactor.objects.filter(pk=old.pk).update(superseded_at=known_at)
    row = HourlyFactor.objects.create(**_columns(site, new, known_at=known_at))
    _note(actor, site, old, row)
    return True


def _require_possible(new: NewPeriodFactor) -> None:
    low, high = RANGES[new.kind]
    if not low <= new.value <= high:
        raise FactorError(
            _("%(kind)s is %(value)s; it must lie between %(low)s and %(high)s.")
            % {"kind": new.kind, "value": f"{new.value:g}", "low": low, "high": high}
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
        FactorError: the site has no such factor.
    """
    old = HourlyFactor.objects.filter(
        pk=factor_id, site_id=site.site_id, superseded_at__isnull=True
    ).first()
    if old is None:
        raise FactorError(_("No such factor at this site; reload the page."))
    HourlyFactor.objects.filter(pk=old.pk).update(superseded_at=known_at)
    _note(actor, site, old, None)
    return _record(old)


def replace_host_factors(
    site: SiteRecord,
    wanted: Mapping[datetime, NewPeriodFactor],
    *,
    start: datetime,
    end: datetime,
    known_at: datetime,
) -> int:
    """Bring the host factors that nodes measured in [start, end) to `wanted`, by hour.

    In the caller's transaction. They follow from readings, as energy does: no person wrote them,
    so the trail has no row of them; the superseded ones are kept. Says how many hours changed.
    """
    held = {
        row.start: row
        for row in HourlyFactor.objects.filter(
            site_id=site.site_id, kind="host_factor", level="hour", superseded_at__isnull=True
        ).filter(start__gte=start, start__lt=end)
    }
    fresh = [
        new for hour, new in wanted.items() if hour not in held or _told(held[hour]) != _told(new)
    ]
    outdated = [
        row for hour, row in held.items() if hour not in wanted or _told(row) != _told(wanted[hour])
    ]
    HourlyFactor.objects.filter(pk__in=[row.pk for row in outdated]).update(superseded_at=known_at)
    HourlyFactor.objects.bulk_create(
        (HourlyFactor(**_columns(site, new, known_at=known_at)) for new in fresh), batch_size=1_000
    )
    return len({*(row.start for row in outdated), *(new.start for new in fresh)})


def _note(
    actor: Actor, site: SiteRecord, old: HourlyFactor | None, new: HourlyFactor | None
) -> None:
    trail.note(
        actor,
        "site_period_factor.changed",
        subject=("site", site.slug),
        before=_document(old),
        after=_document(new),
    )


def _document(row: HourlyFactor | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        "kind": row.kind,
        "level": row.level,
        "start": row.start,
        "end": row.end,
        "value": row.value,
        "tier": row.tier,
        "source": row.source,
    }
