"""256 accelerators for one hour: the figures, whatever the order and the number of times."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from carbon.checks import verify
from carbon.configuration import apply
from carbon.selectors import emissions_summary
from tests.builders import organisation
from tests.carbon.builders import SAMPLES, imported, operator, samples, site, write_csv

pytestmark = pytest.mark.django_db


@pytest.fixture
def hour(tmp_path):
    return samples(devices=256)


def summary_of(slug="hall-1"):
    return emissions_summary(organisation().pk, None, site_id=site(slug).site_id)


def set_factors():
    factors = {"host_factor": 1.0, "pue": 1.2, "grid_g_per_kwh": 400}
    apply(operator(), {"sites": [{"slug": "hall-1", "factors": factors}]})


def test_256_accelerators_at_650_w_for_one_hour_use_166_4_kwh(tmp_path, hour):
    report = imported(write_csv(tmp_path / "hour.csv", SAMPLES, hour))
    assert report.accelerator_energy_kwh == pytest.approx(166.4, rel=1e-12)
    assert (report.rows, report.rejected, report.duplicates, report.devices) == (61_696, 0, 0, 256)
    assert summary_of().coverage_fraction == 1.0


def test_with_factors_it_emits_79_87_kg(tmp_path, hour):
    imported(write_csv(tmp_path / "hour.csv", SAMPLES, hour))
    set_factors()
    found = summary_of()
    assert found.it_energy_kwh == pytest.approx(166.4)
    assert found.facility_energy_kwh == pytest.approx(199.68)
    assert found.scope_2_location_kgco2e == pytest.approx(79.872)
    assert found.scope_2_market_kgco2e == pytest.approx(79.872)
    assert found.market_basis == ("grid average",)
    assert verify(organisation().pk) == ()


def test_without_a_host_factor_emissions_are_unknown_not_zero(tmp_path, hour):
    imported(write_csv(tmp_path / "hour.csv", SAMPLES, hour))
    found = summary_of()
    assert found.accelerator_energy_kwh == pytest.approx(166.4)
    assert (found.it_energy_kwh, found.facility_energy_kwh) == (None, None)
    assert (found.scope_2_location_kgco2e, found.scope_2_market_kgco2e) == (None, None)


def test_the_same_file_twice_changes_nothing(tmp_path, hour):
    path = write_csv(tmp_path / "hour.csv", SAMPLES, hour)
    first, second = imported(path), imported(path)
    assert second.duplicates == second.rows == first.rows
    assert second.accelerator_energy_kwh == first.accelerator_energy_kwh
    assert summary_of().accelerator_energy_kwh == pytest.approx(166.4)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_overlapping_parts_in_either_order_are_the_whole(tmp_path, hour, order):
    parts = (hour[: 150 * 256], hour[100 * 256 :])
    for place in order:
        imported(write_csv(tmp_path / f"{place}.csv", SAMPLES, parts[place]))
    assert summary_of().accelerator_energy_kwh == pytest.approx(166.4, rel=1e-12)
    assert verify(organisation().pk) == ()


def test_gzipped_and_plain_are_the_same(tmp_path, hour):
    imported(write_csv(tmp_path / "hour.csv.gz", SAMPLES, hour, zipped=True))
    assert summary_of().accelerator_energy_kwh == pytest.approx(166.4, rel=1e-12)


def test_the_command_prints_the_agreed_document(tmp_path, hour):
    path = write_csv(tmp_path / "hour.csv", SAMPLES, hour)
    out = StringIO()
    call_command("import_power", str(path), site="Hall 1", json=True, stdout=out)
    document = json.loads(out.getvalue())
    assert document["site"] == "hall-1"
    assert (document["rows"], document["rejected"], document["duplicates"]) == (61_696, 0, 0)
    set_factors()
    out = StringIO()
    call_command("emissions", site="hall-1", json=True, stdout=out)
    document = json.loads(out.getvalue())
    assert (document["from"], document["to"]) == ("2025-10-01", "2025-10-02")
    assert document["scope_2_location_kgco2e"] == pytest.approx(79.872)
    assert {one["kind"] for one in document["factors"]} == {"host_factor", "pue", "grid_intensity"}
    assert all(
        {"id", "kind", "value", "unit", "year", "source", "level"} <= set(one)
        for one in document["factors"]
    )


def test_samples_slower_than_the_default_gap_are_bridged_and_said_so(tmp_path):
    rows = samples(devices=2, count=13, every_s=300)
    report = imported(write_csv(tmp_path / "slow.csv", SAMPLES, rows))
    assert report.accelerator_energy_kwh == pytest.approx(1.3)
    assert len(report.notes) == 1


def test_a_gap_lowers_the_coverage_and_adds_no_energy(tmp_path):
    kept = [row for row in samples() if not "2025-10-01T00:30" <= row[0] < "2025-10-01T00:45"]
    imported(write_csv(tmp_path / "gap.csv", SAMPLES, kept))
    found = summary_of()
    assert found.coverage_fraction == pytest.approx(1 - (900 + 15) / 3_600)
    assert found.accelerator_energy_kwh == pytest.approx(0.65 * found.coverage_fraction)
