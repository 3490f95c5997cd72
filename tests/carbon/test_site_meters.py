"""Meters of a site: PUE and WUE by hour, month and year; measured where two meters know."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from audit.models import AuditEntry
from carbon.configuration import apply, dump
from carbon.hourly_factors import factor_of_hour, factors_of_hours
from carbon.meter_texts import MeterRow, parse_period, read_meter_rows
from carbon.models import HourlyFactor, SiteMeterReading
from carbon.selectors import emissions_summary
from carbon.services import close_hours_job
from carbon.site_factors import FactorError
from carbon.site_meters import enter_meter_rows
from jobs.models import Job
from jobs.records import JobContext
from projects.records import OrganisationRole
from tests.builders import organisation, person, signed_in
from tests.carbon.builders import (
    INTERVALS,
    NOW,
    START,
    factor,
    imported,
    interval,
    operator,
    site,
    write_csv,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
KWH = 3_600_000_000
OCTOBER = "2025-10"


def row(what, period, value, **more):
    return MeterRow(what=what, period=parse_period(period), value=value, **more)


def enter(*rows, now=NOW):
    return enter_meter_rows(operator(), site(), rows, now=now)


def pues():
    return {
        one.level: (one.value, one.tier)
        for one in factors_of_hours(site().site_id, "pue", START, START + 40 * 24 * HOUR)
    }


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


@pytest.fixture
def hall(tmp_path):
    """A site that used 1 kWh of accelerators in each of four hours, its PUE 1.5 by hand."""
    factor(site(), "host_factor", 1.0)
    factor(site(), "grid_g_per_kwh", 400)
    factor(site(), "pue", 1.5)
    rows = [interval(START + one * HOUR, START + (one + 1) * HOUR, KWH) for one in range(4)]
    imported(write_csv(tmp_path / "i.csv", INTERVALS, rows))
    return site()


def run_closing():
    for job in Job.objects.filter(kind="carbon.close_hours").order_by("created_at"):
        close_hours_job(
            JobContext(job_id=job.pk, organisation_id=job.organisation_id, payload=job.payload)
        )
        job.delete()


def facility_kwh():
    return emissions_summary(organisation().pk, None).facility_energy_kwh


@pytest.mark.parametrize(
    ("text", "level", "hours"),
    [
        ("2024", "year", 366 * 24),
        ("2026-02", "month", 28 * 24),
        ("2026-10-05", "day", 24),
        ("2026-10-05T13", "hour", 1),
        ("2026-10-05T13:00:00Z", "hour", 1),
        ("2026-12", "month", 31 * 24),
    ],
)
def test_a_period_is_written_as_a_year_month_day_or_hour(text, level, hours):
    period = parse_period(text)
    assert (period.level, (period.end - period.start) / HOUR) == (level, hours)


@pytest.mark.parametrize(
    "text", ["", "October", "2026-13", "2026-10-05T13:30Z", "1999", "9999", "9999-12", "05.10.26"]
)
def test_what_is_no_period_is_refused_with_how_to_write_one(text):
    with pytest.raises(FactorError, match="2026-10"):
        parse_period(text)


def test_both_meters_of_a_month_measure_its_pue_and_its_hours_follow(hall):
    assert facility_kwh() == pytest.approx(6.0)
    enter(row("facility_kwh", OCTOBER, 1_200))
    assert pues() == {}
    enter(row("it_kwh", OCTOBER, 1_000))
    assert pues() == {"month": (1.2, "measured")}
    run_closing()
    assert facility_kwh() == pytest.approx(4.8)


def test_water_over_it_energy_measures_the_wue():
    enter(row("water_l", OCTOBER, 1_800), row("it_kwh", OCTOBER, 1_000))
    (found,) = factors_of_hours(site().site_id, "wue_l_per_kwh", START, START + HOUR)
    assert (found.value, found.tier, found.numerator) == (1.8, "measured", 1_800)


def test_days_fill_their_month_and_months_their_year():
    days = [f"2025-10-{day:02d}" for day in range(1, 32)]
    enter(*(row("facility_kwh", day, 13) for day in days[:-1]), row("it_kwh", OCTOBER, 310))
    assert pues() == {}
    enter(row("facility_kwh", days[-1], 13))
    assert pues() == {"month": (1.3, "measured")}
    months = [f"2025-{month:02d}" for month in range(1, 13) if month != 10]
    enter(*(row("facility_kwh", one, 403) for one in months), row("it_kwh", "2025", 310 * 12))
    assert pues()["year"] == (pytest.approx(1.3), "measured")


def test_the_nearest_period_holds():
    enter(
        row("pue", "2025", 1.4, tier="published"),
        row("pue", OCTOBER, 1.3),
        row("pue", "2025-10-01T02", 1.25),
    )
    found = factors_of_hours(site().site_id, "pue", START, START + 4 * HOUR)
    at = [factor_of_hour(found, START + place * HOUR).value for place in range(3)]
    assert at == [1.3, 1.3, 1.25]
    november = datetime(2025, 11, 1, tzinfo=UTC)
    later = factors_of_hours(site().site_id, "pue", november, november + HOUR)
    assert factor_of_hour(later, november).tier == "published"


def test_a_changed_reading_measures_anew_and_keeps_the_old_factor():
    enter(row("facility_kwh", OCTOBER, 1_200), row("it_kwh", OCTOBER, 1_000))
    assert enter(row("it_kwh", OCTOBER, 1_000)).new == 0
    enter(row("it_kwh", OCTOBER, 960), now=NOW + HOUR)
    assert pues() == {"month": (1.25, "measured")}
    old = HourlyFactor.objects.get(value=1.2)
    assert old.superseded_at == NOW + HOUR


def test_meters_that_make_no_possible_pue_are_refused_with_both_figures():
    enter(row("it_kwh", OCTOBER, 1_000))
    with pytest.raises(FactorError, match="facility_kwh is 900 kWh and it_kwh 1000 kWh"):
        enter(row("facility_kwh", OCTOBER, 900))
    assert SiteMeterReading.objects.count() == 1


def test_a_pue_below_one_or_over_a_day_is_refused():
    with pytest.raises(FactorError, match=r"0\.9"):
        enter(row("pue", OCTOBER, 0.9))
    with pytest.raises(FactorError, match="over a day"):
        enter(row("pue", "2025-10-01", 1.2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("what,value\npue,1.2\n", "lacks period"),
        ("what,period,value,unit\npue,2025-10,1.2,x\n", "unit"),
        ("what,period,value\npue,2025-10,1.2\npue,2025-11\n", "Row 3 has 2 fields"),
        ('what,period,value\npue,2025-10,"1,2"\n', "Row 2, value: '1,2'.*kWh/kWh"),
        ("what,period,value\nwater_l,2025-10,-4\n", "Row 2, value: '-4'.* of L"),
        ("what,period,value\nsteam,2025-10,1\n", "Row 2, what: 'steam'"),
        ("what,period,value\npue,Oct 25,1.2\n", "Row 2, period: 'Oct 25'"),
        ("what,period,value,tier\npue,2025-10,1.2,sure\n", "Row 2, tier: 'sure'"),
        ("what,period,value\n", "no rows"),
        ('what,period,value\n"pue,2025-10,1.2\n', "cannot be read"),
    ],
)
def test_a_file_is_refused_whole_with_row_field_and_unit(text, message):
    with pytest.raises(FactorError, match=message):
        read_meter_rows(text.encode())


def test_two_values_of_one_period_in_a_file_are_refused():
    with pytest.raises(FactorError, match="twice, as 1 and 2 kWh"):
        enter(row("it_kwh", OCTOBER, 1), row("it_kwh", OCTOBER, 2))


def test_readings_are_added_and_withdrawn_on_the_page(admin, hall):
    data = {
        "what": "it_kwh",
        "period": OCTOBER,
        "value": "1000",
        "tier": "measured",
        "source": "M1",
    }
    assert admin.post("/sites/hall-1/meters/", data).status_code == 302
    file = SimpleUploadedFile("m.csv", b"what,period,value\nfacility_kwh,2025-10,1300\n")
    assert admin.post("/sites/hall-1/meters/upload/", {"file": file}).status_code == 302
    assert pues() == {"month": (1.3, "measured")}
    text = admin.get("/sites/hall-1/meters/").content.decode()
    assert "2025-10" in text
    assert "1.300" in text
    reading = SiteMeterReading.objects.get(meter="it_kwh")
    assert admin.post(f"/sites/hall-1/meters/readings/{reading.pk}/withdraw/").status_code == 302
    assert pues() == {}
    run_closing()
    assert facility_kwh() == pytest.approx(6.0)
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"site_meters.entered", "site_meters.withdrawn"} <= actions


def test_an_entered_factor_can_be_withdrawn_and_a_measured_one_cannot(admin, hall):
    data = {"what": "pue", "period": OCTOBER, "value": "1.3", "tier": "published", "source": "x"}
    admin.post("/sites/hall-1/meters/", data)
    row_ = HourlyFactor.objects.get(superseded_at__isnull=True)
    assert admin.post(f"/sites/hall-1/meters/factors/{row_.pk}/withdraw/").status_code == 302
    assert pues() == {}
    enter(row("facility_kwh", OCTOBER, 1_200), row("it_kwh", OCTOBER, 1_000))
    row_ = HourlyFactor.objects.get(superseded_at__isnull=True)
    assert admin.post(f"/sites/hall-1/meters/factors/{row_.pk}/withdraw/").status_code == 404


def test_a_wrong_upload_is_refused_on_the_page(admin, hall):
    file = SimpleUploadedFile("m.csv", b"what,period,value\nit_kwh,2025-10,much\n")
    answer = admin.post("/sites/hall-1/meters/upload/", {"file": file})
    assert answer.status_code == 200
    assert "Row 2, value" in answer.content.decode()
    data = {"what": "pue", "period": OCTOBER, "value": "0.5", "tier": "measured"}
    assert "0.5" in admin.post("/sites/hall-1/meters/", data).content.decode()
    assert not SiteMeterReading.objects.exists()


def test_auditors_see_meters_and_cannot_write(hall):
    client = signed_in(person("rita", role=OrganisationRole.AUDITOR))
    enter(row("it_kwh", OCTOBER, 1_000))
    text = client.get("/sites/hall-1/meters/").content.decode()
    assert "withdraw" not in text
    assert client.post("/sites/hall-1/meters/", {}).status_code == 403
    assert client.post("/sites/hall-1/meters/upload/", {}).status_code == 403


def test_meters_go_out_and_in_with_the_document_unchanged(hall):
    document = {
        "sites": [
            {
                "slug": "hall-1",
                "meters": [
                    {"what": "facility_kwh", "period": OCTOBER, "value": 1_200, "source": "M1"},
                    {"what": "it_kwh", "period": OCTOBER, "value": 1_000},
                    {"what": "pue", "period": 2024, "value": 1.4, "tier": "published"},
                ],
            }
        ]
    }
    apply(operator(), document)
    assert facility_kwh() == pytest.approx(4.8)
    dumped = dump(organisation().pk)
    (found,) = dumped["sites"]
    assert len(found["meters"]) == 3
    apply(operator(), dumped)
    assert dump(organisation().pk) == dumped
    assert SiteMeterReading.objects.count() == 2
