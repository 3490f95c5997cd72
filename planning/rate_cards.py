"""Rate cards of own hardware by site: reads, and the one write that adds a card."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from billing.own_records import OwnRateCard
from formulae.money import Money, MoneyError
from planning.models import RateCard
from planning.rate_card_records import AMOUNTS, RateCardRecord
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note
from runs.records import SiteRecord

LONGEST_LIFE_YEARS: Final = 50
_DECIMALS: Final = {**dict.fromkeys(AMOUNTS, 18), "life_years": 6, "residual_fraction": 9}
_FIELDS: Final = tuple(_DECIMALS)
_LIMIT: Final = Decimal(10) ** 18


class RateCardError(ValueError):
    """A card that cannot be; `field` names which number, the message is for people."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def cards_of_sites(
    organisation_id: UUID, *, as_of: datetime | None = None
) -> dict[UUID, tuple[RateCardRecord, ...]]:
    """The cards of every site that has some, newest first; of one first day the last one stated."""
    found = RateCard.objects.filter(organisation_id=organisation_id)
    if as_of is not None:
        found = found.filter(recorded_at__lte=as_of)
    by_place: dict[tuple[UUID, date], RateCardRecord] = {}
    for row in found.order_by("site_id", "-valid_from", "-id"):
        by_place.setdefault((row.site_id, row.valid_from), _record(row))
    cards: dict[UUID, tuple[RateCardRecord, ...]] = {}
    for (site_id, _day), card in by_place.items():
        cards[site_id] = (*cards.get(site_id, ()), card)
    return cards


def cards_of(site: SiteRecord) -> tuple[RateCardRecord, ...]:
    """The cards of a site, newest first."""
    return cards_of_sites(site.organisation_id).get(site.site_id, ())


def card_on(cards: Iterable[RateCardRecord], day: date) -> RateCardRecord | None:
    """The card in force on a day; None before the first."""
    held = [card for card in cards if card.valid_from <= day]
    return max(held, key=lambda card: card.valid_from, default=None)


def _record(row: RateCard) -> RateCardRecord:
    return RateCardRecord(
        site_id=row.site_id,
        valid_from=row.valid_from,
        recorded_by=row.recorded_by,
        card=OwnRateCard(
            currency=row.currency,
            source=row.source,
            **{name: getattr(row, name) for name in _FIELDS},
        ),
    )


@transaction.atomic
def save_rate_card(actor: Actor, site: SiteRecord, *, valid_from: date, card: OwnRateCard) -> bool:
    """State what a site's own hardware costs from a month on; say whether that is new.

    Charges of months that are restated from now on follow it.

    Raises:
        RateCardError: the card cannot be; nothing is stored.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    wanted = RateCardRecord(
        site_id=site.site_id, valid_from=valid_from, card=_checked(valid_from, card)
    )
    before = next((one for one in cards_of(site) if one.valid_from == valid_from), None)
    if before is not None and before.document() == wanted.document():
        return False
    RateCard.objects.create(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        valid_from=valid_from,
        currency=wanted.card.currency,
        source=wanted.card.source,
        recorded_by=actor.label[:200],
        **{name: getattr(wanted.card, name) for name in _FIELDS},
    )
    note(
        actor,
        "rate_card.save",
        subject=("site", site.site_id),
        before=before.document() if before else None,
        after=wanted.document(),
    )
    return True


def _checked(valid_from: date, card: OwnRateCard) -> OwnRateCard:
    """The card as it is stored.

    Raises:
        RateCardError: a number, the currency or the source cannot be.
    """
    if valid_from.day != 1:
        words = _("A card holds from the first day of a month on, such as {day}.")
        first = valid_from.replace(day=1).isoformat()
        raise RateCardError("valid_from", words.format(day=first))
    for name, decimals in _DECIMALS.items():
        _check_number(name, getattr(card, name), decimals)
    if not 0 < card.life_years <= LONGEST_LIFE_YEARS:
        words = _("The life is above 0 and at most {limit} years.")
        raise RateCardError("life_years", words.format(limit=LONGEST_LIFE_YEARS))
    if card.residual_fraction >= 1:
        words = _("The residual value is below 1: 0.1 is a tenth of the purchase.")
        raise RateCardError("residual_fraction", words)
    if not card.source.strip() or len(card.source.strip()) > 300:
        raise RateCardError("source", _("Say where the figures come from, in 300 letters."))
    try:
        currency = Money.of(0, card.currency.strip().upper()).currency
    except MoneyError as error:
        raise RateCardError("currency", str(error)) from error
    numbers = {name: getattr(card, name) for name in _FIELDS}
    return OwnRateCard(currency=currency, source=card.source.strip(), **numbers)


def _check_number(name: str, value: Decimal, decimals: int) -> None:
    """A number that is finite, not negative, and stored to its last digit."""
    if not value.is_finite() or not 0 <= value < _LIMIT:
        raise RateCardError(name, _("This is a number from 0 on, such as 12.5."))
    if value != round(value, decimals):
        words = _("This has at most {limit} decimals.")
        raise RateCardError(name, words.format(limit=decimals))
