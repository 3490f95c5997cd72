"""What the readers of grid intensity promise, against stand-ins with the real ones' faults."""

from datetime import UTC, datetime, timedelta

import pytest

from carbon.adapters.electricity_maps import ElectricityMaps
from carbon.adapters.intensity_points import IntensityError, Window
from carbon.adapters.uk_carbon_intensity import UkCarbonIntensity
from carbon.adapters.watttime import WattTime
from projects.web_client import Limits
from tests.carbon.intensity_servers import HOUR, Grid, Hour, serving, text

NOW = datetime(2025, 10, 20, 12, 30, tzinfo=UTC)
TODAY = NOW.replace(hour=0, minute=0)
QUICK = Limits(read_timeout_s=0.3, tries=2, first_pause_s=0.01, max_bytes=2_000_000)


@pytest.fixture
def grid(settings):
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    return Grid(now=NOW)


@pytest.fixture
def url(grid):
    with serving(grid) as found:
        yield found


def maps(url, *bases, **more):
    return ElectricityMaps(
        token=more.pop("token", "em-token"),
        bases=bases or ("direct",),
        base_url=f"{url}/em",
        limits=more.pop("limits", QUICK),
    )


def uk(url):
    return UkCarbonIntensity(base_url=f"{url}/uk", limits=QUICK)


def wt(url, password="pass"):
    return WattTime(username="ada", password=password, base_url=f"{url}/wt", limits=QUICK)


def window(zone, start=TODAY, end=TODAY + 12 * HOUR):
    return Window(zone=zone, start=start, end=end, now=NOW)


def by_hour(told, **wanted):
    return {
        one.hour: one
        for one in told.points
        if all(getattr(one, name) == value for name, value in wanted.items())
    }


def test_electricity_maps_tells_hours_and_never_looks_where_the_caller_is(grid, url):
    grid.fill("DE", TODAY, [300.0, 310.0, 320.0])
    told = maps(url).pull(window("DE"))
    assert [one.value_g_per_kwh for one in told.points] == [300.0, 310.0, 320.0]
    assert {one.basis for one in told.points} == {"direct"}
    (_path, query), headers = grid.asked[0], grid.headers[0]
    assert query["shouldUseFallbackCallerLookup"] == "false"
    assert query["emissionFactorType"] == "direct"
    assert headers["auth-token"] == "em-token"


def test_direct_and_lifecycle_are_kept_apart(grid, url):
    grid.fill("DE", TODAY, [300.0])
    told = maps(url, "direct", "lifecycle").pull(window("DE"))
    values = {one.basis: one.value_g_per_kwh for one in told.points}
    assert values == {"direct": 300.0, "lifecycle": 325.0}


def test_an_answer_about_another_zone_is_refused(grid, url):
    grid.fill("DE", TODAY, [300.0])
    grid.tells_zone = "FR"
    with pytest.raises(IntensityError) as caught:
        maps(url).pull(window("DE"))
    assert caught.value.code == "wrong_zone"
    assert "DE" in caught.value.message
    assert "FR" in caught.value.message


def test_an_unknown_zone_is_not_answered_with_the_callers_own(grid, url):
    grid.fill("DE", TODAY, [300.0])
    with pytest.raises(IntensityError) as caught:
        maps(url).pull(window("ZZ"))
    assert caught.value.code == "not_found"


def test_an_estimated_hour_says_so_and_how(grid, url):
    grid.fill("DE", TODAY, [300.0], is_estimated=True)
    (point,) = maps(url).pull(window("DE")).points
    assert (point.is_estimated, point.method) == (True, "TIME_SLICER_AVERAGE")


def test_a_hole_and_a_null_stay_holes(grid, url):
    grid.fill("DE", TODAY, [300.0, None, 320.0])
    del grid.hours["DE"][TODAY]
    told = maps(url).pull(window("DE"))
    assert list(by_hour(told)) == [TODAY + 2 * HOUR]


