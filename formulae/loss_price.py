"""What lost accelerator time costs in money, energy and emissions; not why it was lost."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from formulae.money import multiply, quantise_money
from formulae.units import EXACT, MONEY_DECIMALS, QuantityError

_ONE: Final = Decimal(1)
_G_PER_KG: Final = Decimal(1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPrice:
    """What a loss costs; None where an input is not known: not priced, which is not free."""

    cost: Decimal | None
    facility_kwh: Decimal | None
    kgco2e: Decimal | None


def lost_accelerator_h(
    *,
    accelerators: int,
    hours: Decimal,
    rate: Decimal = Decimal(0),
    baseline: Decimal = _ONE,
) -> Decimal:
    """The accelerator-hours that a standstill or a slow stretch takes from training.

    lost = accelerators * hours * max(0, 1 - rate / baseline)

    Args:
        accelerators: count, >= 0.
        hours: how long, h, >= 0.
        rate: of work in that time, such as tokens per second or MFU, >= 0; 0 is a standstill.
        baseline: the rate without the loss, in the same unit, > 0.

    Returns:
        Accelerator-hours to 18 decimals; 0 where the rate was at least the baseline.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: own rule; the integral of max(0, 1 - rate / baseline) dt at a constant rate.

    >>> lost_accelerator_h(accelerators=256, hours=Decimal(1)) == 256
    True
    >>> mfu = {"rate": Decimal("0.35"), "baseline": Decimal("0.55")}
    >>> round(lost_accelerator_h(accelerators=256, hours=Decimal(6), **mfu), 1)
    Decimal('558.5')
    """
    if min(Decimal(accelerators), hours, rate) < 0 or baseline <= 0:
        raise QuantityError(
            f"{accelerators} accelerators, {hours} h, rate {rate} of {baseline}; "
            "all must be at least 0, the baseline above 0"
        )
    share = max(Fraction(0), 1 - Fraction(rate) / Fraction(baseline))
    lost = accelerators * Fraction(hours) * share
    scaled = Decimal(round(lost * 10**MONEY_DECIMALS))
    return quantise_money(EXACT.scaleb(scaled, -MONEY_DECIMALS))


def price_of_loss(
    *,
    lost_accelerator_h: Decimal,
    price_per_accelerator_h: Decimal | None,
    accelerator_kw: Decimal | None,
    host_factor: Decimal | None,
    pue: Decimal | None,
    intensity_g_per_kwh: Decimal | None,
) -> LossPrice:
    """The money, the facility energy and the emissions of lost accelerator-hours.

    cost = h * price; kWh = h * kW * host factor * PUE; kg = kWh * intensity / 1000

    Args:
        lost_accelerator_h: h, >= 0.
        price_per_accelerator_h: the contract rate in force at that time, money/h.
        accelerator_kw: power drawn by one accelerator in that time, metered where it can be, kW.
        host_factor: IT energy over accelerator energy, ratio, >= 1.
        pue: facility energy over IT energy, ratio, >= 1.
        intensity_g_per_kwh: of the grid at that time, g/kWh, >= 0.

    Returns:
        Each to 18 decimals, and None where one of its inputs is: never 0.

    Raises:
        QuantityError: the lost hours are below 0.

    Source: own rule; GHG Protocol Scope 2 Guidance 2015 (location-based), ISO/IEC 30134-2 (PUE).

    >>> lost = price_of_loss(lost_accelerator_h=Decimal(256),
    ...     price_per_accelerator_h=Decimal("2.50"), accelerator_kw=Decimal("0.65"),
    ...     host_factor=Decimal(1), pue=Decimal("1.2"), intensity_g_per_kwh=Decimal(400))
    >>> print(f"{lost.cost:.2f} {lost.facility_kwh:.2f} {lost.kgco2e:.2f}")
    640.00 199.68 79.87
    """
    if lost_accelerator_h < 0:
        raise QuantityError(f"{lost_accelerator_h} h are lost; it must be at least 0")
    kwh = _product(lost_accelerator_h, accelerator_kw, host_factor, pue)
    grams = _product(lost_accelerator_h, accelerator_kw, host_factor, pue, intensity_g_per_kwh)
    return LossPrice(
        cost=_product(lost_accelerator_h, price_per_accelerator_h),
        facility_kwh=kwh,
        kgco2e=None if grams is None else quantise_money(EXACT.divide(grams, _G_PER_KG)),
    )


def _product(first: Decimal, *factors: Decimal | None) -> Decimal | None:
    """The product, rounded once to 18 decimals; None where a factor is."""
    product = first
    for factor in factors:
        if factor is None:
            return None
        product = EXACT.multiply(product, factor)
    return multiply(product, _ONE)
