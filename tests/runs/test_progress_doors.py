"""The progress door: repeat-safe, in gzip or bare, by records or columns, refusals by place."""

import gzip
import json
from datetime import timedelta

import pytest

from projects.records import OrganisationRole, Role, Scope, TokenReach
from runs.models import Run, StepReading
from tests import builders
from tests.runs.builders import T0, make_run, record, steps, the_project

pytestmark = pytest.mark.django_db
DOOR = "/api/v1/runs/moe/main/progress"


@pytest.fixture(autouse=True)
def moe():
    return the_project()


def text(at):
    return at.isoformat().replace("+00:00", "Z")


def point(number=1, **changes):
    at = text(T0 + timedelta(minutes=number))
    return {"at": at, "step": number, "tokens_total": number * 10, "loss": 2.0, **changes}


def post(document, *, secret=None, door=DOOR, zipped=False):
    client = builders.with_token(secret or builders.token(Scope.INGEST_RUNS))
    body = json.dumps(document).encode()
    headers = {"content-encoding": "gzip"} if zipped else {}
    return client.post(
        door,
        gzip.compress(body) if zipped else body,
        content_type="application/json",
        headers=headers,
    )


def test_a_run_is_made_by_its_first_report_and_a_repeat_changes_nothing():
    document = {
        "format": "costwatch-progress/1",
        "source": "agent-tail:node-7",
        "records": [point(1), point(2, loss="nan")],
        "events": [{"at": text(T0), "kind": "start"}],
    }
    first, again = post(document), post(document)
    assert first.json() == {
        "points_new": 2,
        "points_known": 0,
        "events_new": 1,
        "events_known": 0,
        "refused": [],
    }
    assert (again.status_code, again.json()["points_known"]) == (200, 2)
    assert Run.objects.get().slug == "main"
    assert StepReading.objects.first().source.name == "agent-tail:node-7"


def test_columns_and_gzip_say_the_same():
    columns = {"at": [point(1)["at"], point(2)["at"]], "step": [1, 2], "loss": [2.0, None]}
    assert post({"points": columns}, zipped=True).json()["points_new"] == 2
    assert list(StepReading.objects.values_list("loss", flat=True)) == [2.0, None]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (point(2, step=-1), "step"),
        (point(2, step=1.5), "step"),
        (point(2, step=True), "step"),
        (point(2, at="yesterday"), "at"),
        (point(2, at="2026-09-14T00:00:00"), "at"),
        (point(2, at=None), "at"),
        (point(2, colour="red"), "colour"),
        (point(2, loss="much"), "loss"),
        (point(2, step_time_s="nan"), "step_time_s"),
        (point(2, tokens_total=10**30), "tokens_total"),
        (point(2, data_shard=7), "data_shard"),
        ("a line", ""),
    ],
)
def test_a_bad_record_is_named_and_the_others_are_kept(record, field):
    answer = post({"records": [point(1), record]})
    assert answer.status_code == 200
    assert answer.json()["points_new"] == 1
    assert [(one["index"], one["field"]) for one in answer.json()["refused"]] == [(1, field)]


def test_where_nothing_can_be_taken_the_answer_is_400_with_field_and_place():
    answer = post({"records": [point(1, step=-1)]})
    assert answer.status_code == 400
    assert (answer.json()["field"], answer.json()["row"]) == ("step", 0)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "document"),
        ({"format": "costwatch-progress/9"}, "format"),
        ({"colour": "red"}, "colour"),
        ({"records": {}}, "records"),
        ({"points": {"at": [1], "step": [1, 2]}}, "points.at"),
        ({"points": {"at": [], "colour": []}}, "points.colour"),
        ({"source": 7}, "source"),
    ],
)
def test_what_is_no_document_is_refused_whole(document, field):
    answer = post(document)
    assert (answer.status_code, answer.json().get("field")) == (400, field)


def test_an_event_of_no_kind_is_named():
    answer = post({"events": [{"at": text(T0), "kind": "party"}]})
    assert answer.json()["field"] == "events.kind"


def test_a_token_needs_the_scope_and_reaches_its_project_only(moe):
    assert post({}, secret=builders.token(Scope.INGEST_POWER)).status_code == 403
    mine = TokenReach(project_slug=builders.project("other").slug)
    assert post({}, secret=builders.token(Scope.INGEST_RUNS, reach=mine)).status_code == 404


def test_people_need_to_be_analysts(moe):
    for role, status in ((Role.VIEWER, 403), (Role.ANALYST, 200)):
        person = builders.person(f"a-{role}")
        person.memberships.create(project=moe, role=role)
        client = builders.signed_in(person)
        answer = client.post(DOOR, {"records": [point(1)]}, content_type="application/json")
        assert answer.status_code == status


def test_days_are_read_back():
    run = make_run()
    record(run, steps(0, 720, at=T0))
    client = builders.with_token(builders.token(Scope.READ_COSTS))
    answer = client.get(DOOR, {"start": "2026-09-14", "end": "2026-09-15"}).json()
    assert answer["run"]["step"] == 720
    assert [day["last_step"] for day in answer["days"]] == [720]
    assert answer["mfu_basis"]["flop_per_token"] == 6e9
    assert client.get("/api/v1/runs/moe").json()[0]["slug"] == "main"


@pytest.mark.parametrize("query", [{"start": "x"}, {"as_of": "x"}, {"as_of": "2026-09-14T00:00"}])
def test_a_question_that_cannot_be_read_names_its_field(query):
    make_run()
    client = builders.with_token(builders.token(Scope.READ_COSTS))
    answer = client.get(DOOR, query)
    assert (answer.status_code, answer.json()["field"]) == (400, next(iter(query)))


def test_an_unknown_run_is_not_found_when_read():
    client = builders.signed_in(builders.person("root", role=OrganisationRole.ADMIN))
    assert client.get("/api/v1/runs/moe/none/progress").status_code == 404
