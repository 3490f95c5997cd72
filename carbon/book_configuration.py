"""Boundaries, hardware, instruments and residual mixes as parts of the one document."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from carbon.assets import Asset, NewAsset, add_asset, assets_of, withdraw_asset
from carbon.boundaries import set_boundary, stated_boundaries
from carbon.instrument_pages import last_day
from carbon.instrument_reads import Contract, contracts_of
from carbon.instruments import (
    NewInstrument,
    add_instrument,
    read_hours,
    withdraw_instrument,
)
from carbon.models import InstrumentHour
from carbon.residual_mixes import mixes_of, set_residual_mix
from carbon.site_factors import ALWAYS
from projects.records import Actor
from runs.records import SiteRecord

KEYS: Final = ("instruments", "residual_mixes")


def _day(value: object) -> object:
    """YAML reads `2026-10-01T00:00:00Z` as an instant; a day is meant."""
    return value.astimezone(UTC).date() if isinstance(value, datetime) else value


Day = Annotated[date, BeforeValidator(_day)]


class BoundaryEntry(BaseModel):
    """Who owns the hardware of a site from a day on."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    valid_from: Day = Field(default=ALWAYS, alias="from")
    ownership: str
    market_zone: str = ""


class AssetEntry(BaseModel):
    """Hardware of a site, known by its name."""

    model_config = ConfigDict(extra="forbid")

    name: str
    accelerators: int
    kgco2e: float
    kgco2e_low: float | None = None
    kgco2e_high: float | None = None
    purchased_on: Day
    lifetime_h: float
    source: str

    def wish(self) -> NewAsset:
        """What the service takes."""
        values = self.model_dump()
        return NewAsset(devices=values.pop("accelerators"), **values)


class InstrumentEntry(BaseModel):
    """A contract or certificate, known by name, market zone and first day."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    name: str
    market_zone: str
    first_day: Day
    last_day: Day
    energy_kwh: float | None = None
    g_per_kwh: float
    registry: str = ""
    serials: str = ""
    retired_on: Day | None = None
    hours_csv: str = ""

    def wish(self) -> NewInstrument:
        """What the service takes."""
        return NewInstrument(
            kind=self.kind,
            name=self.name.strip(),
            market_zone=self.market_zone.strip(),
            start=_midnight(self.first_day),
            end=_midnight(self.last_day + timedelta(days=1)),
            energy_kwh=self.energy_kwh,
            g_per_kwh=self.g_per_kwh,
            registry=self.registry.strip(),
            serials=self.serials.strip(),
            retired_on=self.retired_on,
            hours=tuple(read_hours(self.hours_csv)) if self.hours_csv else (),
        )


class MixEntry(BaseModel):
    """The residual mix of a market zone in a year."""

    model_config = ConfigDict(extra="forbid")

    market_zone: str
    year: int
    g_per_kwh: float
    source: str


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def dump_site(site: SiteRecord) -> dict[str, Any]:
    """The boundary and the hardware of a site, as somebody stated them."""
    boundaries = [
        {
            **({} if one.valid_from == ALWAYS else {"from": one.valid_from.isoformat()}),
            "ownership": one.ownership,
            "market_zone": one.market_zone,
        }
        for one in stated_boundaries(site.site_id)
    ]
    assets = assets_of(site.organisation_id, site_id=site.site_id)
    return {"boundary": boundaries, "hardware": [_asset(one) for one in assets]}


def _asset(one: Asset) -> dict[str, Any]:
    return {
        "name": one.name,
        "accelerators": one.devices,
        "kgco2e": one.kgco2e,
        "kgco2e_low": one.kgco2e_low,
        "kgco2e_high": one.kgco2e_high,
        "purchased_on": one.purchased_on.isoformat(),
        "lifetime_h": one.lifetime_h,
        "source": one.source,
    }


def dump_books(organisation_id: UUID) -> dict[str, Any]:
    """Instruments and residual mixes, where there are any."""
    found: dict[str, Any] = {}
    instruments = [_instrument(one) for one in contracts_of(organisation_id)]
    if instruments:
        found["instruments"] = instruments
    mixes = [
        {
            "market_zone": one.market_zone,
            "year": one.year,
            "g_per_kwh": one.g_per_kwh,
            "source": one.source,
        }
        for one in mixes_of(organisation_id)
    ]
    if mixes:
        found["residual_mixes"] = mixes
    return found


def _instrument(one: Contract) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": one.kind,
        "name": one.name,
        "market_zone": one.market_zone,
        "first_day": one.start.astimezone(UTC).date().isoformat(),
        "last_day": last_day(one.end).isoformat(),
        "energy_kwh": one.energy_kwh,
        "g_per_kwh": one.g_per_kwh,
        "registry": one.registry,
        "serials": one.serials,
        "retired_on": one.retired_on.isoformat() if one.retired_on else None,
    }
    if one.has_hours:
        document["hours_csv"] = _profile(one)
    return document


def _profile(one: Contract) -> str:
    rows = InstrumentHour.objects.filter(instrument_id=one.instrument_id).order_by("hour")
    lines = [
        f"{hour.astimezone(UTC):%Y-%m-%dT%H:%MZ},{energy_kwh!r}"
        for hour, energy_kwh in rows.values_list("hour", "energy_kwh")
    ]
    return "\n".join(["hour,energy_kwh", *lines, ""])


def apply_boundary(actor: Actor, site: SiteRecord, entry: BoundaryEntry, *, now: datetime) -> None:
    """State a boundary as the document does."""
    set_boundary(actor, site, **entry.model_dump(), known_at=now)


def apply_asset(actor: Actor, site: SiteRecord, entry: AssetEntry, *, now: datetime) -> None:
    """State hardware; what differs from the one of its name takes its place."""
    wish = entry.wish()
    held = [
        one
        for one in assets_of(site.organisation_id, site_id=site.site_id)
        if one.name == wish.name
    ]
    if any(_same_asset(one, wish) for one in held):
        return
    for one in held:
        withdraw_asset(actor, site, one.asset_id, known_at=now)
    add_asset(actor, site, wish, known_at=now)


def _same_asset(one: Asset, wish: NewAsset) -> bool:
    return all(getattr(one, name) == getattr(wish, name) for name in NewAsset.__slots__)


def apply_instrument(actor: Actor, entry: InstrumentEntry, *, now: datetime) -> None:
    """Enter an instrument; what differs from the one of its name and period takes its place."""
    wish = entry.wish()
    held = [
        one
        for one in contracts_of(actor.organisation_id, market_zone=wish.market_zone)
        if (one.name, one.start) == (wish.name, wish.start)
    ]
    if any(_stated(_instrument(one)) == _stated(entry.model_dump(mode="json")) for one in held):
        return
    for one in held:
        withdraw_instrument(actor, one.instrument_id, known_at=now)
    add_instrument(actor, wish, known_at=now)


def _stated(document: Mapping[str, Any]) -> dict[str, Any]:
    """What two documents are compared by: the hours as read, their sum as told by them."""
    hours = read_hours(document["hours_csv"]) if document.get("hours_csv") else []
    energy = None if hours else document["energy_kwh"]
    return {**document, "hours_csv": hours, "energy_kwh": energy}


def apply_mix(actor: Actor, entry: MixEntry, *, now: datetime) -> bool:
    """State a residual mix; say whether anything changed."""
    return set_residual_mix(actor, **entry.model_dump(), known_at=now)
