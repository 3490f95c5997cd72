"""What an hour of an own accelerator costs, part by part; no price book, no energy accounting."""

from dataclasses import dataclass
from decimal import Decimal

from formulae.money import Money, divide, sum_money
from formulae.units import (
    EXACT,
    HOURS_PER_YEAR,
    QuantityError,
    require_positive,
    require_range,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPremisesPrice:
    """Price of one used accelerator-hour: three rounded parts, and their exact sum."""

    capital: Money
    electricity: Money
    staff: Money
    total: Money


def capital_per_accelerator_h(
    capital: Money,
    *,
    life_years: Decimal,
    utilisation_fraction: Decimal,
    residual_fraction: Decimal = Decimal(0),
) -> Money:
    """Share of the purchase that one used accelerator-hour carries, straight line.

    capital * (1 - residual) / (life * 8760 * utilisation)

    Args:
        capital: paid for one accelerator with its share of server, network, racks.
        life_years: written off over, years of 8760 h, > 0.
        utilisation_fraction: used share of all hours, above 0, at most 1.
        residual_fraction: share of the capital left at the end, 0 to 1.

    Returns:
        Money per used accelerator-hour, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: straight-line depreciation, IAS 16, paragraph 62.

    >>> capital_per_accelerator_h(
    ...     Money.of(43_800, "USD"), life_years=Decimal(5), utilisation_fraction=Decimal("0.8")
    ... ) == Money.of("1.25", "USD")
    True
    """
    require_range("capital", float(capital.amount), low=0)
    require_positive("life_years (years)", float(life_years))
    require_positive("utilisation_fraction", float(utilisation_fraction), high=1)
    require_range("residual_fraction", float(residual_fraction), low=0, high=1)
    written_off = EXACT.multiply(capital.amount, EXACT.subtract(Decimal(1), residual_fraction))
    owned_h = EXACT.multiply(life_years, Decimal(HOURS_PER_YEAR))
    amount = divide(written_off, EXACT.multiply(owned_h, utilisation_fraction))
    if amount is None:
        raise QuantityError("life_years * utilisation_fraction is too small to divide by")
    return Money(amount=amount, currency=capital.currency)


def electricity_per_accelerator_h(
    price_per_kwh: Money, *, power_w: Decimal, host_factor: Decimal, pue: Decimal
) -> Money:
    """Electricity of one used accelerator-hour, with its share of server and building.

    price * power / 1000 * host factor * PUE

    Args:
        price_per_kwh: money per kWh at the meter of the building.
        power_w: mean power of the accelerator while used, W, >= 0.
        host_factor: IT power over accelerator power, >= 1.
        pue: facility power over IT power, >= 1.

    Returns:
        Money per used accelerator-hour, rounded once, half-even to 18 decimals.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: ISO/IEC 30134-2 (PUE); the boundaries of the energy chapter.

    >>> electricity_per_accelerator_h(
    ...     Money.of("0.10", "USD"),
    ...     power_w=Decimal(700),
    ...     host_factor=Decimal("1.5"),
    ...     pue=Decimal("1.2"),
    ... ) == Money.of("0.126", "USD")
    True
    """
    require_range("price_per_kwh", float(price_per_kwh.amount), low=0)
    require_range("power_w (W)", float(power_w), low=0)
    require_range("host_factor", float(host_factor), low=1)
    require_range("pue", float(pue), low=1)
    facility_w = EXACT.multiply(EXACT.multiply(power_w, host_factor), pue)
    return price_per_kwh.times(EXACT.scaleb(facility_w, -3))


def on_premises_price(*, capital: Money, electricity: Money, staff: Money) -> OnPremisesPrice:
    """Price of one used accelerator-hour of own hardware.

    price = capital + electricity + staff, each per used accelerator-hour

    Args:
        capital: see `capital_per_accelerator_h`.
        electricity: see `electricity_per_accelerator_h`.
        staff: people, space and support, money per used accelerator-hour, >= 0.

    Returns:
        The three parts and their exact sum; nothing is rounded here.

    Raises:
        QuantityError: a part is negative.
        CurrencyMismatchError: the parts are in several currencies.

    Source: total cost of ownership; idle hours weigh through the utilisation of the capital, their
        electricity is not counted.

    >>> price = on_premises_price(
    ...     capital=Money.of("1.25", "USD"),
    ...     electricity=Money.of("0.126", "USD"),
    ...     staff=Money.of("0.10", "USD"),
    ... )
    >>> price.total == Money.of("1.476", "USD")
    True
    """
    for name, part in (("capital", capital), ("electricity", electricity), ("staff", staff)):
        require_range(f"{name} per accelerator-hour", float(part.amount), low=0)
    total = sum_money((capital, electricity, staff), currency=capital.currency)
    return OnPremisesPrice(capital=capital, electricity=electricity, staff=staff, total=total)
