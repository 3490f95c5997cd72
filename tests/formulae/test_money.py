"""Money is exact, of one currency, and never a float."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import money
from formulae.money import CurrencyMismatchError, Money, MoneyError

amounts = st.decimals(
    min_value=Decimal("-1e17"), max_value=Decimal("1e17"), places=18, allow_nan=False
)


@given(st.lists(amounts, max_size=30))
def test_a_sum_of_money_is_exact_in_any_order(values: list[Decimal]) -> None:
    items = [Money(amount=value, currency="USD") for value in values]
    total = money.sum_money(items, currency="USD")
    assert Fraction(total.amount) == sum(map(Fraction, values))
    assert total == money.sum_money(reversed(items), currency="USD")


@given(amounts, amounts)
def test_what_is_added_can_be_taken_away(first: Decimal, second: Decimal) -> None:
    one, two = Money.of(first, "EUR"), Money.of(second, "EUR")
    assert one + two - two == one
    assert one + -one == Money.of(0, "EUR")


@pytest.mark.parametrize("operate", [Money.__add__, Money.__sub__, Money.ratio_to])
def test_two_currencies_do_not_meet(operate: object) -> None:
    with pytest.raises(CurrencyMismatchError, match="USD and EUR"):
        operate(Money.of(1, "USD"), Money.of(1, "EUR"))  # type: ignore[operator]


def test_a_sum_of_two_currencies_is_refused() -> None:
    with pytest.raises(CurrencyMismatchError):
        money.sum_money([Money.of(1, "USD"), Money.of(1, "EUR")], currency="USD")


def test_a_sum_of_nothing_is_zero_in_the_stated_currency() -> None:
    assert money.sum_money([], currency="CNY") == Money.of(0, "CNY")


@pytest.mark.parametrize("amount", [1.5, True, None, [1]])
def test_money_is_not_built_from_other_types(amount: object) -> None:
    with pytest.raises(MoneyError, match="str, int or Decimal"):
        Money.of(amount, "USD")  # type: ignore[arg-type]


def test_money_refuses_a_float_amount() -> None:
    with pytest.raises(MoneyError, match="float"):
        Money(amount=0.1, currency="USD")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e20", "1e-19", "-1e30"])
def test_money_refuses_what_cannot_be_stored(text: str) -> None:
    with pytest.raises(MoneyError):
        Money(amount=Decimal(text), currency="USD")


@pytest.mark.parametrize("currency", ["usd", "US", "", "USDT", "$", "US1"])
def test_money_refuses_what_is_no_currency_code(currency: str) -> None:
    with pytest.raises(MoneyError, match="ISO 4217"):
        Money.of(1, currency)


def test_a_total_that_reaches_1e20_is_refused() -> None:
    most = Money.of("99999999999999999999", "USD")
    with pytest.raises(MoneyError):
        money.sum_money([most, most], currency="USD")


def test_a_quantised_amount_that_rounds_up_to_1e20_is_refused() -> None:
    with pytest.raises(MoneyError):
        money.quantise_money(Decimal("99999999999999999999.9999999999999999999"))


def test_a_price_times_hours_rounds_once_half_even() -> None:
    price = Money.of("0.000000000000000001", "USD")
    assert price.times(Decimal("0.5")) == Money.of(0, "USD")
    assert price.times(Decimal("1.5")) == Money.of("2e-18", "USD")


@given(amounts, st.decimals(min_value=1, max_value=100, places=6))
def test_a_product_is_within_half_a_quantum_of_the_exact_one(
    amount: Decimal, factor: Decimal
) -> None:
    exact = Fraction(amount) * Fraction(factor)
    assert abs(Fraction(money.multiply(amount, factor)) - exact) <= Fraction(1, 2 * 10**18)


def test_a_ratio_to_zero_is_undefined() -> None:
    assert Money.of(1, "USD").ratio_to(Money.of(0, "USD")) is None
    assert money.divide(Decimal(0), Decimal(0)) is None


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity"])
def test_products_and_quotients_of_what_is_not_finite_are_refused(text: str) -> None:
    with pytest.raises(MoneyError, match="finite"):
        money.multiply(Decimal(text), Decimal(1))
    for dividend, divisor in [(text, "1"), ("1", text)]:
        with pytest.raises(MoneyError, match="finite"):
            money.divide(Decimal(dividend), Decimal(divisor))


MOST = "99999999999999999999.999999999999999999"


def test_the_largest_amount_of_38_digits_is_held_exactly() -> None:
    assert str(Money.of(MOST, "USD").amount) == MOST
    assert str((-Money.of(f"-{MOST}", "USD")).amount) == MOST
    assert str(money.quantise_money(Decimal(MOST))) == MOST


@given(amounts, amounts, st.integers(min_value=1, max_value=12))
def test_a_callers_own_decimal_context_changes_nothing(
    first: Decimal, second: Decimal, precision: int
) -> None:
    one, two = Money.of(first, "USD"), Money.of(second, "USD")
    half = Decimal("0.5")
    with localcontext(prec=precision):
        narrow = (
            one + two,
            one - two,
            one.times(half),
            money.sum_money([one, two], currency="USD"),
        )
    assert narrow == (one + two, one - two, one.times(half), one + two)


def test_a_product_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(MoneyError, match="1e20"):
        money.multiply(Decimal("1e15"), Decimal("1e15"))


@pytest.mark.parametrize(
    ("text", "decimals", "shown"),
    [("0.5", 0, "0"), ("1.5", 0, "2"), ("-2.5", 0, "-2"), ("1.005", 2, "1.00"), ("7", 2, "7.00")],
)
def test_amounts_are_shown_half_even(text: str, decimals: int, shown: str) -> None:
    assert str(money.round_half_even(Decimal(text), decimals=decimals)) == shown


@pytest.mark.parametrize(("text", "decimals"), [("NaN", 2), ("1", 19), ("1", -1)])
def test_showing_refuses_what_it_cannot_round(text: str, decimals: int) -> None:
    with pytest.raises(MoneyError):
        money.round_half_even(Decimal(text), decimals=decimals)
