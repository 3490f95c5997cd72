"""The fast metering agrees with the plain formulae to the millijoule, and parts always sum."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon.cascade import Grid, Readings, Rules, line_of, metered
from carbon.lines import (
    Runs,
    common,
    merged,
    outside,
    pieces_from_rows,
    split_at_hours,
    without,
)
from carbon.metering import (
    HOUR_MICROSECOND,
)
from carbon.plain_hours import DeviceReadings, PlainHour, add_gaps, plain_device, split_piece
from formulae.metering import outside_covered
from formulae.spans import common_spans, merged_spans, uncovered_spans

SECOND = 1_000_000
START = 490_000 * HOUR_MICROSECOND
HOURS = 5
END = START + HOURS * HOUR_MICROSECOND
NAMES = PlainHour.__slots__
instants = st.one_of(
    st.integers(START - HOUR_MICROSECOND, END + HOUR_MICROSECOND),
    st.integers(-20, 60).map(lambda minute: START + minute * 60 * SECOND + 17),  # often neighbours
)


def runs(spans):
    table = np.array(merged_spans(spans), dtype=np.int64).reshape(-1, 2)
    return Runs(start=table[:, 0], end=table[:, 1])


def rows(*columns):
    return [tuple(int(one) for one in row) for row in zip(*columns, strict=True)]


spans = st.lists(
    st.tuples(st.integers(0, 1_000), st.integers(1, 200)).map(lambda one: (one[0], sum(one))),
    max_size=12,
)


@given(spans, spans, st.integers(0, 40))
def test_stretches_join_meet_and_part_as_by_the_plain_formulae(one, other, slack):
    start, end = np.array(one, dtype=np.int64).reshape(-1, 2).T
    found = merged(start, end, slack=slack)
    assert rows(found.start, found.end) == merged_spans(one, slack=slack)
    both = common(runs(one), runs(other))
    assert rows(both.start, both.end) == common_spans(merged_spans(one), merged_spans(other))
    rest = without(runs([(0, 1_200)]), runs(other))
    assert rows(rest.start, rest.end) == uncovered_spans((0, 1_200), merged_spans(other))


@given(spans, st.integers(0, 1_000), st.integers(1, 500), st.integers(0, 10**13))
def test_a_piece_keeps_only_the_time_that_is_free(covered, start, duration, energy):
    found = outside(pieces_from_rows([(start, start + duration, energy)]), runs(covered))
    expected = outside_covered((start, start + duration, energy), merged_spans(covered))
    assert sorted(rows(found.start, found.end, found.energy_millijoule)) == expected


@given(
    st.integers(0, 4 * HOUR_MICROSECOND),
    st.integers(1, 5 * HOUR_MICROSECOND),
    st.integers(0, 10**13),
)
def test_a_piece_splits_at_hours_as_by_the_plain_formula(offset, duration, energy):
    piece = (START + offset, START + offset + duration, energy)
    parts = split_at_hours(pieces_from_rows([piece]))
    assert sorted(rows(parts.start, parts.end, parts.energy_millijoule)) == split_piece(piece)
    assert parts.energy_millijoule.sum() == energy


def unique(rows_, keys):
    return list({row[:keys]: row for row in rows_}.values())


def without_overlap(intervals):
    """The intervals of each sender that overlap no earlier one: intake lets no other in."""
    kept: dict[int, int] = {}
    found = []
    for sender, start, end, energy in sorted(intervals, key=lambda one: one[1]):
        if kept.get(sender, 0) <= start:
            kept[sender] = end
            found.append((sender, start, end, energy))
    return found


senders = st.integers(0, 2)
devices = st.builds(
    DeviceReadings,
    samples=st.lists(
        st.tuples(senders, instants, st.floats(0, 800, allow_subnormal=False)), max_size=25
    ).map(lambda found: unique(found, 2)),
    intervals=st.lists(
        st.tuples(
            senders,
            instants,
            st.integers(1, 3 * HOUR_MICROSECOND),
            st.integers(0, 2_000_000_000),
        ).map(lambda one: (one[0], one[1], one[1] + one[2], one[3])),
        max_size=6,
    ).map(without_overlap),
    counters=st.lists(
        st.tuples(
            senders,
            instants,
            st.integers(0, 3_000_000_000),
            st.sampled_from([0, 7, 7, 7, 8]),
        ),
        max_size=25,
    ).map(lambda found: unique(found, 2)),
)
assignments = st.lists(
    st.tuples(instants, instants).map(sorted).filter(lambda one: one[0] < one[1]).map(tuple),
    max_size=3,
)


def table(names, found):
    """Rows of (device, reading) as columns of the names."""
    columns = list(zip(*([device, *row] for device, row in found), strict=True)) or [[]] * 9
    return {
        name: np.array(column, dtype=np.float64 if name == "power_w" else np.int64)
        for name, column in zip(("device", "sender", *names), columns, strict=False)
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(devices, assignments), min_size=1, max_size=3),
    st.sampled_from([2, 120, 600, 3_600]),
)
def test_all_readings_become_the_same_hours_as_by_the_plain_formulae(known, gap_s):
    """Two or more senders of counters, intervals and power, resets and gaps, at random."""
    ids = 10 + np.arange(len(known))
    every = [(int(one), readings) for one, (readings, _owners) in zip(ids, known, strict=True)]
    readings = Readings(
        samples=table(("at", "power_w"), [(d, row) for d, r in every for row in r.samples]),
        intervals=table(
            ("start", "end", "energy_millijoule"),
            [(d, row) for d, r in every for row in r.intervals],
        ),
        counters=table(
            ("at", "counter_millijoule", "epoch"),
            [(d, row) for d, r in every for row in r.counters],
        ),
    )
    grid = Grid(devices=ids, start=START, hours=HOURS)
    line = line_of(readings, grid)
    limit_w, max_gap = 700.0, gap_s * SECOND
    owned = [
        (int(line.place(np.array([one]), np.array([at]))[0]), end - at)
        for one, (_readings, spans_) in zip(ids, known, strict=True)
        for at, end in spans_
    ]
    rules = Rules(
        limit_w=np.full(len(ids), limit_w),
        max_gap=max_gap,
        assigned=runs([(place, place + duration) for place, duration in owned]),
    )
    fast, _aside = metered(readings, grid, line, rules)
    for index, (device, spans_) in enumerate(known):
        plain = plain_device(device, limit_w=limit_w, max_gap=max_gap)
        hours = add_gaps(plain, within=(START, END), assigned=spans_)
        for place in range(HOURS):
            expected = hours.get(START + place * HOUR_MICROSECOND, PlainHour())
            found = {name: int(getattr(fast, name)[index * HOURS + place]) for name in NAMES}
            assert found == {name: getattr(expected, name) for name in NAMES}
