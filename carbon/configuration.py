"""What people state of sites, their factors and contracts, as part of the one document."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from carbon import book_configuration, services
from carbon.book_configuration import (
    AssetEntry,
    BoundaryEntry,
    InstrumentEntry,
    MixEntry,
    apply_asset,
    apply_boundary,
    apply_instrument,
    apply_mix,
    dump_books,
    dump_site,
)
from carbon.instruments import InstrumentError
from carbon.meter_configuration import MeterEntry, apply_meters, dump_meters
from carbon.site_factors import ALWAYS, FactorError, NewFactor, dated_factors, set_factor
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug, sites

KEYS = ("sites", *book_configuration.KEYS)
KINDS = (
    "host_factor",
    "pue",
    "grid_g_per_kwh",
    "wue_l_per_kwh",
    "source_l_per_kwh",
    "max_gap_s",
)


def _day(value: object) -> object:
    """YAML reads `2026-10-01T00:00:00Z` as an instant; a factor holds from a day on."""
    return value.astimezone(UTC).date() if isinstance(value, datetime) else value


class _Factors(BaseModel):
    """The factors of a site that hold from one day on (from ever, without `from`)."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    valid_from: Annotated[date, BeforeValidator(_day)] = Field(default=ALWAYS, alias="from")
    host_factor: float | None = None
    pue: float | None = None
    grid_g_per_kwh: float | None = None
    wue_l_per_kwh: float | None = None
    source_l_per_kwh: float | None = None
    max_gap_s: float | None = None
    tier: str = "estimated"
    source: str = ""


class _Site(BaseModel):
    model_config = ConfigDict(extra="ignore")

    slug: str
    factors: list[_Factors] | _Factors = []
    boundary: list[BoundaryEntry] | BoundaryEntry = []
    hardware: list[AssetEntry] = []
    meters: list[MeterEntry] = []


class _Assignment(BaseModel):
    model_config = ConfigDict(extra="ignore")

    site: str


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    sites: list[_Site] = []
    assignments: list[_Assignment] = []
    instruments: list[InstrumentEntry] = []
    residual_mixes: list[MixEntry] = []


def dump(organisation_id: UUID) -> dict[str, Any]:
    """Factors, boundary and hardware of every site; instruments and residual mixes."""
    return {
        "sites": [
            {
                "slug": site.slug,
                "factors": _dumped(site.site_id),
                **dump_site(site),
                "meters": dump_meters(site.site_id),
            }
            for site in sites(organisation_id)
        ],
        **dump_books(organisation_id),
    }


def _dumped(site_id: UUID) -> list[dict[str, Any]]:
    """Factors with the same day, tier and source as one entry."""
    entries: dict[tuple[date, str, str], dict[str, Any]] = {}
    for one in sorted(dated_factors(site_id), key=lambda one: (one.valid_from, one.kind)):
        key = (one.valid_from, one.tier, one.source)
        entry = entries.setdefault(
            key, {} if one.valid_from == ALWAYS else {"from": one.valid_from.isoformat()}
        )
        entry[one.kind] = one.value
    return [
        {**entry, "tier": tier, "source": source} for (_, tier, source), entry in entries.items()
    ]


@transaction.atomic
def apply(actor: Actor, document: Mapping[str, Any]) -> None:
    """State what the document names; bring the entries of its sites up to date.

    Raises:
        FactorError: an entry is malformed, a value out of range, or a site is not there.
    """
    wanted = _read(document)
    now = timezone.now()
    try:
        changed_mixes = [apply_mix(actor, one, now=now) for one in wanted.residual_mixes]
        for instrument in wanted.instruments:
            apply_instrument(actor, instrument, now=now)
    except InstrumentError as error:
        raise FactorError(f"instruments: {error}") from error
    for entry in wanted.sites:
        _apply_site(actor, entry, now=now)
    slugs = {one.slug for one in wanted.sites} | {one.site for one in wanted.assignments}
    if any(changed_mixes):
        slugs |= {one.slug for one in sites(actor.organisation_id)}
    for slug in sorted(slugs):
        services.repost_site(_site(actor, slug), now=None)


def _apply_site(actor: Actor, entry: _Site, *, now: datetime) -> None:
    """State what an entry says of one site."""
    site = _site(actor, entry.slug)
    for factors in entry.factors if isinstance(entry.factors, list) else [entry.factors]:
        _set(actor, site, factors, now=now)
    held = entry.boundary if isinstance(entry.boundary, list) else [entry.boundary]
    for boundary in held:
        apply_boundary(actor, site, boundary, now=now)
    for asset in entry.hardware:
        apply_asset(actor, site, asset, now=now)
    apply_meters(actor, site, entry.meters, now=now)


def _read(document: Mapping[str, Any]) -> _Document:
    keys = (*KEYS, "assignments")
    try:
        return _Document.model_validate(
            {key: document[key] for key in keys if document.get(key) is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise FactorError(f"{where}: {first['msg']} (given: {first.get('input')!r})") from error


def _site(actor: Actor, slug: str) -> SiteRecord:
    site = site_by_slug(actor.organisation_id, slug)
    if site is None:
        raise FactorError(f"No site {slug!r}: add it under 'sites' first")
    return site


def _set(actor: Actor, site: SiteRecord, factors: _Factors, *, now: datetime) -> None:
    for kind in KINDS:
        value = getattr(factors, kind)
        if value is not None:
            new = NewFactor(
                kind=kind,
                value=value,
                valid_from=factors.valid_from,
                tier=factors.tier,
                source=factors.source,
            )
            set_factor(actor, site, new, known_at=now)
