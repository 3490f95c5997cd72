"""Every allocated microsecond is in exactly one bucket."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.spans import Span, merged_spans
from formulae.time_ledger import (
    HOUR_MICROSECOND,
    PRECEDENCE,
    Bucket,
    allocate,
    allocate_by_hour,
    excess_span,
    ledger_spans,
)
from formulae.units import QuantityError

LONGEST = 60

Claims = dict[Bucket, list[Span]]


def spans(*, unit: int = 1) -> st.SearchStrategy[list[Span]]:
    """Stretches in any order, some empty, some over each other."""
    span = st.tuples(st.integers(0, LONGEST), st.integers(0, LONGEST)).map(sorted)
    return st.lists(span.map(lambda ends: (ends[0] * unit, ends[1] * unit)), max_size=6)


def claims(*, unit: int = 1) -> st.SearchStrategy[Claims]:
    return st.dictionaries(st.sampled_from(list(Bucket)), spans(unit=unit))


def bucket_at(at: int, claimed: Claims) -> Bucket:
    """The rule by its words, one microsecond at a time."""
    for bucket in PRECEDENCE:
        if any(start <= at < end for start, end in claimed.get(bucket, [])):
            return bucket
    return Bucket.UNKNOWN


@given(spans(), claims())
def test_each_microsecond_is_in_the_first_bucket_that_claims_it(
    allocated: list[Span], claimed: Claims
) -> None:
    expected = dict.fromkeys(Bucket, 0)
    for at in range(LONGEST):
        if any(start <= at < end for start, end in allocated):
            expected[bucket_at(at, claimed)] += 1
    assert allocate(allocated, claimed) == expected


@given(spans(), claims())
def test_the_buckets_sum_to_what_is_allocated_and_share_nothing(
    allocated: list[Span], claimed: Claims
) -> None:
    found = ledger_spans(allocated, claimed)
    whole = [span for span in merged_spans(allocated) if span[0] < span[1]]
    every = [span for bucket in found.values() for span in bucket]
    assert merged_spans(every) == whole
    assert sum(end - start for start, end in every) == sum(end - start for start, end in whole)


@given(spans(), claims(), st.randoms(use_true_random=False))
def test_the_order_of_claims_does_not_matter(
    allocated: list[Span], claimed: Claims, chance: random.Random
) -> None:
    shuffled = {
        bucket: chance.sample(claimed[bucket], len(claimed[bucket]))
        for bucket in chance.sample(list(claimed), len(claimed))
    }
    assert allocate(chance.sample(allocated, len(allocated)), shuffled) == allocate(
        allocated, claimed
    )


@given(spans(unit=HOUR_MICROSECOND // 7), claims(unit=HOUR_MICROSECOND // 7))
def test_the_hours_sum_to_the_whole(allocated: list[Span], claimed: Claims) -> None:
    hours = allocate_by_hour(allocated, claimed)
    whole = allocate(allocated, claimed)
    assert {b: sum(hour[b] for hour in hours.values()) for b in Bucket} == whole
    assert all(hour % HOUR_MICROSECOND == 0 for hour in hours)
    assert all(0 < sum(buckets.values()) <= HOUR_MICROSECOND for buckets in hours.values())


def test_time_without_telemetry_is_unknown_never_productive() -> None:
    found = allocate([(0, 100)], {})
    assert found[Bucket.UNKNOWN] == 100
    assert found[Bucket.PRODUCTIVE] == 0


def test_a_day_of_steps_of_a_second_each_takes_no_longer_than_they_are_many() -> None:
    steps = [(at * 1_000_000, at * 1_000_000 + 900_000) for at in range(86_400)]
    found = allocate(
        [(0, 86_400_000_000)], {Bucket.PRODUCTIVE: steps, Bucket.REWORK: steps[1000:2000]}
    )
    assert found[Bucket.PRODUCTIVE] == 85_400 * 900_000
    assert found[Bucket.REWORK] == 900_000_000


@pytest.mark.parametrize(
    ("expected_microsecond", "excess"), [(0, (10, 20)), (4, (14, 20)), (10, None), (11, None)]
)
def test_only_what_a_step_takes_too_long_is_slow(
    expected_microsecond: int, excess: Span | None
) -> None:
    assert excess_span((10, 20), expected_microsecond=expected_microsecond) == excess


def test_a_negative_expectation_is_refused() -> None:
    with pytest.raises(QuantityError, match="at least 0"):
        excess_span((0, 1), expected_microsecond=-1)
