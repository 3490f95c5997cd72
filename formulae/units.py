"""Exact unit constants, conversions by name and the strict number parsers; no domain formulae."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Final

J_PER_KWH: Final = 3_600_000
MILLIJOULE_PER_J: Final = 1_000
MILLIJOULE_PER_KWH: Final = 3_600_000_000
WH_PER_KWH: Final = 1_000
KWH_PER_MEGAWATT_H: Final = 1_000
MILLIWATT_PER_W: Final = 1_000

MICROSECOND_PER_S: Final = 1_000_000
S_PER_MINUTE: Final = 60
S_PER_HOUR: Final = 3_600
S_PER_DAY: Final = 86_400
HOURS_PER_DAY: Final = 24
HOURS_PER_YEAR: Final = 8_760

G_PER_KG: Final = 1_000
KG_PER_TONNE: Final = 1_000
KG_PER_LB: Final = 0.45359237

FLOP_PER_TFLOP: Final = 1_000_000_000_000

BYTES_PER_GB: Final = 10**9
BYTES_PER_TB: Final = 10**12
BYTES_PER_PB: Final = 10**15
BYTES_PER_GIB: Final = 2**30
BYTES_PER_TIB: Final = 2**40
BYTES_PER_PIB: Final = 2**50

MONEY_DECIMALS: Final = 18
MONEY_QUANTUM: Final = Decimal("1E-18")
MONEY_LIMIT: Final = Decimal("1E20")
# 60 digits of text, 99 places of exponent either way: nothing that the parser admits is rounded by
# this context.
EXACT: Final = Context(prec=300, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])

_DECIMAL_TEXT: Final = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?")
_FLOAT_TEXT: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


class NumberTextError(ValueError):
    """A text that is not one plain, finite ASCII number in range."""


class QuantityError(ValueError):
    """A quantity outside the range in which its formula has a meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDecimal:
    """A parsed amount of at most 18 decimals, and whether the text held more than those."""

    value: Decimal
    digits_lost: bool


def strict_decimal(text: str) -> ParsedDecimal:
    """Read one plain ASCII number of money; the only door from text to money.

    value = text rounded half-even to 18 decimals, when abs(value) < 1e20

    Args:
        text: such as ``-12.50`` or ``1.2e-7``; no sign ``+``, blanks, separators or words.

    Returns:
        The value (minus zero reads as zero) and whether non-zero digits were rounded away.

    Raises:
        NumberTextError: the text is no such number, or too large for decimal(38,18).

    Source: decimal(38,18), the width of stored money; half-even is IEEE 754-2019, section 4.3.1.

    >>> strict_decimal("1.2e-7")
    ParsedDecimal(value=Decimal('1.2E-7'), digits_lost=False)
    >>> strict_decimal("0.0000000000000000015")
    ParsedDecimal(value=Decimal('2E-18'), digits_lost=True)
    """
    if not _DECIMAL_TEXT.fullmatch(text):
        raise NumberTextError(
            f"{text[:60]!r} is not a plain number; "
            "write digits with a point, as in -12.50 or 1.2e-7"
        )
    exact = Decimal(text)
    value, digits_lost = exact, False
    exponent = int(exact.as_tuple().exponent)
    if exponent > 0 and exact.copy_abs() < MONEY_LIMIT:
        value = exact.quantize(Decimal(1), context=EXACT)
    elif exponent < -MONEY_DECIMALS:
        value = exact.quantize(MONEY_QUANTUM, context=EXACT)
        digits_lost = value != exact
    if value.copy_abs() >= MONEY_LIMIT:
        raise NumberTextError(f"{text[:60]!r} is too large for money; it must lie below 1e20")
    return ParsedDecimal(value=value.copy_abs() if value == 0 else value, digits_lost=digits_lost)


