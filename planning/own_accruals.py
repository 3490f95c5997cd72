"""Reads what own hardware accrues: cards, days that are charged, the energy of a project's work."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.cost_questions import CostQuestion, Filter
from billing.own_records import PROVIDER
from billing.selectors import cost_table
from carbon.selectors import energy_by_day
from planning.accrual_records import AccruedDay, DeviceDay
from planning.own_accrual_rules import SiteDay, accrued_own_hardware
from planning.rate_card_records import RateCardRecord
from planning.rate_cards import card_on, cards_of_sites
from projects.models import Project
from runs.selectors import sites

_KWH_QUANTUM: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSites:
    """Sites with a rate card, and their days that have charges already."""

    cards: Mapping[UUID, Sequence[RateCardRecord]] = field(default_factory=dict)
    slugs: Mapping[UUID, str] = field(default_factory=dict)
    charged: frozenset[SiteDay] = frozenset()

    def card_of(self, site_id: UUID, day: date) -> RateCardRecord | None:
        """The card in force at a site on a day."""
        return card_on(self.cards.get(site_id, ()), day)

    def is_own(self, one: DeviceDay) -> bool:
        """Whether a device-day is charged by a card."""
        return self.card_of(one.site_id, one.day) is not None

    def is_own_charge(self, provider: str | None, region: str | None) -> bool:
        """Whether a charge is one that a card made."""
        return provider == PROVIDER and region in self.slugs.values()

    def open_from(self, today: date) -> date | None:
        """The first day under a card that has no charges; None without a card in force."""
        days = [
            day
            for site_id, cards in self.cards.items()
            if (day := self._first_open(site_id, cards, today)) is not None
        ]
        return min(days, default=None)

    def _first_open(
        self, site_id: UUID, cards: Sequence[RateCardRecord], today: date
    ) -> date | None:
        day = min(card.valid_from for card in cards)
        while day <= today and (site_id, day) in self.charged:
            day += timedelta(days=1)
        return day if day <= today else None


def own_sites(organisation_id: UUID, *, as_of: datetime) -> OwnSites:
    """The sites with a card as known at `as_of`, and which of their days are charged."""
    cards = cards_of_sites(organisation_id, as_of=as_of)
    if not cards:
        return OwnSites()
    slugs = {one.site_id: one.slug for one in sites(organisation_id) if one.site_id in cards}
    question = CostQuestion(
        group_by=("day", "region_id"),
        filters=(
            Filter(column="provider_name", values=(PROVIDER,)),
            Filter(column="region_id", values=tuple(sorted(slugs.values()))),
        ),
        as_of=as_of,
    )
    by_slug = {slug: site_id for site_id, slug in slugs.items()}
    charged = frozenset(
        (by_slug[row.group[1]], date.fromisoformat(row.group[0]))
        for row in cost_table(organisation_id, question).rows
        if row.group[0] and row.group[1] in by_slug
    )
    return OwnSites(cards=cards, slugs=slugs, charged=charged)


def own_accruals(
    project: Project, ran: Iterable[DeviceDay], own: OwnSites, *, as_of: datetime, currency: str
) -> list[AccruedDay]:
    """What a project's work on own hardware accrues up to `as_of`.

    Args:
        project: whose.
        ran: what worked for it, at any site.
        own: sites with a card.
        as_of: aware instant.
        currency: of the plan.
    """
    today = as_of.astimezone(UTC).date()
    if own.open_from(today) is None:
        return []
    mine = [one for one in ran if own.is_own(one)]
    return accrued_own_hardware(
        mine,
        _energy(project, {one.site_id for one in mine}, own, as_of),
        charged=own.charged,
        card_of=own.card_of,
        currency=currency,
    )


def _energy(
    project: Project, site_ids: Iterable[UUID], own: OwnSites, as_of: datetime
) -> dict[SiteDay, Decimal]:
    """Facility energy of the project's work by site and day, where it is known."""
    today = as_of.astimezone(UTC).date()
    return {
        (site_id, one.day): Decimal(repr(one.facility_energy_kwh)).quantize(_KWH_QUANTUM)
        for site_id in sorted(site_ids)
        for one in energy_by_day(
            project.organisation_id,
            project.pk,
            site_id=site_id,
            start_on=own.open_from(today),
            end_on=today + timedelta(days=1),
            as_of=as_of,
        )
        if one.facility_energy_kwh is not None
    }
