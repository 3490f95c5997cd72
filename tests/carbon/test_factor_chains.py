"""Which factor an hour takes: measured by the hour, by month and year, dated, published, none."""

from datetime import UTC, date, datetime

import pytest

from carbon.checks import verify
from carbon.hourly_factors import NewPeriodFactor, set_period_factors
from carbon.models import FactorSet
from carbon.services import repost_site
from runs.records import SiteRecord
from runs.services import save_site
from tests.builders import organisation
from tests.carbon.book_builders import HOUR, hall, summary, used
from tests.carbon.builders import NOW, START, factor, operator
from tests.carbon.builders import site as bare_site

pytestmark = pytest.mark.django_db
MONTH = (datetime(2025, 10, 1, tzinfo=UTC), datetime(2025, 11, 1, tzinfo=UTC))
YEAR = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))


def period(place, kind, value, *, level, span, tier="measured"):
    new = NewPeriodFactor(
        kind=kind, level=level, start=span[0], end=span[1], value=value, tier=tier, source="meter"
    )
    set_period_factors(place, [new], known_at=NOW)


def levels(kind):
    return {(one.level, one.value) for one in summary().factors if one.kind == kind}


def test_pue_goes_from_the_hour_over_month_and_year_to_the_sites_own(tmp_path):
    place = hall(pue=1.5)
    used(tmp_path, 10)
    assert levels("pue") == {("site", 1.5)}
    wider = (("year", 1.4, YEAR), ("month", 1.3, MONTH), ("hour", 1.2, (START, START + HOUR)))
    for level, value, span in wider:
        period(place, "pue", value, level=level, span=span)
        repost_site(place, now=NOW)
        assert levels("pue") == {(level, value)}
        assert summary().facility_energy_kwh == pytest.approx(10 * value)
    assert verify(organisation().pk) == ()


def test_a_change_of_pue_in_one_hour_bills_that_hour_alone(tmp_path):
    place = hall(pue=1.5)
    period(place, "pue", 1.1, level="hour", span=(START + HOUR, START + 2 * HOUR))
    used(tmp_path, 10, 10, 10)
    assert summary().facility_energy_kwh == pytest.approx(15 + 11 + 15)


def test_wue_measured_by_the_month_multiplies_it_energy(tmp_path):
    place = hall(pue=2.0, wue_l_per_kwh=9.0)
    period(place, "wue_l_per_kwh", 1.8, level="month", span=MONTH)
    used(tmp_path, 10)
    assert summary().water_on_site_l == pytest.approx(18)


def test_a_measured_host_factor_comes_before_the_sites_and_a_lower_bound_after(tmp_path):
    place = hall(host_factor=1.5)
    used(tmp_path, 10, 10)
    hour = (START, START + HOUR)
    period(place, "host_factor", 1.2, level="hour", span=hour, tier="estimated")
    repost_site(place, now=NOW)
    assert summary().it_energy_kwh == pytest.approx(30)
    period(place, "host_factor", 1.3, level="hour", span=hour)
    repost_site(place, now=NOW)
    assert summary().it_energy_kwh == pytest.approx(13 + 15)
    assert verify(organisation().pk) == ()


def test_a_lower_bound_counts_where_the_site_has_set_nothing(tmp_path):
    place = bare_site()
    used(tmp_path, 10)
    assert summary().it_energy_kwh is None
    hour = (START, START + HOUR)
    period(place, "host_factor", 1.2, level="hour", span=hour, tier="estimated")
    repost_site(place, now=NOW)
    assert summary().it_energy_kwh == pytest.approx(12)


def cloud(**where):
    bare = bare_site()
    record = {"provider": "gcp", "region": "us-central1", **where}
    save_site(
        operator(),
        SiteRecord(
            site_id=bare.site_id,
            organisation_id=bare.organisation_id,
            slug=bare.slug,
            name=bare.name,
            **record,
        ),
    )
    factor(bare, "host_factor", 1.0)
    return bare_site()


def test_a_cloud_site_takes_what_its_provider_publishes_nearest_first(tmp_path):
    cloud()
    used(tmp_path, 10)
    assert levels("pue") == {("provider_region", 1.11)}
    (scope,) = summary().scopes
    assert scope.scope_category == "scope_3_category_1"
    factor(bare_site(), "pue", 1.3, valid_from=date(2025, 10, 1))
    repost_site(bare_site(), now=NOW)
    assert levels("pue") == {("site", 1.3)}


def test_a_region_without_figures_takes_the_fleets_and_an_own_hall_nobodys(tmp_path):
    cloud(provider="aws", region="ca-central-1")
    used(tmp_path, 10)
    ((level, _value),) = levels("pue")
    assert level in {"fleet", "provider_geography"}
    hall("own", pue=1.0)
    bare = bare_site("bare")
    factor(bare, "host_factor", 1.0)
    used(tmp_path, 10, slug="bare")
    found = {one.level for one in summary(site_id=bare.site_id).factors if one.kind == "pue"}
    assert found == {"not set"}


def test_hours_with_the_same_factors_share_one_set(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, *[1.0] * 40)
    assert FactorSet.objects.count() == 1
