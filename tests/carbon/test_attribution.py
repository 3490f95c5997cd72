"""Energy follows dated assignments; parts sum to the whole."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from carbon.attribution import NOBODY, attribute, microsecond_of
from carbon.metering import HOUR_MICROSECOND, HourTable
from runs.records import AssignmentRecord

T0 = datetime(2026, 10, 1, tzinfo=UTC)
SITE, A, B = UUID(int=9), UUID(int=1), UUID(int=2)


def hours(device_hours: list[tuple[int, int, int]]) -> HourTable:
    rows = sorted(device_hours)
    start = microsecond_of(T0)
    nothing = np.zeros(len(rows), dtype=np.int64)
    return HourTable(
        device=np.array([device for device, _, _ in rows], dtype=np.int64),
        hour=np.array([start + hour * HOUR_MICROSECOND for _, hour, _ in rows], dtype=np.int64),
        measured_millijoule=np.array([energy for _, _, energy in rows], dtype=np.int64),
        spread_millijoule=nothing,
        estimated_millijoule=nothing,
        covered_microsecond=np.full(len(rows), HOUR_MICROSECOND, dtype=np.int64),
    )


def assigned(device: int, project: UUID, start_h: float, end_h: float | None) -> AssignmentRecord:
    return AssignmentRecord(
        device_id=device,
        device_uuid=str(device),
        site_id=SITE,
        project_id=project,
        run_id=None,
        start=T0 + timedelta(hours=start_h),
        end=None if end_h is None else T0 + timedelta(hours=end_h),
    )


def shares(table, assignments, span=4):
    start = microsecond_of(T0)
    return attribute(table, assignments, start=start, end=start + span * HOUR_MICROSECOND)


def test_an_hour_in_which_a_device_changes_hands_is_split_by_time():
    owned = shares(hours([(1, 0, 1_000)]), [assigned(1, A, 0, 0.25), assigned(1, B, 0.25, 0.75)])
    assert {one.owner[0]: one.measured_millijoule for one in owned} == {A: 250, B: 500, None: 250}


def test_what_no_project_used_is_unallocated_and_not_lost():
    owned = shares(hours([(1, 0, 10), (2, 0, 20)]), [assigned(1, A, 0, None)])
    by_owner = {one.owner: one for one in owned if one.measured_millijoule}
    assert by_owner[NOBODY].measured_millijoule == 20
    assert by_owner[(A, None)].measured_millijoule == 10


def test_an_assigned_device_that_does_not_report_is_expected_but_not_covered():
    owned = shares(hours([(1, 0, 10)]), [assigned(1, A, 0, 2), assigned(2, A, 0, 2)], span=2)
    first, second = sorted(owned, key=lambda one: one.hour)
    assert (first.covered_microsecond, first.expected_microsecond) == (
        HOUR_MICROSECOND,
        2 * HOUR_MICROSECOND,
    )
    assert (second.covered_microsecond, second.expected_microsecond) == (0, 2 * HOUR_MICROSECOND)


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=4),
    st.lists(st.integers(0, 4 * 3_600), min_size=2, max_size=8, unique=True),
)
def test_shares_and_rest_sum_to_the_energy_whatever_the_assignments(energies, seconds):
    cuts = sorted(seconds)
    assignments = [
        assigned(1, (A, B)[place % 2], low / 3_600, high / 3_600)
        for place, (low, high) in enumerate(pairwise(cuts))
    ]
    table = hours([(1, hour, energy) for hour, energy in enumerate(energies)])
    owned = shares(table, assignments)
    assert sum(one.measured_millijoule for one in owned) == sum(energies)
    assert sum(one.covered_microsecond for one in owned) == len(energies) * HOUR_MICROSECOND