def strict_float(text: str) -> float:
    """Read one plain finite ASCII number of a physical quantity.

    value = the IEEE 754 double nearest to the text

    Args:
        text: such as ``650``, ``0.42`` or ``9.894e14``; no sign ``+``, blanks, separators, nan or
            inf.

    Returns:
        The finite value, in the unit that the caller knows.

    Raises:
        NumberTextError: the text is no such number, or too large for a double.

    Source: IEEE 754-2019, section 5.12.

    >>> strict_float("9.894e14")
    989400000000000.0
    """
    if not _FLOAT_TEXT.fullmatch(text):
        raise NumberTextError(
            f"{text[:60]!r} is not a plain number; write digits with a point, as in 650.5"
        )
    value = float(text)
    if not math.isfinite(value):
        raise NumberTextError(f"{text[:60]!r} is too large for a number")
    return value


def require_range(name: str, value: float, *, low: float, high: float = math.inf) -> float:
    """Give the value back when it is finite and low <= value <= high.

    Args:
        name: the quantity with its unit, for the message.
        value: in that unit.
        low: smallest admitted value.
        high: largest admitted value; infinite when left out.

    Raises:
        QuantityError: the value is not finite or out of range.

    >>> require_range("pue", 1.2, low=1.0)
    1.2
    """
    if not math.isfinite(value) or not low <= value <= high:
        bounds = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise QuantityError(f"{name} is {value!r}; it must be finite and {bounds}")
    return value


def require_positive(name: str, value: float, *, high: float = math.inf) -> float:
    """Give the value back when it is finite and 0 < value <= high.

    Args:
        name: the quantity with its unit, for the message.
        value: in that unit.
        high: largest admitted value; infinite when left out.

    Raises:
        QuantityError: the value is not finite or out of range.

    >>> require_positive("mfu", 0.55, high=1.0)
    0.55
    """
    if not math.isfinite(value) or not 0 < value <= high:
        bounds = "" if high == math.inf else f" and at most {high:g}"
        raise QuantityError(f"{name} is {value!r}; it must be finite, above 0{bounds}")
    return value


def kwh_from_millijoule(energy_millijoule: int) -> float:
    """Energy in kWh; kWh = mJ / 3.6e9 (1 kWh is 3.6e9 mJ exactly; SI Brochure, 9th edition, table
    8).

    >>> kwh_from_millijoule(2_340_000_000)
    0.65
    """
    return energy_millijoule / MILLIJOULE_PER_KWH


def millijoule_from_kwh(energy_kwh: float) -> int:
    """Energy in whole mJ, half-even; mJ = kWh * 3.6e9 (SI Brochure, 9th edition, table 8).

    >>> millijoule_from_kwh(0.65)
    2340000000
    """
    return round(energy_kwh * MILLIJOULE_PER_KWH)


def millijoule_from_j(energy_j: float) -> int:
    """Energy in whole mJ, half-even; mJ = J * 1000 (SI Brochure, 9th edition, table 7).

    >>> millijoule_from_j(1.5)
    1500
    """
    return round(energy_j * MILLIJOULE_PER_J)


def kwh_from_j(energy_j: float) -> float:
    """Energy in kWh; kWh = J / 3.6e6 (SI Brochure, 9th edition, table 8).

    >>> kwh_from_j(1_800_000)
    0.5
    """
    return energy_j / J_PER_KWH


def kwh_from_wh(energy_wh: float) -> float:
    """Energy in kWh; kWh = Wh / 1000 (SI Brochure, 9th edition, table 7).

    >>> kwh_from_wh(650)
    0.65
    """
    return energy_wh / WH_PER_KWH


def kwh_from_megawatt_h(energy_megawatt_h: float) -> float:
    """Energy in kWh; kWh = MW h * 1000 (SI Brochure, 9th edition, table 7).

    >>> kwh_from_megawatt_h(433.196)
    433196.0
    """
    return energy_megawatt_h * KWH_PER_MEGAWATT_H


