"""Idempotency-Key: the same request is done once, however often and whenever it is repeated."""

import threading
import uuid

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import QueryDict
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from projects import services
from projects.idempotency import _hash_of
from projects.models import Project, RememberedAnswer
from projects.records import OrganisationRole, Scope
from tests import builders

pytestmark = pytest.mark.django_db
PROJECTS = "/api/v1/projects"


@pytest.fixture
def text():
    return builders.token(Scope.ADMIN_ORG)


def post(text, key, body=None):
    return builders.with_token(text).post(
        PROJECTS,
        body or {"slug": "moe", "name": "MoE"},
        content_type="application/json",
        headers={"idempotency-key": key},
    )


def test_a_repeated_request_gets_the_first_answer(text):
    first, second = post(text, "k"), post(text, "k")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert Project.objects.count() == 1


def test_another_body_under_the_same_key_is_refused(text):
    post(text, "k")
    response = post(text, "k", {"slug": "other", "name": "Other"})
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_a_refused_request_is_not_remembered(text):
    assert post(text, "k", {"slug": "moe"}).status_code == 400
    assert post(text, "k").status_code == 201


@pytest.mark.parametrize("key", ["", "k" * 256, "a\x7fb"])
def test_a_key_that_is_none_is_refused(text, key):
    response = post(text, key)
    assert (response.status_code, response.json()["code"]) == (400, "idempotency_key")
    assert Project.objects.count() == 0


def test_the_longest_key_is_fine(text):
    assert post(text, "k" * 255).status_code == 201


def test_keys_of_different_callers_do_not_meet(text):
    post(text, "k")
    other = builders.token(Scope.ADMIN_ORG)
    assert post(other, "k", {"slug": "second", "name": "Second"}).status_code == 201


def test_without_a_key_nothing_is_remembered():
    client = builders.signed_in(builders.person(role=OrganisationRole.ADMIN))
    body = {"slug": "moe", "name": "MoE"}
    assert client.post(PROJECTS, body, content_type="application/json").status_code == 201
    repeated = client.post(PROJECTS, body, content_type="application/json")
    assert (repeated.status_code, repeated.json()["field"]) == (400, "slug")
    assert RememberedAnswer.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_fifty_racing_twins_have_one_effect(text):
    key = str(uuid.uuid4())
    barrier = threading.Barrier(50)
    answers = []

    def race():
        try:
            barrier.wait()
            answers.append(post(text, key))
        finally:
            connection.close()

    threads = [threading.Thread(target=race) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 50
    assert {answer.status_code for answer in answers} <= {201, 409}
    made = [answer for answer in answers if answer.status_code == 201]
    assert len([answer for answer in made if "Idempotent-Replayed" not in answer]) == 1
    assert len({answer.json()["id"] for answer in made}) == 1
    assert Project.objects.count() == 1
    assert post(text, key).json() == made[0].json()


@pytest.mark.django_db(transaction=True)
def test_a_twin_in_flight_is_told_to_wait(text, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()
    create = services.create_project

    def slow_create(*args, **kwargs):
        begun.set()
        may_end.wait(10)
        return create(*args, **kwargs)

    def slow_post():
        try:
            first.append(post(text, "k"))
        finally:
            connection.close()

    first = []
    monkeypatch.setattr(services, "create_project", slow_create)
    thread = threading.Thread(target=slow_post)
    thread.start()
    assert begun.wait(10)
    twin = post(text, "k")
    may_end.set()
    thread.join()
    assert (twin.status_code, twin.json()["code"]) == (409, "idempotency_twin_in_flight")
    assert first[0].status_code == 201
    assert post(text, "k")["Idempotent-Replayed"] == "true"


def hash_of_upload(**fields):
    request = APIRequestFactory().post("/upload", {})
    wrapped = Request(request, parsers=[JSONParser()])
    data = QueryDict(mutable=True)
    for name, value in fields.items():
        data.appendlist(name, value)
    wrapped._full_data = data
    return _hash_of(wrapped)


def test_an_upload_is_hashed_by_name_and_content_and_can_be_read_afterwards():
    file = SimpleUploadedFile("bill.csv", b"a,b\n1,2\n")
    first = hash_of_upload(source="aws", file=file)
    assert file.read() == b"a,b\n1,2\n"
    assert hash_of_upload(source="aws", file=SimpleUploadedFile("bill.csv", b"a,b\n1,2\n")) == first
    for source, name, content in [
        ("aws", "bill.csv", b"a,b\n1,3\n"),
        ("aws", "bill2.csv", b"a,b\n1,2\n"),
        ("gcp", "bill.csv", b"a,b\n1,2\n"),
    ]:
        other = hash_of_upload(source=source, file=SimpleUploadedFile(name, content))
        assert other != first
