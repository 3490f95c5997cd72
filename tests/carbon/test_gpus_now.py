"""GPUs now, senders, the calendar of meters and /metrics: what is silent is said, never summed."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from carbon.coverage_selectors import device_rows, site_days
from carbon.models import DeviceNow, IntakeBody, Sender, SenderGap
from carbon.now_selectors import sites_now
from projects.records import OrganisationRole, Role, Scope
from runs.selectors import devices_of
from tests.builders import organisation, person, signed_in, token, with_token
from tests.carbon.builders import START, site
from tests.carbon.energy_builders import hall

pytestmark = pytest.mark.django_db


def now() -> datetime:
    """The clock of the pages: a run of all tests takes longer than a reading stays fresh."""
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


def report(place, *, ages_s, power_w=500.0):
    """A newest reading for each device, so many seconds old."""
    for device, age_s in zip(devices_of(place.site_id), ages_s, strict=False):
        DeviceNow.objects.create(
            device_id=device.device_id,
            organisation_id=place.organisation_id,
            site_id=place.site_id,
            sender_id=1,
            at=now() - timedelta(seconds=age_s),
            power_w=power_w,
            power_field="average",
            use={"utilisation_fraction": 0.9, "temperature_c": 61.0, "power_limit_w": 700.0},
            received_at=now(),
        )


def test_totals_name_their_factors_and_leave_the_silent_out(tmp_path):
    made = hall(tmp_path)
    report(made.site, ages_s=[5, 5, 5, 900])
    (found,) = sites_now(organisation().pk, now=now())
    assert (found.live, found.stale) == (3, 1)
    assert found.power_w == 1500.0
    assert found.it_power_w == pytest.approx(1500 * 1.5)
    assert found.facility_power_w == pytest.approx(1500 * 1.5 * 1.2)
    assert found.emitted_kgco2e_per_h == pytest.approx(2.7 * 400 / 1000)
    assert found.grid_hour is None


def test_a_site_whose_devices_are_all_silent_shows_no_power_as_live(tmp_path, admin):
    made = hall(tmp_path)
    report(made.site, ages_s=[900] * 4)
    (found,) = sites_now(organisation().pk, now=now())
    assert found.power_w is None
    assert found.emitted_kgco2e_per_h is None
    text = admin.get("/power/now/").content.decode()
    assert "not known now" in text
    assert "4 devices silent" in text


def test_a_site_with_files_only_says_when_its_last_hour_was(tmp_path, admin):
    hall(tmp_path)
    text = admin.get("/power/now/").content.decode()
    assert "The last hour on record is" in text
    assert "costwatch-agent --server" in text
    assert "remote_write:" in text


def test_the_page_asks_again_for_its_fragment(tmp_path, admin):
    made = hall(tmp_path)
    report(made.site, ages_s=[5] * 4)
    answer = admin.get("/power/now/", headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert 'hx-trigger="every 10s"' in text
    assert "<html" not in text


def test_gpus_now_and_senders_are_for_the_organisation():
    client = signed_in(person("bob"))
    for address in ("/power/now/", "/senders/", "/energy/coverage/", "/metrics"):
        assert client.get(address).status_code == 403


def make_sender(place, **more):
    values = {
        "kind": "agent",
        "name": "node-1",
        "version": "1.0.0",
        "first_seen_at": now(),
        "last_seen_at": now(),
        "last_reading_at": now(),
        **more,
    }
    return Sender.objects.create(
        organisation_id=place.organisation_id, site_id=place.site_id, **values
    )


def test_senders_with_trouble_come_first_and_say_what_it_is(admin):
    place = site()
    make_sender(place, name="good")
    gappy = make_sender(place, name="gappy", dropped=12)
    make_sender(place, name="quiet", last_seen_at=now() - timedelta(hours=1))
    make_sender(place, name="barred", refused_since=now(), last_error="The token has expired.")
    SenderGap.objects.create(
        organisation_id=place.organisation_id,
        sender=gappy,
        boot_id="b",
        first_sequence=3,
        last_sequence=7,
        seen_at=now(),
    )
    text = admin.get("/senders/").content.decode()
    assert [text.index(f">{name}<") for name in ("barred", "gappy", "quiet", "good")] == sorted(
        text.index(f">{name}<") for name in ("barred", "gappy", "quiet", "good")
    )
    assert "batches missing" in text
    detail = admin.get(f"/senders/{gappy.pk}/").content.decode()
    assert "3 – 7" in detail
    assert admin.get("/senders/987654321/").status_code == 404


def test_the_calendar_of_devices_sums_to_that_of_the_site(tmp_path, admin):
    made = hall(tmp_path, days=3)
    first = START.date()
    end = first + timedelta(days=3)
    days = site_days(made.site.organisation_id, made.site.site_id, first, end)
    rows = device_rows(made.site.organisation_id, made.site.site_id, first, end)
    for day, one in days.items():
        assert sum(found[day].expected for _device, found in rows if day in found) == one.expected
        assert sum(found[day].covered for _device, found in rows if day in found) == one.covered
    text = admin.get("/energy/coverage/").content.decode()
    assert "2025-10" in text
    month = admin.get("/energy/coverage/?site=hall-1&month=2025-10").content.decode()
    assert "GPU-0000" in month
    assert admin.get("/energy/coverage/?site=nosuch&month=2025-10").status_code == 404
    assert admin.get("/energy/coverage/?site=hall-1&month=x").status_code == 400


def test_a_day_without_readings_of_an_assigned_device_is_a_gap(tmp_path, admin):
    from carbon.models import EnergyHour
    from tests.carbon.energy_builders import close

    made = hall(tmp_path, days=3)
    EnergyHour.objects.filter(
        hour__gte=START + timedelta(days=1), hour__lt=START + timedelta(days=2)
    ).delete()
    close(made.site)
    text = admin.get("/energy/coverage/").content.decode()
    assert "meter-none" in text
    assert "no reading came" in text


def scraped(client) -> dict:
    answer = client.get("/metrics", headers={"Accept": "text/plain;version=0.0.4,*/*;q=0.1"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_metrics_are_refused_to_strangers_and_to_tokens_that_may_not_read(db):
    assert Client().get("/metrics").status_code in {401, 403}
    assert with_token(token(Scope.INGEST_POWER)).get("/metrics").status_code == 403


def test_metrics_say_energy_emissions_power_and_intake(tmp_path):
    made = hall(tmp_path)
    report(made.site, ages_s=[5, 5, 5, 900])
    sender = make_sender(made.site, rows=100, rejected=2)
    IntakeBody.objects.create(
        organisation_id=made.site.organisation_id,
        site_id=made.site.site_id,
        sender_id=sender.pk,
        sha256=b"1" * 32,
        body=b"",
        rows=1,
        received_at=now(),
    )
    found = scraped(with_token(token(Scope.READ_COSTS)))
    of_moe = (("project", "moe"), ("run", ""), ("site", "hall-1"))
    assert found["costwatch_energy_joules_total", of_moe] > 0
    assert found["costwatch_co2e_grams_total", of_moe] == pytest.approx(
        found["costwatch_energy_joules_total", of_moe] / 3.6e6 * 1.5 * 1.2 * 400
    )
    facility = (("boundary", "facility"), ("site", "hall-1"))
    assert found["costwatch_power_watts", facility] == pytest.approx(1500 * 1.8)
    assert found["costwatch_stale_devices", (("site", "hall-1"),)] == 1
    assert found["costwatch_intake_bodies_waiting", ()] == 1
    kind = (("sender_kind", "agent"), ("site", "hall-1"))
    assert found["costwatch_intake_rejected_total", kind] == 2


def test_a_role_of_the_organisation_may_scrape_too(tmp_path):
    assert (
        signed_in(person("aud", role=OrganisationRole.AUDITOR)).get("/metrics").status_code == 200
    )
    made = hall(tmp_path)
    bob = person("bob")
    made.moe.memberships.create(user=bob, role=Role.VIEWER)
    assert signed_in(bob).get("/metrics").status_code == 403


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("/energy/?by=day", 16),
        ("/energy/?by=node", 19),
        ("/energy/hours/2025-10-01T05/", 21),
        ("/energy/coverage/", 13),
        ("/energy/coverage/?site=hall-1&month=2025-10", 14),
        ("/power/now/", 27),
        ("/senders/", 10),
    ],
)
def test_a_page_asks_the_database_as_often_for_many_rows_as_for_few(
    tmp_path, admin, django_assert_max_num_queries, address, most
):
    made = hall(tmp_path)
    report(made.site, ages_s=[5] * 4)
    for number in range(12):
        make_sender(made.site, name=f"node-{number}")
    with django_assert_max_num_queries(most):
        assert admin.get(address).status_code == 200