def w_from_milliwatt(power_milliwatt: float) -> float:
    """Power in W; W = milliwatt / 1000 (NVML reports milliwatt; SI Brochure, 9th edition, table 7).

    >>> w_from_milliwatt(700_000)
    700.0
    """
    return power_milliwatt / MILLIWATT_PER_W


def g_per_kwh_from_lb_per_megawatt_h(lb_per_megawatt_h: float) -> float:
    """Emission factor in g/kWh; g/kWh = lb/MWh * 0.45359237 (international pound, 1959; used by
    eGRID).

    >>> round(g_per_kwh_from_lb_per_megawatt_h(870), 1)
    394.6
    """
    return lb_per_megawatt_h * KG_PER_LB


def g_per_kwh_from_kg_per_kwh(kg_per_kwh: float) -> float:
    """Emission factor in g/kWh; g/kWh = kg/kWh * 1000 (SI Brochure, 9th edition, table 7).

    >>> g_per_kwh_from_kg_per_kwh(0.5)
    500.0
    """
    return kg_per_kwh * G_PER_KG


def kg_from_g(mass_g: float) -> float:
    """Mass in kg; kg = g / 1000 (SI Brochure, 9th edition, table 7).

    >>> kg_from_g(79_872)
    79.872
    """
    return mass_g / G_PER_KG


def kg_from_tonne(mass_tonne: float) -> float:
    """Mass in kg; kg = t * 1000 (SI Brochure, 9th edition, table 8).

    >>> kg_from_tonne(24.5)
    24500.0
    """
    return mass_tonne * KG_PER_TONNE


def tonne_from_kg(mass_kg: float) -> float:
    """Mass in t; t = kg / 1000 (SI Brochure, 9th edition, table 8).

    >>> tonne_from_kg(184_000)
    184.0
    """
    return mass_kg / KG_PER_TONNE


def hours_from_s(duration_s: float) -> float:
    """Duration in h; h = s / 3600 (SI Brochure, 9th edition, table 8).

    >>> hours_from_s(5_400)
    1.5
    """
    return duration_s / S_PER_HOUR


def s_from_hours(duration_h: float) -> float:
    """Duration in s; s = h * 3600 (SI Brochure, 9th edition, table 8).

    >>> s_from_hours(1.5)
    5400.0
    """
    return duration_h * S_PER_HOUR


def days_from_hours(duration_h: float) -> float:
    """Duration in days; d = h / 24 (SI Brochure, 9th edition, table 8).

    >>> days_from_hours(36)
    1.5
    """
    return duration_h / HOURS_PER_DAY


def flop_per_s_from_tflop_per_s(tflop_per_s: float) -> float:
    """Rate in FLOP/s; FLOP/s = TFLOP/s * 1e12 (SI Brochure, 9th edition, table 7).

    >>> flop_per_s_from_tflop_per_s(989.5)
    989500000000000.0
    """
    return tflop_per_s * FLOP_PER_TFLOP


def gb_from_bytes(size_bytes: float) -> float:
    """Size in decimal GB; GB = bytes / 1e9 (IEC 80000-13).

    >>> gb_from_bytes(1_500_000_000)
    1.5
    """
    return size_bytes / BYTES_PER_GB


def tb_from_bytes(size_bytes: float) -> float:
    """Size in decimal TB; TB = bytes / 1e12 (IEC 80000-13).

    >>> tb_from_bytes(5_300_000_000_000)
    5.3
    """
    return size_bytes / BYTES_PER_TB


def gib_from_bytes(size_bytes: float) -> float:
    """Size in binary GiB; GiB = bytes / 2^30 (IEC 80000-13).

    >>> gib_from_bytes(1_610_612_736)
    1.5
    """
    return size_bytes / BYTES_PER_GIB


def tib_from_bytes(size_bytes: float) -> float:
    """Size in binary TiB; TiB = bytes / 2^40 (IEC 80000-13).

    >>> tib_from_bytes(2**41)
    2.0
    """
    return size_bytes / BYTES_PER_TIB
