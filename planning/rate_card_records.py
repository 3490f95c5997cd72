"""What a rate card of own hardware says, as a plain record; no Django."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.own_charges import capital_per_device_h
from billing.own_records import OwnRateCard

AMOUNTS: Final = (
    "capital_per_accelerator",
    "electricity_per_kwh",
    "staff_per_month",
    "space_per_month",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCardRecord:
    """What the own hardware of a site costs from `valid_from`, the first day of a month, on."""

    site_id: UUID
    valid_from: date
    card: OwnRateCard
    recorded_by: str = ""

    @property
    def hour_rate(self) -> Decimal:
        """Capital of one device-hour, whether somebody uses it or not."""
        return capital_per_device_h(self.card)

    def document(self) -> dict[str, str]:
        """The card as text: for the trail, and for the configuration document."""
        card = self.card
        amounts = {name: plain(getattr(card, name)) for name in AMOUNTS}
        return {
            "valid_from": self.valid_from.isoformat(),
            "currency": card.currency,
            **amounts,
            "life_years": plain(card.life_years),
            "residual_fraction": plain(card.residual_fraction),
            "source": card.source,
        }


def plain(amount: Decimal) -> str:
    """A number without zeros that say nothing.

    >>> plain(Decimal("30000.000")), plain(Decimal("0.10"))
    ('30000', '0.1')
    """
    return format(amount.normalize(), "f")
