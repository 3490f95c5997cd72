"""Parts always sum to the whole."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.allocation import (
    AllocationError,
    NothingToAllocateByError,
    split,
    split_integer,
)

CENT = Decimal("0.01")
weights = st.lists(
    st.one_of(
        st.integers(min_value=0, max_value=10**12),
        st.floats(min_value=0, max_value=1e12, allow_nan=False),
        st.decimals(min_value=0, max_value=10**9, places=6),
    ),
    min_size=1,
    max_size=40,
).filter(lambda values: any(value > 0 for value in values))


@given(st.integers(min_value=-(10**30), max_value=10**30), weights)
def test_integer_parts_sum_to_the_whole(total: int, values: list[int]) -> None:
    assert sum(split_integer(total, values)) == total


@given(st.decimals(min_value=-(10**15), max_value=10**15, places=18), weights)
def test_money_parts_sum_to_the_whole(total: Decimal, values: list[int]) -> None:
    parts = split(total, values, quantum=Decimal("1e-18"))
    assert sum(map(Fraction, parts)) == Fraction(total)


@given(st.integers(min_value=0, max_value=10**12), weights)
def test_a_larger_weight_never_gets_less(total: int, values: list[int]) -> None:
    ranked = sorted(zip(values, split_integer(total, values), strict=True), key=lambda pair: pair)
    parts = [part for _, part in ranked]
    assert parts == sorted(parts)


@given(st.integers(min_value=0, max_value=10**12), weights)
def test_each_part_is_within_one_quantum_of_its_share(total: int, values: list[int]) -> None:
    doubled = split_integer(total, values)
    whole = sum(float(value) for value in values)
    for part, value in zip(doubled, values, strict=True):
        assert abs(part - total * float(value) / whole) <= 1 + 1e-9 * total


@given(st.integers(min_value=0, max_value=10**12), weights)
def test_a_negative_whole_splits_as_its_positive_twin(total: int, values: list[int]) -> None:
    assert split_integer(-total, values) == [-part for part in split_integer(total, values)]


@given(st.integers(min_value=-(10**12), max_value=10**12), weights)
def test_a_weight_of_zero_gets_nothing(total: int, values: list[int]) -> None:
    assert split_integer(total, [*values, 0])[-1] == 0


def test_the_rest_goes_to_the_largest_remainders() -> None:
    assert split_integer(10, [1, 1, 1, 7]) == [1, 1, 1, 7]
    assert split(Decimal("1.00"), [50, 30, 19.5, 0.5], quantum=CENT) == [
        Decimal("0.50"),
        Decimal("0.30"),
        Decimal("0.20"),
        Decimal("0.00"),
    ]


@pytest.mark.parametrize("values", [[], [0], [0, 0.0, Decimal(0)]])
def test_without_a_weight_all_stays_unallocated(values: list[int]) -> None:
    with pytest.raises(NothingToAllocateByError):
        split(Decimal(1), values, quantum=CENT)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, Decimal("NaN"), Decimal(-1)])
def test_a_weight_that_is_no_weight_is_refused(bad: float) -> None:
    with pytest.raises(AllocationError, match="weight"):
        split_integer(10, [1, bad])


@pytest.mark.parametrize(
    ("total", "quantum"),
    [("NaN", "0.01"), ("1", "0"), ("1", "-1"), ("1", "NaN"), ("1.001", "0.01")],
)
def test_a_whole_that_cannot_be_split_into_quanta_is_refused(total: str, quantum: str) -> None:
    with pytest.raises(AllocationError):
        split(Decimal(total), [1, 1], quantum=Decimal(quantum))
