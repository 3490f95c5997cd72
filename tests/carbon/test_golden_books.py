"""Published totals come out of the books: readings in, emissions of energy and hardware out."""

from datetime import date, timedelta

import pytest

from carbon.assets import NewAsset, add_asset
from carbon.checks import verify
from carbon.models import HourlyIntensity, IntensitySource, SiteZone
from tests.builders import organisation
from tests.carbon.book_builders import HOUR, certificate, hall, residual_mix, summary, used
from tests.carbon.builders import NOW, START, operator

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("energy_kwh", "tonnes"), [(433_196, 24.69), (256_646, 14.63)], ids=["dynamic", "idle"]
)
def test_bloom_emits_what_was_published(tmp_path, energy_kwh, tonnes):
    hall(country="FRA", grid_g_per_kwh=57)
    used(tmp_path, *[energy_kwh / 8] * 8)
    assert summary().scope_2_location_kgco2e / 1000 == pytest.approx(tonnes, abs=0.005)
    assert verify(organisation().pk) == ()


def test_blooms_hardware_carries_what_was_published(tmp_path):
    place = hall(country="FRA")
    lifetime_h = 6 * 8_760 * 0.85  # idle time is carried by use, as the paper does
    for name, kgco2e in (("server", 2_500), ("accelerators", 8 * 150)):
        asset = NewAsset(
            name=name,
            devices=8,
            kgco2e=kgco2e,
            purchased_on=date(2025, 1, 1),
            lifetime_h=lifetime_h,
            source="JMLR 24(253)",
        )
        add_asset(operator(), place, asset, known_at=NOW)
    for device in range(8):
        used(tmp_path, 0.4, 0.4, device=f"GPU-{device}")
    per_accelerator_h = summary().embodied_kgco2e / 16
    assert per_accelerator_h * 1_082_990 / 1000 == pytest.approx(11.2, abs=0.05)
    assert verify(organisation().pk) == ()


def test_llama_emits_11390_tonnes_by_location_and_none_by_full_certificates(tmp_path):
    hall(country="USA", grid_g_per_kwh=414)
    whole_kwh = 39.3e6 * 0.7
    used(tmp_path, *[whole_kwh / 240] * 240, start=START - 10 * timedelta(days=1))
    certificate(energy_kwh=30e6, market_zone="USA")

    found = summary()

    assert found.facility_energy_kwh / 1e6 == pytest.approx(27.51, abs=0.001)
    assert found.scope_2_location_kgco2e / 1000 == pytest.approx(11_390, rel=0.001)
    assert found.scope_2_market_kgco2e == 0
    assert found.market_basis == ("certificate",)
    assert verify(organisation().pk) == ()


def test_600_of_1000_megawatt_hours_by_certificate_are_400_and_184_tonnes(tmp_path):
    hall(grid_g_per_kwh=400)
    residual_mix(460)
    used(tmp_path, *[100_000] * 10)
    certificate(energy_kwh=600_000)

    found = summary()

    assert found.scope_2_location_kgco2e == pytest.approx(400_000)
    assert found.scope_2_market_kgco2e == pytest.approx(184_000)
    assert found.contracted_kwh == pytest.approx(600_000)
    assert found.market_basis == ("certificate", "residual mix")
    assert verify(organisation().pk) == ()


def hourly_intensity(place, *values_g_per_kwh, basis="direct"):
    source, _made = IntensitySource.objects.get_or_create(
        organisation_id=organisation().pk, provider="csv", name="Own measurement"
    )
    SiteZone.objects.get_or_create(
        organisation_id=organisation().pk, site_id=place.site_id, source=source, zone="DE"
    )
    HourlyIntensity.objects.bulk_create(
        HourlyIntensity(
            organisation_id=organisation().pk,
            source=source,
            zone="DE",
            hour=START + step * HOUR,
            basis=basis,
            value_g_per_kwh=value,
            known_at=NOW,
        )
        for step, value in enumerate(values_g_per_kwh)
    )


def test_hours_are_multiplied_one_by_one_not_by_their_mean(tmp_path):
    place = hall()
    hourly_intensity(place, 100, 500)
    used(tmp_path, 10, 30)

    found = summary()

    assert found.scope_2_location_kgco2e == pytest.approx(16.0)
    (grid,) = [one for one in found.factors if one.kind == "grid_intensity"]
    assert (grid.level, grid.value, grid.version) == ("hour", 400, "2 h")
    assert verify(organisation().pk) == ()


def test_upstream_is_lifecycle_less_direct_of_one_source(tmp_path):
    place = hall()
    hourly_intensity(place, 100, 500)
    hourly_intensity(place, 130, 560, basis="lifecycle")
    used(tmp_path, 10, 30)
    assert summary().upstream_kgco2e == pytest.approx((10 * 30 + 30 * 60) / 1000)
    assert summary().scope_2_location_kgco2e == pytest.approx(16.0)


def test_upstream_of_a_yearly_table_is_unknown(tmp_path):
    hall()
    used(tmp_path, 10)
    assert summary().upstream_kgco2e is None


def test_water_on_site_is_of_it_energy_and_water_at_the_source_of_the_facilitys(tmp_path):
    hall(host_factor=1.5, pue=1.2, wue_l_per_kwh=1.8, source_l_per_kwh=3.0)
    used(tmp_path, 100)
    found = summary()
    assert found.water_on_site_l == pytest.approx(150 * 1.8)
    assert found.water_source_l == pytest.approx(180 * 3.0)
    assert found.water_l == pytest.approx(150 * 1.8 + 180 * 3.0)
    assert verify(organisation().pk) == ()


def test_water_without_its_factor_is_unknown_not_zero(tmp_path):
    hall(wue_l_per_kwh=1.8)
    used(tmp_path, 100)
    assert summary().water_on_site_l == pytest.approx(180)
    assert (summary().water_source_l, summary().water_l) == (None, None)
