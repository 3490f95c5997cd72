"""What own hardware accrues until it is charged: pure rules, no table, no clock.

A site's day is charged whole: every device with its used and idle hours. So a day of a site that
has charges accrues nothing more, whoever they went to, and no device-hour is counted twice.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date
from decimal import Decimal
from uuid import UUID

from formulae.money import multiply, quantise_money
from planning.accrual_records import AccruedDay, DeviceDay, Rate, RateBasis
from planning.accrual_rules import hours_of
from planning.rate_card_records import RateCardRecord

CardOf = Callable[[UUID, date], RateCardRecord | None]
SiteDay = tuple[UUID, date]


def accrued_own_hardware(
    ran: Iterable[DeviceDay],
    energy_kwh: Mapping[SiteDay, Decimal],
    *,
    charged: Set[SiteDay],
    card_of: CardOf,
    currency: str,
) -> list[AccruedDay]:
    """Device-hours and kWh of days without charges, each at the card in force.

    Args:
        ran: what worked for the project at sites with a card.
        energy_kwh: facility energy of the project's work by site and day; unknown ones left out.
        charged: days of sites with charges of own hardware.
        card_of: the card of a site on a day, or None.
        currency: of the accruals; a card in another one leaves the cost unknown.
    """
    found = []
    for one in ran:
        card = card_of(one.site_id, one.day)
        if card is None or (one.site_id, one.day) in charged:
            continue
        found.append(
            AccruedDay(
                day=one.day,
                x_cost_class="accelerator",
                currency=currency,
                quantity=(hours := hours_of(one.allocated_microsecond)),
                unit="accelerator_h",
                rate=(rate := _rate(card, card.hour_rate, currency, RateBasis.OWN_PRICE)),
                cost=_cost(hours, rate),
                accelerator_key=one.accelerator_key,
                site_id=one.site_id,
            )
        )
    for (site_id, day), kwh in energy_kwh.items():
        card = card_of(site_id, day)
        if card is None or (site_id, day) in charged:
            continue
        price = card.card.electricity_per_kwh
        tariff = _rate(card, price, currency, RateBasis.TARIFF)
        found.append(
            AccruedDay(
                day=day,
                x_cost_class="other",  # as the charge of electricity is classed
                currency=currency,
                quantity=kwh,
                unit="kWh",
                rate=tariff,
                cost=_cost(kwh, tariff),
                site_id=site_id,
            )
        )
    return found


def _rate(card: RateCardRecord, amount: Decimal, currency: str, basis: RateBasis) -> Rate | None:
    if card.card.currency != currency:
        return None
    return Rate(amount=amount, currency=currency, basis=basis, source=card.card.source)


def _cost(quantity: Decimal, rate: Rate | None) -> Decimal | None:
    return None if rate is None else quantise_money(multiply(quantity, rate.amount))
