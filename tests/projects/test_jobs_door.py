"""Who may see a job: its project's people, organisation-wide roles, and whoever asked for it."""

import uuid

import pytest

from jobs.services import enqueue, run_job
from projects.records import OrganisationRole, Role, Scope
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _kinds(settings):
    settings.JOB_KINDS = {"tests.count": "tests.jobs.kinds:count"}


def ask(scope="organisation", **who):
    return enqueue(
        organisation_id=builders.organisation().pk,
        kind="tests.count",
        scope=scope,
        payload={},
        **who,
    )


def statuses(user, job):
    client = builders.signed_in(user)
    return (
        client.get(f"/jobs/{job.pk}/progress/").status_code,
        client.get(f"/api/v1/jobs/{job.pk}").status_code,
    )


def test_a_job_of_a_project_is_seen_by_its_people():
    vera, newt = builders.person("vera"), builders.person("newt")
    moe = builders.project("moe", members=[(vera, Role.VIEWER)])
    job = ask(f"project:{moe.pk}")
    assert statuses(vera, job) == (200, 200)
    assert statuses(newt, job) == (404, 404)


def test_a_job_of_the_organisation_is_seen_by_its_roles_and_by_who_asked():
    vera, newt = builders.person("vera"), builders.person("newt")
    audrey = builders.person("audrey", role=OrganisationRole.AUDITOR)
    job = ask(created_by_user_id=vera.pk)
    assert statuses(vera, job) == statuses(audrey, job) == (200, 200)
    assert statuses(newt, job) == (404, 404)


@pytest.mark.parametrize("scope", ["organisation", "project:nonsense", ""])
def test_a_foreign_or_unknown_job_is_404(scope):
    charlie = builders.person(
        "charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    job = ask(scope, created_by_user_id=charlie.pk)
    assert statuses(charlie, job) == (404, 404)
    job.pk = uuid.uuid4()
    assert statuses(charlie, job) == (404, 404)


def test_an_uploading_token_sees_the_jobs_that_it_asked_for():
    text = builders.token(Scope.UPLOAD_BILLING)
    token_id = uuid.UUID(hex=text.split("_")[2])
    mine, other = ask(created_by_token_id=token_id), ask()
    client = builders.with_token(text)
    assert client.get(f"/api/v1/jobs/{mine.pk}").status_code == 200
    assert client.get(f"/api/v1/jobs/{other.pk}").status_code == 404


def test_the_fragment_stops_asking_when_the_job_is_over():
    ada = builders.person("ada", role=OrganisationRole.ADMIN)
    job = ask()
    client = builders.signed_in(ada)
    address = f"/jobs/{job.pk}/progress/"
    assert f'hx-get="{address}"' in client.get(address).content.decode()
    run_job(job.pk)
    page = client.get(address)
    assert "hx-get" not in page.content.decode()
    assert page["HX-Trigger"] == "job-over"
    document = client.get(f"/api/v1/jobs/{job.pk}").json()
    assert (document["state"], document["rows_done"], document["result"]) == (
        "succeeded",
        3,
        {"rows": 3},
    )
