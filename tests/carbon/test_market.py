"""Contracts cover energy of their market once, annually and by the hour, and never more."""

from datetime import UTC, date, datetime, timedelta

import pytest

from carbon.boundaries import set_boundary
from carbon.checks import verify
from carbon.entry_queries import current_entries
from carbon.instruments import InstrumentError, read_hours, read_serials, withdraw_instrument
from carbon.market_groups import market_by_group
from carbon.market_selectors import matched_years
from carbon.models import Instrument
from carbon.selectors import emissions_by_day
from carbon.services import repost_site
from runs.selectors import devices_of
from runs.services import assign_devices
from tests.builders import organisation, project
from tests.carbon.book_builders import (
    HOUR,
    YEAR_END,
    YEAR_START,
    certificate,
    hall,
    residual_mix,
    summary,
    used,
)
from tests.carbon.builders import NOW, START, operator

pytestmark = pytest.mark.django_db


def test_projects_share_a_certificate_by_energy_and_sum_to_the_whole(tmp_path):
    place = hall(grid_g_per_kwh=400)
    used(tmp_path, 300, 100, device="GPU-0")
    used(tmp_path, 100, 500, device="GPU-1")
    certificate(energy_kwh=250, g_per_kwh=12)
    projects = [project("moe"), project("dense")]
    for owner, device in zip(projects, devices_of(place.site_id), strict=True):
        assign_devices(
            operator(),
            device_ids=[device.device_id],
            project_id=owner.pk,
            start=START,
            end=START + 2 * HOUR,
        )
    repost_site(place, now=NOW)

    whole, parts = summary(), [summary(one.pk) for one in projects]

    assert whole.scope_2_market_kgco2e == pytest.approx(250 * 0.012 + 750 * 0.4)
    for name in ("scope_2_market_kgco2e", "scope_2_market_hourly_kgco2e", "contracted_kwh"):
        assert sum(getattr(one, name) for one in parts) == pytest.approx(getattr(whole, name))
    assert parts[0].contracted_kwh == pytest.approx(250 * 400 / 1000)
    days = emissions_by_day(organisation().pk, None)
    assert sum(day.scope_2_market_kgco2e for day in days) == pytest.approx(
        whole.scope_2_market_kgco2e
    )
    assert verify(organisation().pk) == ()


def test_what_a_certificate_has_too_much_of_is_shown_and_counts_for_nothing(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 100, 100)
    certificate(energy_kwh=1_000)
    found = summary()
    assert (found.scope_2_market_kgco2e, found.scope_2_location_kgco2e) == (0, 80)
    (year,) = matched_years(organisation().pk).values()
    assert year.uses[0].surplus_kwh == pytest.approx(800)


def test_matching_by_the_hour_knows_when_the_sun_shone(tmp_path):
    hall(grid_g_per_kwh=500)
    used(tmp_path, 10, 10, 10, 10)
    profile = [(START + HOUR, 30.0), (START + 2 * HOUR, 10.0)]
    certificate(
        energy_kwh=40, hours=profile, start=START, end=START + 4 * HOUR, kind="ppa", name="Solar"
    )
    found = summary()
    assert found.scope_2_market_kgco2e == 0
    assert found.scope_2_market_hourly_kgco2e == pytest.approx(20 * 0.5)
    assert found.contracted_hourly_kwh == pytest.approx(20)
    assert verify(organisation().pk) == ()


def test_without_hours_a_contract_is_spread_evenly_over_its_period(tmp_path):
    hall(grid_g_per_kwh=500)
    used(tmp_path, 1, 3)
    certificate(energy_kwh=4, start=START, end=START + 2 * HOUR, kind="ppa", name="Base load")
    assert summary().scope_2_market_kgco2e == 0
    assert summary().scope_2_market_hourly_kgco2e == pytest.approx(0.5)


