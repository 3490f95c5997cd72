"""Pages and REST doors of intent: from a question to a baseline, by role and by token."""

from datetime import date
from decimal import Decimal

import pytest
from django.test import Client

from planning.models import Estimate, PlanVersion
from planning.presets import PRESETS
from projects.access import Role, Scope
from projects.models import Project, User
from projects.records import TokenReach
from tests import builders
from tests.planning.builders import make_spec

pytestmark = pytest.mark.django_db

FORM = {
    "name": "Main run",
    "params": "64B",
    "active_params": "10B",
    "tokens": "10T",
    "accelerator": "h100-sxm-80gb",
    "accelerator_count": "256",
    "precision": "bf16",
    "step_mfu": "0.55",
    "goodput": "1",
    "price": "2.50",
    "currency": "USD",
}


@pytest.fixture
def project() -> Project:
    alice, bob = builders.person("alice"), builders.person("bob")
    return builders.project("moe", members=[(alice, Role.OWNER), (bob, Role.VIEWER)])


def signed_in(name: str) -> Client:
    return builders.signed_in(User.objects.get(username=name))


def test_a_question_becomes_an_estimate_a_draft_and_a_baseline(project: Project) -> None:
    client = signed_in("alice")
    answered = client.post("/estimates/new/", FORM)
    assert answered.status_code == 302
    page = client.get(answered["Location"])
    assert "49.8" in page.content.decode()
    drafted = client.post(answered["Location"], {"project": "moe", "starts_on": "2026-09-14"})
    assert drafted["Location"] == "/projects/moe/plan/"
    approved = client.post("/projects/moe/plan/approve/", {"reason": ""})
    assert approved["Location"] == "/projects/moe/"
    version = PlanVersion.objects.get()
    assert version.state == "approved"
    assert version.approved_by == "alice"
    assert version.main_run_ends_on == date(2026, 11, 3)
    assert client.get("/projects/moe/").status_code == 200
    assert client.get("/").status_code == 200


def test_the_lines_of_a_draft_are_changed_on_the_page(project: Project) -> None:
    client = signed_in("alice")
    where = client.post("/estimates/new/", FORM)["Location"]
    client.post(where, {"project": "moe", "starts_on": "2026-09-14"})
    lines = PlanVersion.objects.get().lines.all()
    data = {}
    for line in lines:
        data[f"{line.key}-starts_on"] = line.starts_on.isoformat()
        data[f"{line.key}-ends_on"] = line.ends_on.isoformat()
        data[f"{line.key}-percent"] = str(line.fraction * 100)
    data["experiments-percent"] = "50"
    assert client.post("/projects/moe/plan/", data).status_code == 302
    assert PlanVersion.objects.get().lines.get(key="experiments").fraction == Decimal("0.5")


def test_a_mistake_is_told_beside_its_field_and_nothing_is_kept(project: Project) -> None:
    page = signed_in("alice").post("/estimates/new/", FORM | {"step_mfu": "55"})
    assert "55 % is 0.55" in page.content.decode()
    assert Estimate.objects.count() == 0


def test_counts_are_written_as_people_write_them(project: Project) -> None:
    page = signed_in("alice").post("/estimates/new/", FORM | {"tokens": "ten"})
    assert "10T" in page.content.decode()
    assert Estimate.objects.count() == 0


def test_a_viewer_may_read_the_plan_but_not_change_it(project: Project) -> None:
    bob = signed_in("bob")
    assert bob.get("/projects/moe/plan/").status_code == 200
    assert bob.post("/projects/moe/plan/approve/", {}).status_code == 403
    assert bob.post("/estimates/new/", FORM).status_code == 403


def test_an_estimate_of_somebody_else_is_not_to_be_found(project: Project) -> None:
    where = signed_in("alice").post("/estimates/new/", FORM)["Location"]
    assert signed_in("bob").get(where).status_code == 404


def test_the_rest_door_answers_like_the_command(project: Project) -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))
    answer = client.post("/api/v1/estimates", make_spec(), content_type="application/json")
    assert answer.status_code == 201
    assert answer.json()["training_flop"] == 6.0e23
    assert answer.json()["cost"]["p50"].startswith("765")


def test_the_same_idempotency_key_makes_one_estimate(project: Project) -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))
    answers = [
        client.post(
            "/api/v1/estimates",
            make_spec(),
            content_type="application/json",
            headers={"Idempotency-Key": "kickoff-1"},
        ).content
        for _attempt in range(2)
    ]
    assert answers[0] == answers[1]
    assert Estimate.objects.count() == 1


def test_a_wrong_field_is_named(project: Project) -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))
    answer = client.post("/api/v1/estimates", make_spec(pue=0.9), content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["field"] == "pue"


def test_the_burn_down_door_needs_a_reading_scope(project: Project) -> None:
    reader = builders.with_token(builders.token(Scope.READ_COSTS))
    sender = builders.with_token(builders.token(Scope.INGEST_POWER))
    assert reader.get("/api/v1/projects/moe/burndown").status_code == 200
    assert sender.get("/api/v1/projects/moe/burndown").status_code == 403


def test_an_unreadable_instant_or_basis_is_refused(project: Project) -> None:
    reader = builders.with_token(builders.token(Scope.READ_COSTS))
    for query in ("as_of=yesterday", "basis=blended"):
        answer = reader.get(f"/api/v1/projects/moe/burndown?{query}")
        assert answer.status_code == 400
        assert answer.json()["field"] == query.partition("=")[0]


def test_a_project_without_plan_bill_or_power_says_what_to_do_next(project: Project) -> None:
    page = signed_in("bob").get("/projects/moe/").content.decode()
    assert "No approved plan yet" in page
    assert "No charges are attributed to this project yet" in page
    assert "No power is attributed to this project yet" in page


def test_the_end_of_time_is_an_answer_not_an_error():
    builders.project("moe")
    client = builders.with_token(builders.token(Scope.READ_COSTS))
    assert client.get("/api/v1/projects/moe/burndown?as_of=9999-12-31T23:00:00Z").status_code == 200


def test_an_estimate_of_a_projects_token_belongs_to_the_project():
    builders.project("moe")
    client = builders.with_token(
        builders.token(Scope.MANAGE_PROJECT, reach=TokenReach(project_slug="moe"))
    )
    spec = dict(PRESETS["chapter-10b-moe"])
    made = client.post("/api/v1/estimates", spec, content_type="application/json")
    assert made.status_code == 201
    assert len(client.get("/api/v1/estimates").json()["estimates"]) == 1
