"""Hardware of a site and what its making emitted: reads and writes; the books take a rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from carbon.attribution import microsecond_of
from carbon.models import EmbodiedAsset
from carbon.presence import accelerators_by, first_hours
from carbon.records import FactorUsed
from carbon.site_factors import FactorError
from formulae.embodied import Hardware, site_embodied_kg_per_accelerator_h
from projects import trail
from projects.records import Actor
from runs.records import SiteRecord

UNIT: Final = "kgCO2e/accelerator-hour"
MAX_KGCO2E: Final = 1e9
MAX_LIFETIME_H: Final = 50 * 8_760.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAsset:
    """What a person states of a piece of hardware."""

    name: str
    devices: int
    kgco2e: float
    purchased_on: date
    lifetime_h: float
    source: str
    kgco2e_low: float | None = None
    kgco2e_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A piece of hardware of a site; kgCO2e of all of it."""

    asset_id: UUID
    site_id: UUID
    name: str
    devices: int
    kgco2e: float
    kgco2e_low: float | None
    kgco2e_high: float | None
    purchased_on: date
    lifetime_h: float
    source: str

    @property
    def start(self) -> datetime:
        """The beginning of its expected life."""
        return datetime.combine(self.purchased_on, time(), UTC)

    @property
    def end(self) -> datetime:
        """The end of its expected life."""
        return self.start + timedelta(hours=self.lifetime_h)

    def hardware(self, kgco2e: float | None = None) -> Hardware:
        """What the formula takes, with another footprint where one is given."""
        return Hardware(
            kgco2e=self.kgco2e if kgco2e is None else kgco2e,
            lifetime_h=self.lifetime_h,
            accelerators=self.devices,
        )


def assets_of(
    organisation_id: UUID, *, site_id: UUID | None = None, as_of: datetime | None = None
) -> list[Asset]:
    """The hardware of a site, or of all sites, earliest first."""
    rows = EmbodiedAsset.objects.filter(organisation_id=organisation_id)
    if site_id is not None:
        rows = rows.filter(site_id=site_id)
    if as_of is None:
        rows = rows.filter(superseded_at__isnull=True)
    else:
        rows = rows.filter(known_at__lte=as_of)
        rows = rows.filter(Q(superseded_at__isnull=True) | Q(superseded_at__gt=as_of))
    return [
        Asset(
            asset_id=row.pk,
            site_id=row.site_id,
            name=row.name,
            devices=row.devices,
            kgco2e=row.kgco2e,
            kgco2e_low=row.kgco2e_low,
            kgco2e_high=row.kgco2e_high,
            purchased_on=row.purchased_on,
            lifetime_h=row.lifetime_h,
            source=row.source,
        )
        for row in rows.order_by("purchased_on", "name", "pk")
    ]


class EmbodiedRates:
    """What an accelerator-hour of a site carries of the making of its hardware, by the hour."""

    def __init__(self, site: SiteRecord) -> None:
        self.assets = assets_of(site.organisation_id, site_id=site.site_id)
        # One piece alone is shared by those it says it serves, however many there are.
        self._first_hours = first_hours(site.site_id) if len(self.assets) > 1 else []
        self._known: dict[tuple[int, tuple[UUID, ...]], FactorUsed] = {}

    def at(self, hour: datetime) -> FactorUsed | None:
        """The rate in an hour; None before the first purchase, 0 once every life is over."""
        bought = [one for one in self.assets if one.start <= hour]
        if not bought:
            return None
        living = [one for one in bought if hour < one.end]
        accelerators = accelerators_by(self._first_hours, microsecond_of(hour))
        key = (accelerators, tuple(one.asset_id for one in living))
        if key not in self._known:
            self._known[key] = self._rate(living, accelerators)
        return self._known[key]

    def _rate(self, living: Sequence[Asset], accelerators: int) -> FactorUsed:
        rate = site_embodied_kg_per_accelerator_h([one.hardware() for one in living], accelerators)
        ids = "+".join(str(one.asset_id) for one in living)
        return FactorUsed(
            factor_id=f"embodied-assets/{ids or 'written-off'}",
            kind="embodied",
            value=rate,
            unit=UNIT,
            year=max((one.purchased_on.year for one in living), default=None),
            source="; ".join(f"{one.name}: {one.source}" for one in living),
            level="site",
            basis="ISO/IEC 21031, by accelerator-hours",
        )


def embodied_range(assets: Sequence[Asset], hour: datetime) -> tuple[float, float] | None:
    """Lowest and highest footprint of the living hardware over its stated one; None unless known.

    By these an amortised figure of that hour may be off.
    """
    living = [one for one in assets if one.start <= hour < one.end]
    stated = sum(one.kgco2e / one.lifetime_h for one in living)
    if not stated or any(one.kgco2e_low is None or one.kgco2e_high is None for one in living):
        return None
    low = sum((one.kgco2e_low or 0.0) / one.lifetime_h for one in living)
    high = sum((one.kgco2e_high or 0.0) / one.lifetime_h for one in living)
    return low / stated, high / stated


@transaction.atomic
def add_asset(actor: Actor, site: SiteRecord, new: NewAsset, *, known_at: datetime) -> UUID:
    """State a piece of hardware.

    Raises:
        FactorError: a figure is out of range, or the range does not hold the figure.
    """
    _check(new)
    row = EmbodiedAsset.objects.create(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        known_at=known_at,
        **{name: getattr(new, name) for name in NewAsset.__slots__},
    )
    _note(actor, site, before=None, after=row)
    return row.pk


@transaction.atomic
def withdraw_asset(actor: Actor, site: SiteRecord, asset_id: UUID, *, known_at: datetime) -> None:
    """Let a piece of hardware count no longer; what was posted with it is corrected.

    Raises:
        FactorError: there is no such hardware at this site.
    """
    row = EmbodiedAsset.objects.filter(
        pk=asset_id, site_id=site.site_id, superseded_at__isnull=True
    ).first()
    if row is None:
        raise FactorError(_("No such hardware at this site; reload the page."))
    EmbodiedAsset.objects.filter(pk=row.pk).update(superseded_at=known_at)
    _note(actor, site, before=row, after=None)


def _check(new: NewAsset) -> None:
    if not new.name.strip() or not new.source.strip():
        raise FactorError(_("Hardware has a name, and its footprint a source."))
    if new.devices < 1:
        raise FactorError(_("Say how many accelerators the hardware serves: 1 or more."))
    if not 0 <= new.kgco2e <= MAX_KGCO2E:
        raise FactorError(_("The footprint lies between 0 and 1e9 kgCO2e."))
    if not 1 <= new.lifetime_h <= MAX_LIFETIME_H:
        raise FactorError(_("The expected life lies between 1 hour and 50 years."))
    low = new.kgco2e if new.kgco2e_low is None else new.kgco2e_low
    high = new.kgco2e if new.kgco2e_high is None else new.kgco2e_high
    if not 0 <= low <= new.kgco2e <= high <= MAX_KGCO2E:
        raise FactorError(_("The footprint lies within its own range: low, footprint, high."))


def _note(
    actor: Actor, site: SiteRecord, *, before: EmbodiedAsset | None, after: EmbodiedAsset | None
) -> None:
    trail.note(
        actor,
        "embodied_asset.changed",
        subject=("site", site.slug),
        before=_document(before),
        after=_document(after),
    )


def _document(row: EmbodiedAsset | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {name: getattr(row, name) for name in NewAsset.__slots__}
