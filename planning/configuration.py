"""What people set about rate cards and milestones, as sections of the one document; no plans."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from django.db import transaction
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from billing.own_records import OwnRateCard
from planning.charging import ask_to_charge
from planning.milestone_changes import MilestoneWish, set_milestones, wishes_of
from planning.models import Milestone
from planning.rate_cards import RateCardError, cards_of_sites, save_rate_card
from projects.access import Role, project_for, projects_for
from projects.models import Project
from projects.records import Actor
from runs.selectors import site_by_slug, sites

KEYS = ("rate_cards", "milestones")


def _day(value: object) -> object:
    """YAML reads `2026-10-01T00:00:00Z` as an instant; a day is meant."""
    return value.astimezone(UTC).date() if isinstance(value, datetime) else value


def _number(value: object) -> object:
    """A number as it is written: 0.1 is a tenth, not the float next to it."""
    return repr(value) if isinstance(value, float) else value


Day = Annotated[date, BeforeValidator(_day)]
Number = Annotated[Decimal, BeforeValidator(_number)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _RateCard(_Strict):
    site: str
    valid_from: Day
    currency: str
    capital_per_accelerator: Number
    life_years: Number
    residual_fraction: Number = Decimal(0)
    electricity_per_kwh: Number
    staff_per_month: Number = Decimal(0)
    space_per_month: Number = Decimal(0)
    source: str

    def card(self) -> OwnRateCard:
        """The card as the service takes it."""
        return OwnRateCard(**self.model_dump(exclude={"site", "valid_from"}))


class _Milestone(_Strict):
    project: str
    name: str
    week: int
    line_key: str = ""
    share_fraction: Number | None = None
    reached_on: Day | None = None

    def wish(self) -> MilestoneWish:
        """The milestone as the service takes it."""
        return MilestoneWish(**self.model_dump(exclude={"project"}))


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    rate_cards: list[_RateCard] = []
    milestones: list[_Milestone] = []


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The rate cards that hold, by site and month, and the milestones by project."""
    cards = cards_of_sites(organisation_id)
    found: dict[str, Any] = {
        "rate_cards": [
            {"site": site.slug, **card.document()}
            for site in sites(organisation_id)
            for card in reversed(cards.get(site.site_id, ()))
        ]
    }
    ids = Milestone.objects.filter(organisation_id=organisation_id).values("plan__project")
    projects = Project.objects.filter(pk__in=ids, archived_at__isnull=True).order_by("slug")
    found["milestones"] = [
        {"project": project.slug, **wish.document()}
        for project in projects
        for wish in wishes_of(project)
    ]
    return {name: section for name, section in found.items() if section}


@transaction.atomic
def apply(actor: Actor, document: Mapping[str, Any]) -> None:
    """Bring what the document names to what it says; what it does not name stays.

    Raises:
        ValueError: an entry cannot be, or names a site or project that is not there.
        PermissionDenied: the actor's role does not reach so far.
    """
    try:
        wanted = _Document.model_validate(
            {key: document[key] for key in KEYS if document.get(key) is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{where}: {first['msg']} (given: {first.get('input')!r})") from error
    for card in wanted.rate_cards:
        _apply_card(actor, card)
    by_project: dict[str, list[_Milestone]] = {}
    for one in wanted.milestones:
        by_project.setdefault(one.project, []).append(one)
    for slug, some in by_project.items():
        _apply_milestones(actor, slug, some)


def _apply_card(actor: Actor, wanted: _RateCard) -> None:
    site = site_by_slug(actor.organisation_id, wanted.site)
    if site is None:
        raise ValueError(f"No site {wanted.site!r}: add it under 'sites' first")
    try:
        is_new = save_rate_card(actor, site, valid_from=wanted.valid_from, card=wanted.card())
    except RateCardError as error:
        raise ValueError(f"rate_cards[{wanted.site}].{error.field}: {error}") from error
    if is_new:
        ask_to_charge(actor.organisation_id, site.site_id, since=wanted.valid_from)


def _apply_milestones(actor: Actor, slug: str, wanted: list[_Milestone]) -> None:
    """Put the named ones beside those that are there."""
    if not projects_for(actor).filter(slug=slug).exists():
        raise ValueError(f"No project {slug!r}: add it under 'projects' first")
    project = project_for(actor, slug, Role.ANALYST)
    named = {one.name.strip() for one in wanted}
    kept = [one for one in wishes_of(project) if one.name not in named]
    set_milestones(actor, project, [*kept, *(one.wish() for one in wanted)])