def test_the_hierarchy_goes_certificate_ppa_supplier_residual(tmp_path):
    hall(grid_g_per_kwh=400)
    residual_mix(460)
    used(tmp_path, 100)
    certificate(energy_kwh=None, kind="supplier_rate", g_per_kwh=300, name="Supplier")
    certificate(energy_kwh=30, kind="ppa", g_per_kwh=10, name="PPA")
    certificate(energy_kwh=20, g_per_kwh=0, name="Certificate")

    found = summary()

    assert found.scope_2_market_kgco2e == pytest.approx((30 * 10 + 50 * 300) / 1000)
    assert found.market_basis == ("certificate", "ppa", "supplier_rate")
    (year,) = matched_years(organisation().pk).values()
    assert [use.used_kwh for use in year.uses] == pytest.approx([20, 30, 50])
    assert verify(organisation().pk) == ()


def test_the_residual_mix_comes_before_the_grids_average_and_both_say_so(tmp_path):
    place = hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    assert summary().market_basis == ("grid average",)
    residual_mix(460, year=2024)
    repost_site(place, now=NOW)
    assert summary().scope_2_market_kgco2e == pytest.approx(46)
    assert summary().market_basis == ("residual mix",)
    assert verify(organisation().pk) == ()


def test_a_contract_covers_energy_of_its_own_market_and_period_only(tmp_path):
    hall("berlin", grid_g_per_kwh=400)
    hall("texas", country="USA", grid_g_per_kwh=400)
    used(tmp_path, 100, slug="berlin")
    used(tmp_path, 100, slug="texas")
    certificate(energy_kwh=1_000, market_zone="USA")
    certificate(
        energy_kwh=1_000,
        name="2024",
        start=datetime(2024, 1, 1, tzinfo=UTC),
        end=datetime(2025, 1, 1, tzinfo=UTC),
    )
    assert summary().scope_2_market_kgco2e == pytest.approx(40)
    assert summary().contracted_kwh == pytest.approx(100)


