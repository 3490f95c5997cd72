"""Money: exact decimals that carry their currency; no prices, no exchange."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Final

from formulae.units import EXACT, MONEY_DECIMALS, MONEY_LIMIT, MONEY_QUANTUM, strict_decimal

_CURRENCY: Final = re.compile(r"[A-Z]{3}")


class MoneyError(ValueError):
    """An amount that decimal(38,18) cannot hold exactly, or a currency that is no ISO 4217 code."""


class CurrencyMismatchError(MoneyError):
    """Two currencies in one sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An exact amount of at most 18 decimals, below 1e20, in one ISO 4217 currency.

    >>> Money.of("0.10", "USD") + Money.of("0.20", "USD") == Money.of("0.3", "USD")
    True
    """

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        """Refuse floats, what decimal(38,18) cannot hold, and words that are no currency."""
        if not isinstance(self.amount, Decimal):
            raise MoneyError(
                f"money is built from str, int or Decimal, not {type(self.amount).__name__}"
            )
        if not self.amount.is_finite() or quantise_money(self.amount) != self.amount:
            raise MoneyError(
                f"{self.amount} has more than 18 decimals; round it with quantise_money first"
            )
        if not _CURRENCY.fullmatch(self.currency):
            raise MoneyError(f"{self.currency!r} is not an ISO 4217 currency code such as USD")

    @classmethod
    def of(cls, amount: Decimal | str | int, currency: str) -> "Money":
        """Build money from a Decimal, a plain number as text (rounded half-even past 18 decimals)
        or an int.

        >>> Money.of("-12.50", "EUR")
        Money(amount=Decimal('-12.50'), currency='EUR')
        """
        if isinstance(amount, str):
            return cls(amount=strict_decimal(amount).value, currency=currency)
        if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
            raise MoneyError(
                f"money is built from str, int or Decimal, not {type(amount).__name__}"
            )
        return cls(amount=Decimal(amount), currency=currency)

    def __add__(self, other: "Money") -> "Money":
        """The exact sum; both in one currency."""
        return Money(
            amount=EXACT.add(self.amount, self._same_currency(other).amount), currency=self.currency
        )

    def __sub__(self, other: "Money") -> "Money":
        """The exact difference; both in one currency."""
        return self + -other

    def __neg__(self) -> "Money":
        """The opposite amount."""
        return Money(amount=EXACT.minus(self.amount), currency=self.currency)

    def times(self, factor: Decimal | int) -> "Money":
        """The amount times an exact factor, rounded half-even to 18 decimals.

        >>> Money.of("2.00", "USD").times(Decimal("0.55")).amount == Decimal("1.1")
        True
        """
        return Money(amount=multiply(self.amount, Decimal(factor)), currency=self.currency)

    def ratio_to(self, other: "Money") -> Decimal | None:
        """This amount over another of the same currency, None when the other is zero.

        >>> Money.of(174, "USD").ratio_to(Money.of(100, "USD")) == Decimal("1.74")
        True
        """
        return divide(self.amount, self._same_currency(other).amount)

    def _same_currency(self, other: "Money") -> "Money":
        """Give the other back when it is of this currency."""
        if other.currency != self.currency:
            raise CurrencyMismatchError(
                f"{self.currency} and {other.currency} cannot stand in one sum"
            )
        return other


def sum_money(items: Iterable[Money], *, currency: str) -> Money:
    """Exact sum of amounts of one currency.

    total = sum(amount_i)

    Args:
        items: amounts, all in the currency; may be empty.
        currency: ISO 4217 code of the total.

    Returns:
        The exact total; zero for no items.

    Raises:
        CurrencyMismatchError: an item is in another currency.
        MoneyError: the total reaches 1e20.

    Source: design rule, money is exact and rounded only when shown.

    >>> sum_money([Money.of("0.1", "USD")] * 3, currency="USD") == Money.of("0.3", "USD")
    True
    """
    total = Decimal(0)
    for item in items:
        if item.currency != currency:
            raise CurrencyMismatchError(f"{item.currency} and {currency} cannot stand in one sum")
        total = EXACT.add(total, item.amount)
    return Money(amount=total, currency=currency)


def exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    """Exact sum of plain decimals of one currency; plain `sum` rounds to 28 digits.

    total = sum(amount_i)

    Args:
        amounts: decimals of one currency or unit; may be empty.

    Returns:
        The exact total; zero for none.

    Source: design rule, money is exact and rounded only when shown.

    >>> exact_sum([Decimal("12345678901.000000000000000001"), Decimal("1E-18")])
    Decimal('12345678901.000000000000000002')
    """
    total = Decimal(0)
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


def quantise_money(amount: Decimal) -> Decimal:
    """Round to the 18 decimals that are stored.

    rounded = half-even(amount * 1e18) / 1e18

    Args:
        amount: finite, abs(amount) < 1e20.

    Returns:
        The amount with exactly 18 decimals.

    Raises:
        MoneyError: the amount is not finite or does not stay below 1e20.

    Source: decimal(38,18); IEEE 754-2019, section 4.3.1 (ties to even).

    >>> quantise_money(Decimal("1.0000000000000000005"))
    Decimal('1.000000000000000000')
    """
    if not amount.is_finite() or amount.copy_abs() >= MONEY_LIMIT:
        raise MoneyError(f"{amount} is not a finite amount below 1e20")
    rounded = amount.quantize(MONEY_QUANTUM, rounding=ROUND_HALF_EVEN, context=EXACT)
    if rounded.copy_abs() >= MONEY_LIMIT:
        raise MoneyError(f"{amount} is not a finite amount below 1e20")
    return rounded


def round_half_even(amount: Decimal, *, decimals: int) -> Decimal:
    """Round an amount for showing; stored amounts stay as they are.

    shown = half-even(amount * 10^decimals) / 10^decimals

    Args:
        amount: finite.
        decimals: digits after the point, 0 to 18.

    Returns:
        The amount with that many decimals.

    Raises:
        MoneyError: the amount is not finite, or decimals is out of range.

    Source: IEEE 754-2019, section 4.3.1 (ties to even).

    >>> round_half_even(Decimal("2.345"), decimals=2), round_half_even(Decimal("2.355"), decimals=2)
    (Decimal('2.34'), Decimal('2.36'))
    """
    if not amount.is_finite() or not 0 <= decimals <= MONEY_DECIMALS:
        raise MoneyError(f"cannot show {amount} with {decimals} decimals; use 0 to 18")
    return amount.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN, context=EXACT)


def multiply(first: Decimal, second: Decimal) -> Decimal:
    """Exact product, rounded once.

    product = half-even(first * second, 18 decimals)

    Args:
        first: finite, such as a price per accelerator-hour.
        second: finite, such as a quantity.

    Returns:
        The product with 18 decimals, abs below 1e20.

    Raises:
        MoneyError: a factor is not finite or the product reaches 1e20.

    Source: IEEE 754-2019, section 4.3.1 (one rounding, ties to even).

    >>> multiply(Decimal("2.5"), Decimal("0.02")) == Decimal("0.05")
    True
    """
    return quantise_money(EXACT.multiply(_finite(first), _finite(second)))


def divide(dividend: Decimal, divisor: Decimal) -> Decimal | None:
    """Exact quotient, rounded once.

    quotient = half-even(dividend / divisor, 18 decimals)

    Args:
        dividend: finite.
        divisor: finite.

    Returns:
        The quotient with 18 decimals; None when the divisor is zero.

    Raises:
        MoneyError: an operand is not finite or the quotient reaches 1e20.

    Source: IEEE 754-2019, section 4.3.1 (one rounding, ties to even).

    >>> divide(Decimal(1), Decimal(3))
    Decimal('0.333333333333333333')
    """
    over, under = _fraction(dividend), _fraction(divisor)
    return _from_fraction(over / under) if under else None


def _finite(number: Decimal) -> Decimal:
    """The number, unless it is none."""
    if not number.is_finite():
        raise MoneyError(f"{number} is not a finite number")
    return number


def _fraction(number: Decimal) -> Fraction:
    """The number as an exact fraction."""
    return Fraction(_finite(number))


def _from_fraction(value: Fraction) -> Decimal:
    """The nearest decimal of 18 places; Python rounds a Fraction half-even."""
    if abs(value) >= MONEY_LIMIT:
        raise MoneyError("the amount reaches 1e20 and cannot be stored")
    return quantise_money(EXACT.scaleb(Decimal(round(value * 10**MONEY_DECIMALS)), -MONEY_DECIMALS))
