"""What people type about the costs of own hardware."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.own_records import OwnRateCard
from planning.rate_card_records import RateCardRecord, plain


def _number(
    label: Any, *, decimals: int = 18, required: bool = True, help_text: Any = ""
) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=required,
        min_value=Decimal(0),
        max_digits=20 + decimals,
        decimal_places=decimals,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=help_text,
    )


class RateCardForm(forms.Form):
    """A card, from a month on."""

    month = forms.RegexField(
        r"^\d{4}-(0[1-9]|1[0-2])$",
        label=_("Holds from the month"),
        widget=forms.TextInput(attrs={"placeholder": "2026-01"}),
        help_text=_("Year and month, such as 2026-01. Charges since then are made anew."),
    )
    currency = forms.RegexField(r"^[A-Za-z]{3}$", label=_("Currency"), initial="USD")
    capital_per_accelerator = _number(
        _("Price of one accelerator"),
        help_text=_("As bought, with its share of server, network and rack."),
    )
    life_years = _number(_("Life in years"), decimals=6, help_text=_("Such as 4 or 5."))
    residual_percent = _number(_("Value left at the end, in percent"), decimals=7, required=False)
    electricity_per_kwh = _number(_("Price of a kWh"), help_text=_("At the meter of the site."))
    staff_per_month = _number(_("Staff a month"), required=False)
    space_per_month = _number(_("Space and network a month"), required=False)
    source = forms.CharField(
        label=_("Where the figures come from"),
        max_length=300,
        help_text=_("Such as an invoice, a contract, or who estimated them."),
    )

    @classmethod
    def after(cls, card: RateCardRecord | None, *, currency: str) -> "RateCardForm":
        """The form of the next card, filled from the one in force."""
        month = f"{datetime.now(UTC):%Y-%m}"
        if card is None:
            return cls(initial={"month": month, "currency": currency})
        names = ("capital_per_accelerator", "life_years", "electricity_per_kwh")
        parts = ("staff_per_month", "space_per_month")
        amounts = {name: plain(getattr(card.card, name)) for name in (*names, *parts)}
        percent = plain(card.card.residual_fraction * 100)
        named = {"month": month, "currency": card.card.currency, "source": card.card.source}
        return cls(initial={**named, **amounts, "residual_percent": percent})

    def first_day(self) -> date:
        """The first day of the month."""
        return date.fromisoformat(f"{self.cleaned_data['month']}-01")

    def card(self) -> OwnRateCard:
        """What was typed, as the service takes it."""
        typed = self.cleaned_data
        return OwnRateCard(
            currency=typed["currency"],
            capital_per_accelerator=typed["capital_per_accelerator"],
            life_years=typed["life_years"],
            residual_fraction=(typed["residual_percent"] or Decimal(0)) / 100,
            electricity_per_kwh=typed["electricity_per_kwh"],
            staff_per_month=typed["staff_per_month"] or Decimal(0),
            space_per_month=typed["space_per_month"] or Decimal(0),
            source=typed["source"],
        )

    def refuse(self, field: str, message: str) -> None:
        """Show a refusal of the service beside the field that it is about."""
        names = {"valid_from": "month", "residual_fraction": "residual_percent"}
        self.add_error(names.get(field, field), message)
