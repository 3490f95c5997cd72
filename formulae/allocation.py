"""Splits of a whole into parts that sum to it, by largest remainder; not who gets what."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from formulae.units import EXACT

Weight = int | float | Decimal


class AllocationError(ValueError):
    """A whole or weights that cannot be split."""


class NothingToAllocateByError(AllocationError):
    """No weight is above zero, so all stays unallocated; the caller says where it goes."""


def split(total: Decimal, weights: Sequence[Weight], *, quantum: Decimal) -> list[Decimal]:
    """Split an amount by weights into parts that sum to it exactly.

    part_i = quantum * (floor(total / quantum * w_i / W) + 1 for the largest remainders)

    Args:
        total: finite, any sign, a whole number of quanta.
        weights: finite, >= 0, at least one above 0; any unit, the same for all.
        quantum: smallest part, > 0, such as 0.01 or 1E-18.

    Returns:
        One part per weight, in order; equal remainders favour the earlier weight.

    Raises:
        AllocationError: total, quantum or a weight is out of range.
        NothingToAllocateByError: no weight is above zero.

    Source: largest remainder (Hamilton's method), Balinski and Young, Fair Representation, 1982,
    chapter 3.

    >>> split(Decimal("100.00"), [1, 1, 1], quantum=Decimal("0.01"))
    [Decimal('33.34'), Decimal('33.33'), Decimal('33.33')]
    """
    if not quantum.is_finite() or quantum <= 0:
        raise AllocationError(f"the quantum is {quantum}; it must be finite and above 0")
    if not total.is_finite():
        raise AllocationError(f"the total is {total}; it must be finite")
    quanta = Fraction(total) / Fraction(quantum)
    if quanta.denominator != 1:
        raise AllocationError(f"{total} is not a whole number of {quantum}; round it first")
    return [EXACT.multiply(Decimal(part), quantum) for part in split_integer(int(quanta), weights)]


def split_integer(total: int, weights: Sequence[Weight]) -> list[int]:
    """Split a whole number, such as millijoules, by weights into parts that sum to it exactly.

    part_i = floor(total * w_i / W) + 1 for the largest remainders

    Args:
        total: any sign; a negative total splits as its positive twin, negated.
        weights: finite, >= 0, at least one above 0; any unit, the same for all.

    Returns:
        One part per weight, in order; equal remainders favour the earlier weight.

    Raises:
        AllocationError: a weight is negative or not finite.
        NothingToAllocateByError: no weight is above zero.

    Source: largest remainder (Hamilton's method), Balinski and Young, Fair Representation, 1982,
    chapter 3.

    >>> split_integer(10, [6, 3, 1]), split_integer(-7, [1, 1])
    ([6, 3, 1], [-4, -3])
    """
    scaled = _integer_weights(weights)
    whole = sum(scaled)
    if whole == 0:
        raise NothingToAllocateByError("no weight is above zero: all of it stays unallocated")
    shares = [divmod(abs(total) * weight, whole) for weight in scaled]
    parts = [floor for floor, _ in shares]
    by_remainder = sorted(range(len(shares)), key=lambda index: -shares[index][1])
    for index in by_remainder[: abs(total) - sum(parts)]:
        parts[index] += 1
    return parts if total >= 0 else [-part for part in parts]


def _integer_weights(weights: Sequence[Weight]) -> list[int]:
    """The weights over their common denominator, so that no share is rounded twice."""
    if all(type(weight) is int and weight >= 0 for weight in weights):
        return [int(weight) for weight in weights]
    for weight in weights:
        if not math.isfinite(weight) or weight < 0:
            raise AllocationError(f"a weight is {weight}; weights must be finite and at least 0")
    fractions = [Fraction(weight) for weight in weights]
    common = math.lcm(*(fraction.denominator for fraction in fractions))
    return [fraction.numerator * (common // fraction.denominator) for fraction in fractions]
