"""The contract of POST power/batches: 2xx is durable, 4xx is final, 503 asks to send again."""

import gzip
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from carbon import services
from carbon.models import OpenHours, PowerSample
from carbon.selectors import deliveries, emissions_summary
from jobs.models import Job
from projects.records import Role, Scope, TokenReach
from tests.builders import organisation, person, project, signed_in, token, with_token
from tests.carbon.builders import SAMPLES, imported, instant, samples, site, write_csv

pytestmark = pytest.mark.django_db
URL = "/api/v1/power/batches"


@pytest.fixture
def agent():
    return with_token(token(Scope.INGEST_POWER, reach=TokenReach(site_id=site().site_id)))


def batch(*, start: datetime | None = None, count: int = 4, **more):
    begin = start or timezone.now() - timedelta(hours=3)
    return {
        "samples": [
            {
                "at": instant(begin + timedelta(seconds=15 * step)),
                "device_uuid": "GPU-1",
                "power_w": 650,
                **more,
            }
            for step in range(count)
        ]
    }


def post(client, document, **more):
    return client.post(URL, document, content_type="application/json", **more)


def test_without_a_token_nothing_is_taken(client):
    assert post(client, batch()).status_code == 401


def test_a_token_without_the_scope_is_refused():
    reach = TokenReach(site_id=site().site_id)
    client = with_token(token(Scope.READ_COSTS, reach=reach))
    assert post(client, batch()).status_code == 403


def test_a_batch_is_stored_and_counted(agent):
    answer = post(agent, batch(node="n1", model="NVIDIA H100 80GB HBM3"))
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert (document["rows"], document["rejected"], document["duplicates"]) == (4, 0, 0)
    assert PowerSample.objects.count() == 4
    assert Job.objects.filter(kind="carbon.close_hours").count() == 1


def test_the_same_batch_again_changes_nothing(agent):
    document = batch()
    post(agent, document)
    answer = post(agent, document).json()
    assert (answer["rows"], answer["duplicates"]) == (4, 4)
    assert PowerSample.objects.count() == 4
    assert OpenHours.objects.count() == 1


def test_impossible_readings_are_set_aside_and_the_rest_stored(agent):
    document = batch()
    document["samples"][1]["power_w"] = -5
    answer = post(agent, document).json()
    assert (answer["rejected"], answer["reasons"]) == (1, {"negative": 1})
    assert PowerSample.objects.count() == 3


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"points": []},
        {"samples": {}},
        {"samples": [{"at": "2025-10-01T00:00:00Z", "device_uuid": "g"}]},
        {"samples": [{"at": "2025-10-01T00:00:00Z", "device_uuid": "g", "power_w": "650"}]},
        {"samples": [{"at": "2025-10-01T00:00:00Z", "device_uuid": "g", "power_w": True}]},
        {"samples": [{"at": "now", "device_uuid": "g", "power_w": 1}]},
        {"samples": [{"at": "2025-10-01T00:00:00Z", "device_uuid": "", "power_w": 1}]},
        {"samples": [{"at": "2025-10-01T00:00:00Z", "device_uuid": "g", "power_w": 1, "x": 1}]},
        {
            "intervals": [
                {
                    "start": "2025-10-01T00:00:00Z",
                    "end": "2025-10-01T01:00:00Z",
                    "device_uuid": "g",
                    "energy_millijoule": 1.5,
                }
            ]
        },
    ],
)
def test_what_a_retry_cannot_mend_is_refused_for_good(agent, document):
    answer = post(agent, document)
    assert answer.status_code == 400, answer.content
    assert answer.json()["message"]
    assert not PowerSample.objects.exists()


def test_the_place_of_an_unreadable_value_is_named(agent):
    document = batch()
    document["samples"][2]["at"] = "now"
    assert "samples[2].at" in post(agent, document).json()["message"]


def test_csv_is_taken_too(agent):
    begin = timezone.now().astimezone(UTC) - timedelta(hours=2)
    lines = [",".join(SAMPLES), *(",".join(row) for row in samples(count=3, start=begin))]
    answer = agent.post(URL, "\n".join(lines), content_type="text/csv")
    assert answer.status_code == 200, answer.content
    assert answer.json()["rows"] == 3


def test_a_broken_csv_names_its_row(agent):
    answer = agent.post(
        URL, "at,device_uuid,power_w\n2025-10-01T00:00:00Z,g\n", content_type="text/csv"
    )
    assert answer.status_code == 400
    assert "row 2" in answer.json()["message"]


def test_a_gzip_of_very_many_members_is_refused_at_once(agent):
    body = gzip.compress(b"") * 200_000
    started = time.monotonic()
    answer = post(agent, body, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (400, "gzip")
    assert time.monotonic() - started < 5.0


def test_when_the_database_fails_the_sender_is_asked_to_send_again(agent, monkeypatch):
    def fail(*args, **kwargs):
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(services, "store_batch", fail)
    answer = post(agent, batch())
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0


def test_a_token_of_one_site_cannot_send_for_another(agent):
    site("hall-2")
    assert (
        agent.post(f"{URL}?site=hall-2", batch(), content_type="application/json").status_code
        == 403
    )


def test_a_token_of_all_sites_must_name_one_that_exists():
    client = with_token(token(Scope.INGEST_POWER))
    assert post(client, batch()).status_code == 400
    site("hall-2")
    answer = client.post(f"{URL}?site=hall-2", batch(), content_type="application/json")
    assert answer.json()["site"] == "hall-2"


def test_a_day_of_batches_is_one_line_of_the_history(agent):
    post(agent, batch(count=2))
    post(agent, batch(start=timezone.now() - timedelta(hours=5), count=3))
    (row,) = deliveries(organisation().pk)
    assert (row.kind, row.rows) == ("api", 5)


def test_the_closing_job_brings_a_batch_to_the_books(agent):
    start = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
    post(agent, batch(start=start, count=121))
    services.close_hours(organisation().pk, now=timezone.now())
    whole = emissions_summary(organisation().pk, None)
    assert whole.accelerator_energy_kwh == pytest.approx(0.325)


def test_a_projects_energy_and_emissions_are_read_by_its_people_only(tmp_path):
    alice = person("alice")
    moe = project(members=[(alice, Role.VIEWER)])
    project("other")
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples()))
    client = signed_in(alice)
    energy = client.get(f"/api/v1/projects/{moe.slug}/energy")
    assert energy.json() == {"project": "moe", "as_of": None, "days": []}
    emissions = client.get(f"/api/v1/projects/{moe.slug}/emissions?from=2025-10-01&to=2025-10-31")
    assert emissions.json()["from"] == "2025-10-01"
    assert emissions.json()["scope_2_location_kgco2e"] is None
    assert client.get("/api/v1/projects/other/energy").status_code == 404
    assert client.get(f"/api/v1/projects/{moe.slug}/energy?from=soon").status_code == 400
