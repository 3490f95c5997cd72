"""An hour of own hardware: each part exact, the whole the sum of the parts."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import on_premises
from formulae.money import CurrencyMismatchError, Money
from formulae.units import QuantityError


def usd(amount: str | int) -> Money:
    return Money.of(amount, "USD")


def capital(**fields: Decimal) -> Money:
    asked = {"life_years": Decimal(5), "utilisation_fraction": Decimal("0.8")} | fields
    return on_premises.capital_per_accelerator_h(usd(43_800), **asked)


def electricity(**fields: Decimal) -> Money:
    asked = {"power_w": Decimal(700), "host_factor": Decimal("1.5"), "pue": Decimal("1.2")} | fields
    return on_premises.electricity_per_accelerator_h(usd("0.10"), **asked)


def test_capital_is_spread_over_the_used_hours_of_its_life() -> None:
    assert capital() == usd("1.25")
    assert capital(utilisation_fraction=Decimal(1)) == usd("1.00")
    assert capital(residual_fraction=Decimal("0.2")) == usd("1.00")
    assert capital(life_years=Decimal("2.5")) == usd("2.50")


def test_electricity_is_that_of_the_building() -> None:
    assert electricity() == usd("0.126")


def test_capital_that_does_not_divide_is_rounded_half_even_to_18_decimals() -> None:
    price = on_premises.capital_per_accelerator_h(
        usd(1), life_years=Decimal(3), utilisation_fraction=Decimal(1)
    )
    assert price.amount == Decimal("0.000038051750380518")


@given(parts=st.tuples(*[st.decimals(min_value=0, max_value=1_000, places=18) for _ in range(3)]))
def test_the_parts_sum_to_the_price(parts: tuple[Decimal, Decimal, Decimal]) -> None:
    first, second, third = (Money(amount=part, currency="USD") for part in parts)
    price = on_premises.on_premises_price(capital=first, electricity=second, staff=third)
    assert price.total == first + second + third


def test_parts_in_two_currencies_are_refused() -> None:
    with pytest.raises(CurrencyMismatchError):
        on_premises.on_premises_price(capital=usd(1), electricity=Money.of(1, "EUR"), staff=usd(1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("life_years", "0"),
        ("utilisation_fraction", "0"),
        ("utilisation_fraction", "80"),
        ("residual_fraction", "1.1"),
        ("residual_fraction", "-0.1"),
    ],
)
def test_capital_out_of_range_names_its_field(field: str, value: str) -> None:
    with pytest.raises(QuantityError, match=field):
        capital(**{field: Decimal(value)})


@pytest.mark.parametrize(
    ("field", "value"), [("power_w", "-1"), ("host_factor", "0.9"), ("pue", "0.99")]
)
def test_electricity_out_of_range_names_its_field(field: str, value: str) -> None:
    with pytest.raises(QuantityError, match=field):
        electricity(**{field: Decimal(value)})


def test_a_negative_staff_share_is_refused() -> None:
    with pytest.raises(QuantityError, match="staff"):
        on_premises.on_premises_price(capital=usd(1), electricity=usd(1), staff=usd(-1))
