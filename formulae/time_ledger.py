"""Where the allocated time of a device went: each microsecond in one bucket; not what it cost."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from formulae.spans import Span, common_spans, merged_spans, uncovered_spans
from formulae.units import MICROSECOND_PER_S, QuantityError

HOUR_MICROSECOND: Final = 3600 * MICROSECOND_PER_S


class Bucket(StrEnum):
    """What a device did, or why it did nothing useful."""

    PRODUCTIVE = "productive"
    SLOW = "slow"
    STRAGGLER = "straggler"
    REWORK = "rework"
    CHECKPOINT = "checkpoint"
    DATA_STALL = "data_stall"
    STARTUP = "startup"
    IDLE = "idle"
    DOWN = "down"
    UNKNOWN = "unknown"


PRECEDENCE: Final = (
    Bucket.DOWN,
    Bucket.STARTUP,
    Bucket.REWORK,
    Bucket.CHECKPOINT,
    Bucket.DATA_STALL,
    Bucket.STRAGGLER,
    Bucket.SLOW,
    Bucket.IDLE,
    Bucket.PRODUCTIVE,
)


def ledger_spans(
    allocated: Sequence[Span], claims: Mapping[Bucket, Sequence[Span]]
) -> dict[Bucket, list[Span]]:
    """The stretches of each bucket: the first claim in the order of precedence holds.

    bucket_i = allocated, claimed by i, and by no bucket before i; unknown = claimed by none

    Args:
        allocated: (start, end), us, of one device or of devices that do the same; overlapping
            stretches count once.
        claims: stretches by bucket, us, in any order, also outside what is allocated. A claim of
            unknown adds nothing: what no other bucket claims is unknown.

    Returns:
        Ascending stretches without overlap for every bucket, perhaps none, us.

    Source: own rule, down > startup > rework > checkpoint > data stall > straggler > slow > idle >
    productive; what nobody measured is never called productive.

    >>> found = ledger_spans(
    ...     [(0, 10)], {Bucket.PRODUCTIVE: [(0, 8)], Bucket.CHECKPOINT: [(2, 3)]}
    ... )
    >>> found[Bucket.PRODUCTIVE], found[Bucket.CHECKPOINT], found[Bucket.UNKNOWN]
    ([(0, 2), (3, 8)], [(2, 3)], [(8, 10)])
    """
    left = merged_spans(span for span in allocated if span[0] < span[1])
    found: dict[Bucket, list[Span]] = {bucket: [] for bucket in Bucket}
    for bucket in PRECEDENCE:
        claimed = merged_spans(span for span in claims.get(bucket, ()) if span[0] < span[1])
        if left and claimed:
            found[bucket] = common_spans(left, claimed)
            left = common_spans(left, uncovered_spans((left[0][0], left[-1][1]), claimed))
    found[Bucket.UNKNOWN] = left
    return found


def allocate(
    allocated: Sequence[Span], claims: Mapping[Bucket, Sequence[Span]]
) -> dict[Bucket, int]:
    """The time in each bucket; together exactly the time that is allocated.

    sum over buckets = allocated, to the microsecond

    Args:
        allocated: (start, end), us, of one device or of devices that do the same.
        claims: stretches by bucket, us.

    Returns:
        Microseconds for every bucket, 0 where it has none.

    Source: own rule, as ledger_spans.

    >>> found = allocate([(0, 10)], {Bucket.DOWN: [(4, 6)], Bucket.PRODUCTIVE: [(0, 9)]})
    >>> found[Bucket.PRODUCTIVE], found[Bucket.DOWN], found[Bucket.UNKNOWN]
    (7, 2, 1)
    """
    return {
        bucket: sum(end - start for start, end in spans)
        for bucket, spans in ledger_spans(allocated, claims).items()
    }


def allocate_by_hour(
    allocated: Sequence[Span], claims: Mapping[Bucket, Sequence[Span]]
) -> dict[int, dict[Bucket, int]]:
    """The time in each bucket hour by hour; an hour sums to what is allocated in it.

    hour h = bucket spans within [h, h + 3600 s)

    Args:
        allocated: (start, end), us since 1970-01-01 UTC.
        claims: stretches by bucket, the same.

    Returns:
        Microseconds by bucket, by the start of the hour in us; hours without allocation are
        left out.

    Source: own rule, as ledger_spans.

    >>> hours = allocate_by_hour([(3_000_000_000, 4_000_000_000)], {})
    >>> [(hour, buckets[Bucket.UNKNOWN]) for hour, buckets in hours.items()]
    [(0, 600000000), (3600000000, 400000000)]
    """
    hours: dict[int, dict[Bucket, int]] = {}
    for bucket, spans in ledger_spans(allocated, claims).items():
        for start, end in spans:
            first, last = start // HOUR_MICROSECOND, -(-end // HOUR_MICROSECOND)
            inner = (hour * HOUR_MICROSECOND for hour in range(first + 1, last))
            for low, high in pairwise((start, *inner, end)):
                hour = low // HOUR_MICROSECOND * HOUR_MICROSECOND
                buckets = hours.setdefault(hour, dict.fromkeys(Bucket, 0))
                buckets[bucket] += high - low
    return dict(sorted(hours.items()))


def excess_span(span: Span, *, expected_microsecond: int) -> Span | None:
    """The end of a stretch that took longer than it should: a slow step, a loader over its limit.

    [start + expected, end) where not empty

    Args:
        span: (start, end), us.
        expected_microsecond: the time it should take, us, >= 0.

    Returns:
        The stretch past it, us; None where it took no longer.

    Raises:
        QuantityError: the expected time is below 0.

    Source: slow time = integral of max(0, 1 - rate / baseline) dt, for a step of constant work.

    >>> excess_span((0, 3_600_000), expected_microsecond=1_800_000)
    (1800000, 3600000)
    """
    if expected_microsecond < 0:
        raise QuantityError(f"{expected_microsecond} us are expected; it must be at least 0")
    start = span[0] + expected_microsecond
    return (start, span[1]) if start < span[1] else None