def test_of_an_hour_told_twice_the_newer_word_counts_and_it_is_said(grid, url):
    grid.fill("DE", TODAY, [300.0])
    row = {"zone": "DE", "carbonIntensity": 290, "datetime": text(TODAY), "isEstimated": False}
    late = {"updatedAt": text(TODAY + 5 * HOUR), "emissionFactorType": "direct"}
    grid.duplicates = [{**row, **late}]
    told = maps(url).pull(window("DE"))
    assert [one.value_g_per_kwh for one in told.points] == [290.0]
    assert any("twice" in note for note in told.notes)


def test_hours_that_are_not_over_are_left_for_later(grid, url):
    grid.fill("DE", TODAY + 11 * HOUR, [300.0, 310.0, 320.0])
    told = maps(url).pull(window("DE", end=TODAY + 24 * HOUR))
    assert list(by_hour(told)) == [TODAY + 11 * HOUR]
    assert any("not over" in note for note in told.notes)


def test_a_clock_that_runs_ahead_does_not_outrank_later_words(grid, url):
    grid.hours["DE"] = {TODAY: Hour(300.0, updated_at=NOW + timedelta(days=400))}
    (point,) = maps(url).pull(window("DE")).points
    assert point.told_at == NOW


def test_the_past_is_asked_in_pieces_of_ten_days(grid, url):
    start = TODAY - timedelta(days=25)
    grid.fill("DE", start, [100.0] * (25 * 24 + 12))
    told = maps(url).pull(window("DE", start=start))
    assert len(told.points) == 25 * 24 + 12
    ranges = [query for path, query in grid.asked if path.endswith("past-range")]
    assert len(ranges) == 3


def test_a_token_without_the_past_still_brings_the_last_day_and_says_so(grid, url):
    grid.plan_has_past = False
    grid.fill("DE", TODAY - timedelta(days=3), [100.0] * 84)
    told = maps(url).pull(window("DE", start=TODAY - timedelta(days=3)))
    assert len(told.points) == 23
    assert any("last 24 hours only" in note for note in told.notes)


def test_a_wrong_token_is_permanent_and_named(grid, url):
    grid.fill("DE", TODAY, [300.0])
    with pytest.raises(IntensityError) as caught:
        maps(url, token="old").pull(window("DE"))
    assert (caught.value.code, caught.value.permanent) == ("unauthorised", True)
    (step,) = maps(url, token="old").check(["DE", "FR"], now=NOW)
    assert "not accepted" in step.message
    assert "old" not in step.message


def test_throttling_is_not_asked_again_and_says_how_long_to_wait(grid, url):
    grid.faults = [(429, {"Retry-After": "120"}, {"message": "slow down"})]
    with pytest.raises(IntensityError) as caught:
        maps(url).pull(window("DE"))
    assert (caught.value.code, caught.value.retry_after_s) == ("throttled", 120.0)
    assert len(grid.asked) == 1


def test_a_failing_server_is_asked_again_in_one_place(grid, url):
    grid.fill("DE", TODAY, [300.0])
    grid.faults = [(500, {}, {"message": "oops"})]
    assert len(maps(url).pull(window("DE")).points) == 1
    assert len(grid.asked) == 2


def test_a_silent_server_ends_in_a_timeout(grid, url):
    grid.faults = [(0, {}, None)] * 2
    with pytest.raises(IntensityError) as caught:
        maps(url).pull(window("DE"))
    assert caught.value.code == "timeout"


def test_an_answer_that_is_too_large_is_refused(grid, url):
    grid.faults = [(200, {}, b" " * 2_000)]
    limits = Limits(max_bytes=1_000, tries=1)
    with pytest.raises(IntensityError) as caught:
        maps(url, limits=limits).pull(window("DE"))
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("answer", [[], {"zone": "DE"}, {"zone": "DE", "history": [1]}])
def test_another_shape_is_refused(grid, url, answer):
    grid.faults = [(200, {}, answer)]
    with pytest.raises(IntensityError):
        maps(url).pull(window("DE"))


def test_the_test_of_electricity_maps_tells_whether_the_past_can_be_read(grid, url):
    grid.fill("DE", TODAY - timedelta(days=4), [100.0] * 100)
    assert all(step.ok for step in maps(url).check(["DE"], now=NOW))
    grid.plan_has_past = False
    steps = maps(url).check(["DE"], now=NOW)
    assert [step.ok for step in steps] == [True, False]


