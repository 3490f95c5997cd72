"""Turns metered hours and kWh of own hardware into FOCUS rows by a rate card; stores nothing.

Straight-line depreciation: a device-hour costs capital x (1 - residual) / (life in years x 8,760),
whether somebody used it or not; an idle hour is a charge of unused capacity. Electricity is metered
kWh times the price. Staff and space are one charge a month each, at the month's first day.
Source: IAS 16 (straight-line method); FOCUS 1.2 (columns, CapacityReservationStatus).
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal, localcontext
from typing import Final

from billing.own_records import PROVIDER, SERVICE, MeteredDay, OwnRateCard
from billing.records import ChargesRefusedError
from formulae.money import quantise_money
from formulae.periods import month_from_label
from formulae.units import EXACT

HOURS_PER_YEAR: Final = 8760
LONGEST_DAY_H: Final = Decimal(24)
COLUMNS: Final = (
    "ProviderName",
    "PublisherName",
    "InvoiceIssuerName",
    "BillingAccountId",
    "BillingAccountName",
    "SubAccountId",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "BilledCost",
    "EffectiveCost",
    "ListCost",
    "ContractedCost",
    "BillingCurrency",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ServiceName",
    "ServiceCategory",
    "SkuId",
    "SkuMeter",
    "ResourceId",
    "ResourceType",
    "RegionId",
    "CapacityReservationId",
    "CapacityReservationStatus",
    "Tags",
)


def capital_per_device_h(card: OwnRateCard) -> Decimal:
    """What one hour of one device costs in capital: straight line over its life, 18 decimals.

    >>> card = OwnRateCard(currency="USD", capital_per_accelerator=Decimal(43800),
    ...     life_years=Decimal(5), electricity_per_kwh=Decimal("0.1"))
    >>> capital_per_device_h(card)
    Decimal('1.000000000000000000')
    """
    with localcontext(EXACT) as context:
        context.prec = 60
        depreciated = card.capital_per_accelerator * (1 - card.residual_fraction)
        return quantise_money(depreciated / (card.life_years * HOURS_PER_YEAR))


def own_charges(month: str, days: Sequence[MeteredDay], card: OwnRateCard) -> bytes:
    """A month's charges as a FOCUS file; the same records and card give the same bytes.

    Raises:
        ChargesRefusedError: a record or the card cannot be; names the record and its field.
    """
    _check_card(card)
    period = month_from_label(month)
    rows: list[Mapping[str, str]] = []
    hours: dict[tuple[date, str], Decimal] = {}
    for number, one in enumerate(sorted(days, key=_order), start=1):
        if not period.start.date() <= one.day < period.end.date():
            raise _wrong(number, "day", f"{one.day} is outside {month}")
        _check_day(number, one)
        place = (one.day, one.device_id)
        hours[place] = hours.get(place, Decimal(0)) + one.used_h + one.idle_h
        if hours[place] > LONGEST_DAY_H:
            reason = "used and idle hours of one device's day exceed 24"
            raise _wrong(number, "used_h", f"{reason}: {one.device_id}, {one.day}")
        rows += _of_day(one, card)
    rows += _of_month(card, period.start.date().isoformat())
    if not rows:
        raise ChargesRefusedError("empty", f"there is nothing to charge in {month}")
    common = {
        "BillingPeriodStart": f"{period.start:%Y-%m-%dT%H:%M:%SZ}",
        "BillingPeriodEnd": f"{period.end:%Y-%m-%dT%H:%M:%SZ}",
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, **common} for row in rows)
    return out.getvalue().encode()


def _order(one: MeteredDay) -> tuple[object, ...]:
    return (one.day, one.site, one.device_id, one.run_key, one.project)


def _check_card(card: OwnRateCard) -> None:
    wrong = {
        "capital_per_accelerator": card.capital_per_accelerator < 0,
        "life_years": card.life_years <= 0,
        "residual_fraction": not 0 <= card.residual_fraction < 1,
        "electricity_per_kwh": card.electricity_per_kwh < 0,
        "staff_per_month": card.staff_per_month < 0,
        "space_per_month": card.space_per_month < 0,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ChargesRefusedError("rate_card", f"{name} cannot be {getattr(card, name)}")


def _check_day(number: int, one: MeteredDay) -> None:
    for name in ("used_h", "idle_h", "facility_energy_kwh"):
        value = getattr(one, name)
        if value is not None and (not value.is_finite() or value < 0):
            raise _wrong(number, name, f"it cannot be {value}")


def _wrong(number: int, name: str, reason: str) -> ChargesRefusedError:
    return ChargesRefusedError("record", reason, file="records", row=number, column=name)


def _of_day(one: MeteredDay, card: OwnRateCard) -> Iterator[Mapping[str, str]]:
    """Used hours, idle hours and electricity of one device's day."""
    hourly = capital_per_device_h(card)
    base = {
        **_row(card, one.day.isoformat()),
        "SubAccountId": one.site,
        "RegionId": one.site,
        "ResourceId": one.device_id,
        "ResourceType": "GPU",
        "SkuMeter": one.accelerator,
        "Tags": json.dumps(_tags(one), sort_keys=True),
    }
    if one.used_h:
        yield (
            base
            | _costed(EXACT.multiply(one.used_h, hourly), one.used_h, "GPU-Hours")
            | {
                "ChargeDescription": f"Depreciation of {one.accelerator} GPU, used",
                "SkuId": "depreciation",
                "CapacityReservationId": one.device_id,
                "CapacityReservationStatus": "Used",
            }
        )
    if one.idle_h:
        yield (
            base
            | _costed(EXACT.multiply(one.idle_h, hourly), one.idle_h, "GPU-Hours")
            | {
                "ChargeDescription": f"Depreciation of {one.accelerator} GPU, idle",
                "SkuId": "depreciation-idle",
                "CapacityReservationId": one.device_id,
                "CapacityReservationStatus": "Unused",
            }
        )
    if one.facility_energy_kwh is not None:
        energy = one.facility_energy_kwh
        yield (
            base
            | _costed(EXACT.multiply(energy, card.electricity_per_kwh), energy, "kWh")
            | {
                "ChargeDescription": "Electricity",
                "SkuId": "electricity",
                "SkuMeter": "electricity",
                "ServiceCategory": "Other",
            }
        )


