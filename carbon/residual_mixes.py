"""Residual mixes by market zone and year: what energy outside contracts emits. Reads and writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from carbon.models import ResidualMix
from carbon.records import FactorUsed
from carbon.site_factors import FactorError
from projects import trail
from projects.records import Actor

HIGHEST_G_PER_KWH: Final = 5_000.0
YEARS: Final = (1990, 2100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """The residual mix of a market zone in a year."""

    mix_id: int
    market_zone: str
    year: int
    g_per_kwh: float
    source: str


def mixes_of(organisation_id: UUID, *, as_of: datetime | None = None) -> list[Mix]:
    """The residual mixes on file, by zone, the newest year first."""
    rows = ResidualMix.objects.filter(organisation_id=organisation_id)
    if as_of is None:
        rows = rows.filter(superseded_at__isnull=True)
    else:
        rows = rows.filter(known_at__lte=as_of)
        rows = rows.filter(Q(superseded_at__isnull=True) | Q(superseded_at__gt=as_of))
    return [
        Mix(
            mix_id=row.pk,
            market_zone=row.market_zone,
            year=row.year,
            g_per_kwh=row.g_per_kwh,
            source=row.source,
        )
        for row in rows.order_by("market_zone", "-year")
    ]


def residual_used(mixes: Sequence[Mix], market_zone: str, year: int) -> FactorUsed | None:
    """The mix of the zone's last year not after `year`; None where none is on file."""
    past = [one for one in mixes if one.market_zone == market_zone and one.year <= year]
    found = max(past, key=lambda one: one.year, default=None)
    if found is None or not market_zone:
        return None
    return FactorUsed(
        factor_id=f"residual-mix/{found.market_zone}/{found.year}/{found.mix_id}",
        kind="residual_mix",
        value=found.g_per_kwh,
        unit="gCO2e/kWh",
        year=found.year,
        source=found.source,
        level="market zone",
        basis="market-based, energy outside contracts",
    )


@transaction.atomic
def set_residual_mix(  # noqa: PLR0913  # mirrors the columns
    actor: Actor,
    *,
    market_zone: str,
    year: int,
    g_per_kwh: float,
    source: str,
    known_at: datetime,
) -> bool:
    """State the residual mix of a zone and year; say whether anything changed.

    Raises:
        FactorError: a value is out of range, or the source is missing.
    """
    market_zone, source = market_zone.strip(), source.strip()
    _check(market_zone, source, year=year, g_per_kwh=g_per_kwh)
    held = ResidualMix.objects.select_for_update().filter(
        organisation_id=actor.organisation_id,
        market_zone=market_zone,
        year=year,
        superseded_at__isnull=True,
    )
    old = held.first()
    if old and (old.g_per_kwh, old.source) == (g_per_kwh, source):
        return False
    held.update(superseded_at=known_at)
    ResidualMix.objects.create(
        organisation_id=actor.organisation_id,
        market_zone=market_zone,
        year=year,
        g_per_kwh=g_per_kwh,
        source=source,
        known_at=known_at,
    )
    trail.note(
        actor,
        "residual_mix.changed",
        subject=("market_zone", market_zone),
        before={"year": year, "g_per_kwh": old.g_per_kwh, "source": old.source} if old else None,
        after={"year": year, "g_per_kwh": g_per_kwh, "source": source},
    )
    return True


def _check(market_zone: str, source: str, *, year: int, g_per_kwh: float) -> None:
    if not market_zone or not source:
        raise FactorError(_("A residual mix has a market zone and a source."))
    if not 0 <= g_per_kwh <= HIGHEST_G_PER_KWH:
        raise FactorError(
            _("The residual mix is {value}; it must lie between 0 and {high} g/kWh.").format(
                value=g_per_kwh, high=HIGHEST_G_PER_KWH
            )
        )
    if not YEARS[0] <= year <= YEARS[1]:
        raise FactorError(_("The year lies between 1990 and 2100."))