def test_watttime_gives_pounds_as_grams_average_for_the_books_marginal_apart(grid, url):
    grid.fill("CAISO_NORTH", TODAY, [394.6, 400.0])
    told = wt(url).pull(window("CAISO_NORTH"))
    average = by_hour(told, signal="average")
    assert average[TODAY].value_g_per_kwh == pytest.approx(394.6)
    assert by_hour(told, signal="marginal")[TODAY].value_g_per_kwh == pytest.approx(394.6)
    assert grid.logins == 1


def test_watttime_averages_whole_hours_only(grid, url):
    grid.fill("CAISO_NORTH", TODAY, [394.6, 400.0])
    grid.missing_points = {(TODAY + timedelta(minutes=35)).isoformat()}
    told = wt(url).pull(window("CAISO_NORTH"))
    assert list(by_hour(told, signal="marginal")) == [TODAY + HOUR]
    assert any("not whole" in note for note in told.notes)


def test_watttime_imputed_hours_are_estimated(grid, url):
    grid.fill("CAISO_NORTH", TODAY, [394.6], is_estimated=True)
    assert by_hour(wt(url).pull(window("CAISO_NORTH")), signal="average")[TODAY].is_estimated


def test_watttime_in_another_unit_or_region_is_refused(grid, url):
    grid.fill("CAISO_NORTH", TODAY, [394.6])
    grid.units = "kg_co2_per_mwh"
    with pytest.raises(IntensityError) as caught:
        wt(url).pull(window("CAISO_NORTH"))
    assert caught.value.code == "wrong_unit"
    grid.units, grid.tells_zone = "lbs_co2_per_mwh", "PJM_DC"
    with pytest.raises(IntensityError) as caught:
        wt(url).pull(window("CAISO_NORTH"))
    assert caught.value.code == "wrong_zone"


def test_watttime_without_access_to_averages_brings_marginal_only_and_says_so(grid, url):
    grid.fill("PJM_DC", TODAY, [394.6])
    told = wt(url).pull(window("PJM_DC"))
    assert by_hour(told, signal="average") == {}
    assert any("co2_aoer" in note for note in told.notes)
    steps = wt(url).check(["PJM_DC"], now=NOW)
    assert [(step.about, step.ok) for step in steps][1] == ("PJM_DC co2_aoer", False)


def test_watttime_names_a_wrong_password(grid, url):
    with pytest.raises(IntensityError) as caught:
        wt(url, "wrong").pull(window("CAISO_NORTH"))
    assert caught.value.code == "unauthorised"
    assert "wrong" not in caught.value.message


def test_half_hours_make_an_hour_and_the_actual_value_counts(grid, url):
    grid.fill("GB", TODAY, [250.0, 260.0])
    told = uk(url).pull(window("GB"))
    assert [one.value_g_per_kwh for one in told.points] == [251.0, 261.0]
    assert not any(one.is_estimated for one in told.points)


def test_a_forecast_stands_in_for_a_missing_actual_value_and_is_marked(grid, url):
    grid.fill("GB", TODAY, [250.0])
    grid.hours["GB"][TODAY + HOUR] = Hour(None, is_estimated=True)
    told = by_hour(uk(url).pull(window("GB")))
    assert told[TODAY + HOUR].is_estimated
    assert told[TODAY + HOUR].value_g_per_kwh == 200.5


def test_an_hour_that_lacks_a_half_is_left_out_and_said(grid, url):
    grid.fill("GB", TODAY, [250.0, 260.0])
    grid.missing_points = {text(TODAY + HOUR / 2)}
    told = uk(url).pull(window("GB"))
    assert list(by_hour(told)) == [TODAY + HOUR]
    assert any("lack a half" in note for note in told.notes)


def test_great_britain_is_asked_in_pieces_of_two_weeks(grid, url):
    start = TODAY - timedelta(days=30)
    grid.fill("GB", start, [250.0] * (30 * 24))
    assert len(uk(url).pull(window("GB", start=start)).points) == 30 * 24
    assert len(grid.asked) == 3


def test_another_zone_than_great_britain_is_refused(url):
    with pytest.raises(IntensityError) as caught:
        uk(url).pull(window("DE"))
    assert caught.value.code == "wrong_zone"