def test_a_certificate_that_is_not_retired_covers_nothing(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    certificate(energy_kwh=1_000, retired_on=None)
    assert summary().scope_2_market_kgco2e == pytest.approx(40)
    assert matched_years(organisation().pk) == {}


def test_a_certificate_counts_from_the_day_of_its_retirement_on(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    made = certificate(energy_kwh=1_000)
    assert summary().scope_2_market_kgco2e == 0
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)  # as rows of before could say
    Instrument.objects.filter(pk=made).update(retired_on=tomorrow)
    assert summary().scope_2_market_kgco2e == pytest.approx(40)
    assert matched_years(organisation().pk) == {}
    assert verify(organisation().pk) == ()
    Instrument.objects.filter(pk=made).update(retired_on=NOW.date() + timedelta(days=3))
    assert summary().scope_2_market_kgco2e == 0
    assert summary(as_of=NOW + timedelta(days=2)).scope_2_market_kgco2e == pytest.approx(40)
    assert summary(as_of=NOW + timedelta(days=3)).scope_2_market_kgco2e == 0


def test_a_retirement_that_is_to_come_is_refused_and_todays_counts():
    with pytest.raises(InstrumentError, match="after 2025-10-20: leave it out"):
        certificate(retired_on=NOW.date() + timedelta(days=1))
    certificate(retired_on=NOW.date())


def test_the_same_serials_retire_once(tmp_path):
    certificate(registry="AIB", serials="GO-1000 to GO-1999")
    for serials in ("GO-1500", "go-1999 to go-2500", "X-1\nGO-1000"):
        with pytest.raises(InstrumentError, match="count already"):
            certificate(registry="aib", serials=serials, name="again")
    certificate(registry="AIB", serials="GO-2000 to 2999", name="next")
    certificate(registry="M-RETS", serials="GO-1500", name="another registry")


def test_the_same_serials_may_be_entered_once_the_first_is_withdrawn(tmp_path):
    first = certificate(registry="AIB", serials="GO-1 to GO-9")
    withdraw_instrument(operator(), first, known_at=NOW)
    certificate(registry="AIB", serials="GO-1 to GO-9")


def test_a_figure_of_yesterday_can_be_told_again_after_a_contract_came_in(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    later = NOW + timedelta(days=3)
    made = certificate(energy_kwh=1_000, known_at=later)
    withdraw_instrument(operator(), made, known_at=later + timedelta(days=3))
    figures = [
        summary(as_of=NOW + timedelta(days=days)).scope_2_market_kgco2e for days in (1, 4, 7)
    ]
    assert figures == [pytest.approx(40), 0, pytest.approx(40)]
    assert summary().scope_2_market_kgco2e == pytest.approx(40)


def test_who_owns_the_hardware_decides_the_scope_and_whose_contracts_count(tmp_path):
    place = hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    certificate(energy_kwh=1_000)
    assert [one.scope_category for one in summary().scopes] == ["scope_2"]
    for ownership, category, market_kgco2e in (
        ("colocation", "scope_2_colocation", 0),
        ("leased", "scope_3_category_8", 40),
        ("cloud", "scope_3_category_1", 40),
    ):
        set_boundary(operator(), place, ownership=ownership, known_at=NOW)
        repost_site(place, now=NOW)
        assert [one.scope_category for one in summary().scopes] == [category]
        assert summary().scope_2_market_kgco2e == pytest.approx(market_kgco2e)
        assert verify(organisation().pk) == ()
    set_boundary(operator(), place, ownership="cloud", market_zone="DEU", known_at=NOW)
    repost_site(place, now=NOW)
    assert summary().scope_2_market_kgco2e == 0


def test_overhead_of_a_rented_hall_is_said_apart(tmp_path):
    place = hall(pue=1.3, grid_g_per_kwh=400)
    set_boundary(operator(), place, ownership="colocation", known_at=NOW)
    used(tmp_path, 100)
    (scope,) = summary().scopes
    assert scope.overhead_energy_kwh == pytest.approx(30)


def test_a_boundary_holds_from_its_day_on(tmp_path):
    place = hall(grid_g_per_kwh=400)
    set_boundary(operator(), place, ownership="leased", valid_from=date(2025, 10, 2), known_at=NOW)
    used(tmp_path, *[1] * 30)
    assert {one.scope_category: one.facility_energy_kwh for one in summary().scopes} == {
        "scope_2": pytest.approx(24),
        "scope_3_category_8": pytest.approx(6),
    }


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"energy_kwh": None}, "give its kWh"),
        ({"energy_kwh": -5}, "above 0"),
        ({"market_zone": " "}, "market zone"),
        ({"end": YEAR_START}, "last day"),
        ({"end": YEAR_END + timedelta(days=9)}, "a year or less"),
        ({"retired_on": date(2024, 12, 31)}, "retired before"),
        ({"g_per_kwh": -1}, "rate lies"),
        ({"kind": "promise"}, "certificate, a PPA"),
        ({"kind": "ppa", "energy_kwh": None}, "delivers a quantity"),
        ({"hours": [(YEAR_END, 5.0)]}, "outside of the instrument"),
        ({"hours": [(YEAR_START, 5.0)]}, "add up to 5 kWh"),
        ({"serials": "GO-9 to GO-1"}, "FIRST to LAST"),
        ({"serials": "GO-1 to GO-5, GO-5"}, "stands here twice"),
    ],
)
def test_what_cannot_count_is_refused_in_words(wish, words):
    with pytest.raises(InstrumentError, match=words):
        certificate(**wish)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("when,kwh\n", "hour,energy_kwh"),
        ("hour,energy_kwh\n2026-01-01T00:00Z\n", "Row 2"),
        ("hour,energy_kwh\n2026-01-01T00:30Z,5\n", "no whole hour"),
        ("hour,energy_kwh\n2026-01-01T00:00,5\n", "no whole hour"),
        ("hour,energy_kwh\n2026-01-01T00:00Z,-5\n", "outside of 0"),
        ("hour,energy_kwh\n2026-01-01T00:00Z,5\n2026-01-01T01:00+01:00,5\n", "comes twice"),
    ],
)
def test_a_profile_that_cannot_be_read_names_its_row(text, words):
    with pytest.raises(InstrumentError, match=words):
        read_hours(text)


def test_serials_are_read_as_ranges():
    found = [(one.stem, one.first, one.last) for one in read_serials("a-1 to a-9; B7, 10 - 20\nX")]
    assert found == [("A-", 1, 9), ("B", 7, 7), ("", 10, 20), ("X", 0, 0)]


def test_days_without_entries_have_no_market_based_figure(tmp_path):
    certificate()
    entries = current_entries().filter(organisation_id=organisation().pk)
    assert market_by_group(organisation().pk, entries, ()) == {}
