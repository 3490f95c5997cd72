"""The price of an hour of own hardware from what it cost, in the plan's currency."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from formulae.money import Money, MoneyError
from formulae.on_premises import (
    OnPremisesPrice,
    capital_per_accelerator_h,
    electricity_per_accelerator_h,
    on_premises_price,
)
from formulae.units import QuantityError
from planning.bill_prices import BillTerms, Priced, in_plan_currency, price_of
from planning.whole_bill import BillFinding
from planning.whole_bill_spec import OnPremisesSpec, WholeBillError

_WHERE = "on_premises"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPower:
    """What one used accelerator draws: its mean power, and the factors up to the meter."""

    power_w: float | None
    host_factor: float | None
    pue: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHardware:
    """The price of a used accelerator-hour in its parts, or None with what is missing."""

    price: OnPremisesPrice | None
    sources: tuple[str, ...]
    missing: tuple[BillFinding, ...]
    findings: tuple[BillFinding, ...]


def own_hardware(
    organisation_id: UUID, spec: OnPremisesSpec, terms: BillTerms, power: OwnPower
) -> OwnHardware:
    """Price an hour of own hardware.

    Args:
        organisation_id: whose price books and exchange rates are read.
        spec: the checked shape; electricity without a price takes the book's.
        terms: the plan's currency and day of prices.
        power: of the accelerator while it computes; an unknown factor leaves the price unknown.

    Raises:
        WholeBillError: a factor is out of range, or an amount too large to be money.
    """
    capital = in_plan_currency(
        organisation_id,
        terms,
        spec.capital_per_accelerator.money(),
        source=_("stated in the plan"),
    )
    electricity = price_of(
        organisation_id,
        terms,
        stated=None if spec.electricity_per_kwh is None else spec.electricity_per_kwh.money(),
        cost_class="electricity",
        unit="kwh",
    )
    staff = _staff(organisation_id, spec, terms)
    missing = _missing(power, capital, electricity, staff)
    price = None
    if not missing:
        try:
            price = _price(spec, power, (capital, electricity, staff))
        except (QuantityError, MoneyError) as error:
            raise WholeBillError({_WHERE: str(error)}) from error
    return OwnHardware(
        price=price,
        sources=tuple(
            f"{part.source} {part.note}".strip() for part in (capital, electricity, staff)
        ),
        missing=missing,
        findings=_findings(spec),
    )


def _staff(organisation_id: UUID, spec: OnPremisesSpec, terms: BillTerms) -> Priced:
    """People and space an hour; none where the plan states none, and a finding says so."""
    if spec.staff_per_accelerator_h is None:
        return Priced(price=Money.of(0, terms.currency), source=_("none stated"))
    stated = spec.staff_per_accelerator_h.money()
    return in_plan_currency(organisation_id, terms, stated, source=_("stated in the plan"))


def _price(
    spec: OnPremisesSpec, power: OwnPower, parts: tuple[Priced, Priced, Priced]
) -> OnPremisesPrice | None:
    """The parts put together; all of them are known here."""
    capital, electricity, staff = (part.price for part in parts)
    if capital is None or electricity is None or staff is None:
        return None
    if power.power_w is None or power.host_factor is None or power.pue is None:
        return None
    return on_premises_price(
        capital=capital_per_accelerator_h(
            capital,
            life_years=spec.life_years,
            utilisation_fraction=spec.utilisation_fraction,
            residual_fraction=spec.residual_fraction,
        ),
        electricity=electricity_per_accelerator_h(
            electricity,
            power_w=_exact(power.power_w),
            host_factor=_exact(power.host_factor),
            pue=_exact(power.pue),
        ),
        staff=staff,
    )


def _missing(power: OwnPower, *parts: Priced) -> tuple[BillFinding, ...]:
    """What keeps the price from being known."""
    names = {
        "power_w": _("The power of the accelerator is not known: state it in watts."),
        "host_factor": _("The host factor is not known: state IT power over accelerator power."),
        "pue": _("The PUE of the place is not known: state facility power over IT power."),
    }
    unknown = [
        BillFinding(code=f"{field}_missing", where=_WHERE, message=message)
        for field, message in names.items()
        if getattr(power, field) is None
    ]
    return (
        *unknown,
        *(
            BillFinding(code=part.missing_code, where=_WHERE, message=part.missing)
            for part in parts
            if part.missing
        ),
    )


def _findings(spec: OnPremisesSpec) -> tuple[BillFinding, ...]:
    """What the price leaves out."""
    if spec.staff_per_accelerator_h is not None:
        return ()
    message = _(
        "No staff, space or support is stated: the price of own hardware holds capital and "
        "electricity only."
    )
    return (BillFinding(code="staff_not_stated", where=_WHERE, message=message),)


def _exact(value: float) -> Decimal:
    """The shortest decimal that reads back as the number: 1.2 stays 1.2."""
    return Decimal(repr(float(value)))
