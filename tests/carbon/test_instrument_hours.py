"""Contracts cover whole hours: the books hold energy by the hour, and no part of one."""

from datetime import timedelta

import pytest

from carbon.checks import verify
from carbon.instruments import InstrumentError
from carbon.models import Instrument
from tests.builders import organisation
from tests.carbon.book_builders import HOUR, certificate, hall, residual_mix, summary, used
from tests.carbon.builders import START

pytestmark = pytest.mark.django_db
HALF = timedelta(minutes=30)


@pytest.fixture
def place(tmp_path):
    """Four hours of 100 kWh at 400 g."""
    found = hall(grid_g_per_kwh=400)
    residual_mix(400)
    used(tmp_path, 100, 100, 100, 100)
    return found


@pytest.mark.parametrize(
    ("start", "end"),
    [(START + HALF, START + 2 * HOUR), (START, START + HOUR + timedelta(seconds=1))],
)
def test_a_period_that_is_not_of_whole_hours_is_refused(start, end):
    with pytest.raises(InstrumentError, match="whole hours"):
        certificate(start=start, end=end)
    assert not Instrument.objects.exists()


def test_a_period_of_whole_hours_counts(place):
    certificate(energy_kwh=150, start=START + HOUR, end=START + 3 * HOUR)
    assert summary().contracted_kwh == pytest.approx(150)
    assert verify(organisation().pk) == ()


def moved(made, start, end):
    """As a row could say before."""
    Instrument.objects.filter(pk=made).update(start=start, end=end)


@pytest.mark.parametrize(
    ("more", "covered_kwh"),
    [
        ({"energy_kwh": 400}, 100),  # 200 kWh for the one whole hour of two: more than it used
        ({"energy_kwh": 60}, 30),
        ({"energy_kwh": None, "kind": "supplier_rate"}, 100),
    ],
)
def test_of_older_rows_only_the_hours_wholly_inside_are_covered(place, more, covered_kwh):
    made = certificate(start=START, end=START + 4 * HOUR, **more)
    moved(made, START + HALF, START + 2 * HOUR + HALF)
    found = summary()
    assert found.contracted_kwh == pytest.approx(covered_kwh)
    assert found.contracted_hourly_kwh == pytest.approx(covered_kwh)
    assert verify(organisation().pk) == ()


def test_a_row_within_one_hour_covers_nothing(place):
    made = certificate(energy_kwh=400)
    moved(made, START + HALF / 2, START + HALF)
    found = summary()
    assert (found.contracted_kwh, found.scope_2_market_kgco2e) == (0, pytest.approx(160))
    assert verify(organisation().pk) == ()


def test_a_row_over_new_year_covers_whole_hours_of_both_years(place):
    made = certificate(energy_kwh=400, kind="ppa")
    moved(made, START + HALF, START.replace(year=2026) + HALF)
    assert 0 < summary().contracted_kwh < 400
    assert verify(organisation().pk) == ()
