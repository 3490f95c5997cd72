"""Windows of a pull overlap: late samples are read again, and nothing counts twice."""

from datetime import timedelta

import pytest

from carbon.booking import book_site
from carbon.closing import close_site
from carbon.models import EnergyHour, IntakeBody, PromqlPull
from carbon.promql_pulls import (
    COUNTER_STEP_S,
    LATE,
    OVERLAP,
    POWER_STEP_S,
    NewPull,
    pull_now,
    save_pull,
)
from tests.carbon.builders import operator, site
from tests.carbon.test_promql_pulls import (
    DCGM,
    POWER,
    START,
    FakePrometheus,
    connected,
    counter_rows,
    gpu,
    prometheus,
)

__all__ = ["FakePrometheus", "prometheus"]
pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def pulled(pull, at, *, booked=True):
    """Pull at an instant, and book what came."""
    pull.refresh_from_db()
    result = pull_now(pull, site(), now=at)
    while booked and IntakeBody.objects.exists():
        book_site(site(), now=at)
    return result


def energy_kwh(hour=START):
    """What the books have of an hour."""
    close_site(site(), now=START + 6 * HOUR)
    rows = EnergyHour.objects.filter(hour=hour, superseded_at__isnull=True)
    sums = rows.values_list("measured_millijoule", "spread_millijoule")
    return sum(measured + spread for measured, spread in sums) / 3.6e9


def power_rows(power_w, *, until):
    """Power each 10.5 s, from an hour before the start."""
    count = int((until - START + HOUR).total_seconds() / 10.5)
    return [(START.timestamp() - 3_600 + 10.5 * turn, power_w) for turn in range(count)]


def test_windows_overlap_by_two_steps_and_what_may_come_late():
    longest = max(COUNTER_STEP_S, POWER_STEP_S)
    assert timedelta(seconds=2 * longest) + LATE <= OVERLAP


def test_overlapping_pulls_count_nothing_twice(prometheus):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    prometheus.add(POWER, gpu(2), power_rows(400.0, until=START + 2 * HOUR))
    pull = connected(prometheus)

    for step in range(9):
        pulled(pull, START + HOUR + 7.3 * step * MINUTE)

    assert energy_kwh() == pytest.approx(0.9, rel=1e-4)


def test_asked_again_the_server_is_asked_for_the_same_instants(prometheus):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    pull = connected(prometheus)
    pulled(pull, START + HOUR)
    before = set(IntakeBody.objects.values_list("pk", flat=True))
    pulled(pull, START + HOUR + 7 * MINUTE, booked=False)
    (body,) = IntakeBody.objects.exclude(pk__in=before)
    assert body.rows <= (OVERLAP + 8 * MINUTE) / timedelta(seconds=COUNTER_STEP_S) + 2


def test_late_samples_within_the_overlap_are_read_again(prometheus):
    now = START + HOUR
    known = now - 26 * MINUTE  # the overlap, and the minute in which nothing is settled
    prometheus.add(POWER, gpu(1), power_rows(400.0, until=known))
    pull = connected(prometheus)
    pulled(pull, now)
    assert energy_kwh() < 0.4 * 0.9

    prometheus.add(POWER, gpu(1), power_rows(400.0, until=START + 2 * HOUR))
    pulled(pull, now + 5 * MINUTE)

    assert energy_kwh() == pytest.approx(0.4, rel=1e-4)


def test_later_samples_of_a_counter_are_not_missed_and_those_of_power_once_asked_for(prometheus):
    now = START + 2 * HOUR
    hole = (START + 20 * MINUTE).timestamp(), (START + 40 * MINUTE).timestamp()
    counters, powers = counter_rows(500), power_rows(400.0, until=now)
    prometheus.add(DCGM, gpu(1), [row for row in counters if not hole[0] < row[0] < hole[1]])
    prometheus.add(POWER, gpu(2), [row for row in powers if not hole[0] < row[0] < hole[1]])
    pull = connected(prometheus)
    pulled(pull, now)
    prometheus.add(DCGM, gpu(1), counters)
    prometheus.add(POWER, gpu(2), powers)
    pulled(pull, now + 5 * MINUTE)
    assert energy_kwh() == pytest.approx(0.5 + 0.4 * 2 / 3, rel=0.01)

    again = NewPull(name="cluster", url=prometheus.url, exporter="dcgm", pull_from=START)
    save_pull(operator(), site(), again, now=now)
    pulled(PromqlPull.objects.get(), now + 10 * MINUTE)

    assert energy_kwh() == pytest.approx(0.9, rel=1e-4)


def test_a_warning_of_one_window_stands_until_the_pull_is_over(prometheus):
    rows = counter_rows(500)
    hole = [row for row in rows if not START.timestamp() + 900 < row[0] < START.timestamp() + 5_000]
    prometheus.add(DCGM, gpu(1), hole)
    pull = connected(prometheus)
    assert "increase()" in pulled(pull, START + 46 * MINUTE)["warning"]
    pull.refresh_from_db()
    assert "increase()" in pull.last_error
