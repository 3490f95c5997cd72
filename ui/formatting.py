"""Quantities as text that readers of English or Chinese expect; the markup is in templatetags."""

import datetime as dt
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from babel.core import Locale
from babel.dates import format_date, format_datetime
from babel.numbers import (
    format_compact_currency,
    format_compact_decimal,
    format_currency,
    format_decimal,
    format_percent,
    get_currency_precision,
    get_decimal_symbol,
)

NO_BREAK: Final = "\u00a0"
_BABEL_LOCALES: Final = {"zh-hans": "zh_CN", "zh-cn": "zh_CN", "zh": "zh_CN"}

Number = int | float | Decimal | str
Ladder = tuple[tuple[Decimal, str], ...]

# (size of one unit in the base unit, its symbol), largest first.
ENERGY_KWH: Final[Ladder] = (
    (Decimal(1_000_000), "GWh"),
    (Decimal(1000), "MWh"),
    (Decimal(1), "kWh"),
    (Decimal("0.001"), "Wh"),
)
CARBON_KG: Final[Ladder] = (
    (Decimal(1_000_000), "kt CO₂e"),
    (Decimal(1000), "t CO₂e"),
    (Decimal(1), "kg CO₂e"),
    (Decimal("0.001"), "g CO₂e"),
)
POWER_W: Final[Ladder] = (
    (Decimal(1_000_000), "MW"),
    (Decimal(1000), "kW"),
    (Decimal(1), "W"),
)
DATA_BYTES: Final[Ladder] = (
    (Decimal(10) ** 15, "PB"),
    (Decimal(10) ** 12, "TB"),
    (Decimal(10) ** 9, "GB"),
    (Decimal(10) ** 6, "MB"),
    (Decimal(10) ** 3, "kB"),
    (Decimal(1), "B"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A quantity ready for a page: what is read, its unit, and the exact value behind it."""

    number: str
    unit: str
    exact: str

    @property
    def text(self) -> str:
        return f"{self.number}{NO_BREAK}{self.unit}" if self.unit else self.number


def babel_locale(language: str | None) -> Locale:
    """Babel's locale for one of Django's language codes."""
    code = (language or "en").lower()
    return Locale.parse(_BABEL_LOCALES.get(code, code.split("-")[0]))


def exact_decimal(value: Number) -> Decimal:
    """The value as Decimal without a float's binary tail: 0.1 becomes 0.1."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def plain_digits(value: Decimal) -> str:
    """All digits, no exponent, no trailing zeros: what a spreadsheet can read back."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if text not in ("-0", "") else "0"


def exact_text(value: Decimal, locale: Locale) -> str:
    """All digits, the whole part grouped as the locale does: 2,812,465.4385."""
    whole, _, part = plain_digits(abs(value)).partition(".")
    grouped = format_decimal(int(whole), format=_pattern(0), locale=locale)
    sign = "-" if value < 0 else ""
    return f"{sign}{grouped}{get_decimal_symbol(locale)}{part}" if part else f"{sign}{grouped}"


def _pattern(digits: int) -> str:
    return "#,##0" + ("." + "0" * digits if digits else "")


def readable_digits(value: Decimal) -> int:
    """Decimals that keep about four significant digits."""
    size = abs(value)
    if size >= 1000 or size == 0:
        return 0
    if size >= 100:
        return 1
    if size >= 1:
        return 2
    return min(6, 2 - size.adjusted())


def decimal_text(value: Number, locale: Locale, *, digits: int | None = None) -> str:
    """A grouped number; without `digits`, about four significant ones."""
    exact = exact_decimal(value)
    places = readable_digits(exact) if digits is None else digits
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    return format_decimal(rounded, format=_pattern(places), locale=locale)


def scaled(
    value: Number, locale: Locale, ladder: Ladder, *, unit: str = "", digits: int | None = None
) -> Shown:
    """The value on the rung of its unit ladder that reads best, or on the rung named `unit`."""
    exact = exact_decimal(value)
    base = next(symbol for size, symbol in ladder if size == 1)
    size, symbol = next(
        (rung for rung in ladder if rung[1] == unit or (not unit and abs(exact) >= rung[0])),
        (Decimal(1), base),
    )
    return Shown(
        number=decimal_text(exact / size, locale, digits=digits),
        unit=symbol,
        exact=f"{plain_digits(exact)} {base}",
    )


def money_text(
    amount: Decimal | int | str,
    currency: str,
    locale: Locale,
    *,
    compact: bool = False,
    digits: int | None = None,
) -> str:
    """An amount of money in its currency, rounded half-even only here.

    Amounts that two decimals would show as zero keep two significant digits instead.
    """
    if isinstance(amount, float):
        raise TypeError("Money is a Decimal with a currency; a float lost its cents already")
    exact = Decimal(amount)
    if compact and abs(exact) >= 1000:
        return str(
            format_compact_currency(
                exact, currency, locale=locale, fraction_digits=2 if digits is None else digits
            )
        )
    places = get_currency_precision(currency) if digits is None else digits
    if digits is None and exact and abs(exact) < Decimal("0.5").scaleb(-places):
        places = min(12, 1 - exact.adjusted())
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    pattern = locale.currency_formats["standard"].pattern.split(";")[0]
    whole, _, _ = pattern.partition(".")
    number = "." + "0" * places if places else ""
    tail = pattern.rpartition("0")[2]
    return format_currency(
        rounded, currency, format=whole + number + tail, locale=locale, currency_digits=False
    )


def count_text(value: Number, locale: Locale, *, compact: bool = False) -> str:
    """A whole count, grouped; compact says 10T in English and 10万亿 in Chinese."""
    exact = exact_decimal(value)
    if compact and abs(exact) >= 1000:
        return format_compact_decimal(exact, locale=locale, fraction_digits=2)
    return decimal_text(exact, locale, digits=0)


def percent_text(fraction: Number, locale: Locale, *, digits: int = 1, signed: bool = False) -> str:
    """A fraction of 0..1 as percent."""
    pattern = "#,##0" + ("." + "0" * digits if digits else "") + "%"
    text = format_percent(exact_decimal(fraction), format=pattern, locale=locale)
    return f"+{text}" if signed and exact_decimal(fraction) > 0 else text


def date_text(value: dt.date | dt.datetime, locale: Locale) -> str:
    """A day, or an instant in UTC that says so."""
    if isinstance(value, dt.datetime):
        instant = value.astimezone(dt.UTC)
        pattern = "y年M月d日 HH:mm" if locale.language == "zh" else "d MMM y, HH:mm"
        return f"{format_datetime(instant, pattern, locale=locale)}{NO_BREAK}UTC"
    pattern = "y年M月d日" if locale.language == "zh" else "d MMM y"
    return format_date(value, pattern, locale=locale)


def power_of_ten_text(value: Number, *, digits: int = 2) -> str:
    """Scientific notation with real superscripts: 6.00 × 10²³."""
    exact = exact_decimal(value)
    exponent = exact.adjusted() if exact else 0
    mantissa = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits))
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}{NO_BREAK}×{NO_BREAK}10{raised}"
