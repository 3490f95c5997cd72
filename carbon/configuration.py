"""What people set about the factors of sites, as part of one document's `sites`."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from carbon import services
from carbon.site_factors import ALWAYS, FactorError, NewFactor, dated_factors, set_factor
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug, sites

KEYS = ("sites",)
KINDS = ("host_factor", "pue", "grid_g_per_kwh", "max_gap_s")


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
    max_gap_s: float | None = None
    tier: str = "estimated"
    source: str = ""


class _Site(BaseModel):
    model_config = ConfigDict(extra="ignore")

    slug: str
    factors: list[_Factors] | _Factors = []


class _Assignment(BaseModel):
    model_config = ConfigDict(extra="ignore")

    site: str


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    sites: list[_Site] = []
    assignments: list[_Assignment] = []


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The factors of every site."""
    return {
        "sites": [
            {"slug": site.slug, "factors": _dumped(site.site_id)} for site in sites(organisation_id)
        ]
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
    """Set the factors that the document names; bring the entries of its sites up to date.

    Raises:
        FactorError: an entry is malformed, a value out of range, or a site is not there.
    """
    keys = ("sites", "assignments")
    try:
        wanted = _Document.model_validate(
            {key: document[key] for key in keys if document.get(key) is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise FactorError(f"{where}: {first['msg']} (given: {first.get('input')!r})") from error
    now = timezone.now()
    for entry in wanted.sites:
        site = _site(actor, entry.slug)
        for factors in entry.factors if isinstance(entry.factors, list) else [entry.factors]:
            _set(actor, site, factors, now=now)
    for slug in sorted(
        {one.slug for one in wanted.sites} | {one.site for one in wanted.assignments}
    ):
        services.repost_site(_site(actor, slug), now=now)


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