def _of_month(card: OwnRateCard, first_day: str) -> Iterator[Mapping[str, str]]:
    """Staff and space."""
    for amount, sku, words in (
        (card.staff_per_month, "staff", "Staff"),
        (card.space_per_month, "space", "Space and network"),
    ):
        if amount:
            yield (
                _row(card, first_day)
                | _costed(amount, Decimal(1), "Months")
                | {
                    "ChargeDescription": words,
                    "SkuId": sku,
                    "SkuMeter": sku,
                    "ServiceCategory": "Other",
                    "ChargeFrequency": "Recurring",
                    "SubAccountId": "own-hardware",
                }
            )


def _row(card: OwnRateCard, day: str) -> dict[str, str]:
    return {
        "ProviderName": PROVIDER,
        "PublisherName": PROVIDER,
        "InvoiceIssuerName": PROVIDER,
        "BillingAccountId": "own-hardware",
        "BillingAccountName": PROVIDER,
        "ChargePeriodStart": f"{day}T00:00:00Z",
        "ChargePeriodEnd": _next_day(day),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "BillingCurrency": card.currency,
        "PricingCategory": "Other",
        "ServiceName": SERVICE,
        "ServiceCategory": "Compute",
    }


def _next_day(day: str) -> str:
    return f"{date.fromisoformat(day) + timedelta(days=1)}T00:00:00Z"


def _costed(amount: Decimal, quantity: Decimal, unit: str) -> dict[str, str]:
    text = format(quantise_money(amount), "f")
    names = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
    return {
        **dict.fromkeys(names, text),
        "PricingQuantity": format(quantity, "f"),
        "PricingUnit": unit,
        "ConsumedQuantity": format(quantity, "f"),
        "ConsumedUnit": unit,
    }


def _tags(one: MeteredDay) -> dict[str, str]:
    tags = {"site": one.site, "run": one.run_key, "project": one.project}
    return {key: text for key, text in tags.items() if text}
