"""Exact products and shares of decimals as Ibis expressions; knows no format and no engine.

Engines overflow or lose digits when two decimal(38, 18) are multiplied, and divide as floats. A
factor is therefore split into nine decimals and an exact rest, a product into a part of 18 decimals
and one below; no step needs more than 38 digits. Factors of 1e9 and more make null.

Ibis takes a product for as narrow as its factors and leaves out a cast to that type: hence casts by
way of another type.
"""

from typing import Any, Final

import ibis

from billing.records import MONEY_TYPE

FACTOR: Final = "decimal(27, 18)"  # below 1e9
_HIGH: Final = "decimal(18, 9)"
_REST: Final = "decimal(18, 18)"  # what nine decimals leave, below 1e-9
_MAIN: Final = "decimal(37, 18)"
_BELOW: Final = "decimal(37, 36)"  # below 10
_LAST_PLACE: Final = "0.000000000000000001"
_HALF_PLACE: Final = "0.0000000000000000005"


def product(left: Any, right: Any) -> Any:
    """Left times right, rounded once, half-even, to 18 decimals; null for factors from 1e9 on."""
    main, below = _product_parts(left.try_cast(FACTOR), right.try_cast(FACTOR))
    rounded = below.cast("decimal(20, 18)")  # halves away from zero
    total = (main + rounded).cast("decimal(38, 18)")
    left_over = below - rounded.cast(_BELOW)
    is_odd = total.cast("string").right(1).isin(list("13579"))
    correction = ibis.cases(
        (is_odd & (left_over == exactly(_HALF_PLACE, _BELOW)), exactly(_LAST_PLACE, _REST)),
        (
            is_odd & (left_over == exactly(f"-{_HALF_PLACE}", _BELOW)),
            exactly(f"-{_LAST_PLACE}", _REST),
        ),
        else_=exactly("0", _REST),
    )
    return (total.cast(_MAIN) + correction).cast(MONEY_TYPE)


def share(amount: Any, part: Any, whole: Any) -> Any:
    """Amount * part / whole to the nearest 18 decimals, halves to either side; null from 1e9 on.

    The quotient is estimated to nine decimals; what the estimate leaves is computed exactly, and
    divided again. Floats only estimate: their errors are below the last place both times, for a
    part that is no greater than its whole.
    """
    amount, part, whole = (value.try_cast(FACTOR) for value in (amount, part, whole))
    divisor = whole.cast("float64").nullif(0)
    estimate = (amount.cast("float64") * part.cast("float64") / divisor).try_cast(_HIGH)
    main, below = _product_parts(amount, part)
    main_seen, below_seen = _product_parts(estimate.cast(FACTOR), whole)
    missing = (main - main_seen).cast("float64") + (below - below_seen).cast("float64")
    return (estimate.cast(_MAIN) + (missing / divisor).try_cast(FACTOR)).cast(MONEY_TYPE)


def _product_parts(left: Any, right: Any) -> tuple[Any, Any]:
    """Two factors' product: its part of 18 decimals, and what stands below, of 36."""
    left_high, right_high = left.try_cast(_HIGH), right.try_cast(_HIGH)
    left_rest, right_rest = (left - left_high).cast(_REST), (right - right_high).cast(_REST)
    below = (left_rest * right_high).cast("decimal(36, 36)")
    below = below + (left_rest * right_rest).cast("decimal(36, 36)")
    below = (left_high * right_rest).cast(_BELOW) + below
    main = (left_high * right_high).cast(_MAIN)
    return main, below.cast("decimal(38, 36)").cast(_BELOW)


def exactly(text: str, type_name: str) -> Any:
    """A decimal constant by way of its text: engines read small numbers as floats."""
    return ibis.literal(text).cast(type_name)
