"""The REST doors of the catalogue: what the pages show, own rows with the scope admin:org only."""

import pytest

from projects.records import Scope, TokenReach
from runs.catalogue import shipped_accelerators, shipped_instance_types
from tests.builders import project, token, with_token
from tests.runs.test_catalogue_own_rows import chip, machine

pytestmark = pytest.mark.django_db

ACCELERATORS = "/api/v1/catalogue/accelerators"
TYPES = "/api/v1/catalogue/instance-types"


@pytest.fixture
def reader():
    return with_token(token(Scope.READ_COSTS))


@pytest.fixture
def writer():
    return with_token(token(Scope.ADMIN_ORG))


def post(client, address, body, **headers):
    return client.post(address, body, content_type="application/json", headers=headers)


def test_the_accelerators_are_listed_in_flop_per_s_with_their_sources(reader):
    rows = {row["key"]: row for row in reader.get(ACCELERATORS).json()}
    assert rows.keys() == shipped_accelerators().keys()
    h100 = rows["h100-sxm-80gb"]
    assert h100["peak_dense_flop_per_s"]["bf16"] == 989.4e12
    assert h100["peak_sparse_flop_per_s"]["bf16"] == 1978.9e12
    assert (h100["accelerators_per_node"], h100["is_own"]) == (8, False)
    assert rows["tpu-v5e"]["tdp_w"] is None
    assert all(row["source"] and row["source_date"] for row in rows.values())


def test_lists_are_narrowed(reader):
    assert {row["vendor"] for row in reader.get(f"{ACCELERATORS}?vendor=AMD").json()} == {"AMD"}
    types = reader.get(f"{TYPES}?accelerator=h100-sxm-80gb&provider=aws").json()
    assert {row["name"] for row in types} == {"p5.4xlarge", "p5.48xlarge"}


def test_the_instance_types_say_how_many_accelerators_each_holds(reader):
    rows = {(row["provider"], row["name"]): row for row in reader.get(TYPES).json()}
    assert len(rows) == len(shipped_instance_types())
    assert rows["aws", "p5.48xlarge"]["accelerator_count"] == "8"
    assert rows["gcp", "g4-standard-6"]["accelerator_count"] == "0.125"


def test_an_own_row_is_created_then_changed_then_repeated(writer):
    assert post(writer, ACCELERATORS, chip()).status_code == 201
    answer = post(writer, ACCELERATORS, chip(tdp_w=500))
    assert (answer.status_code, answer.json()["tdp_w"]) == (200, 500)
    assert answer.json()["is_own"] is True
    assert post(writer, ACCELERATORS, chip(tdp_w=500)).status_code == 200


def test_a_retry_with_the_same_key_is_answered_from_memory(writer):
    headers = {"Idempotency-Key": "one"}
    first = post(writer, ACCELERATORS, chip(), **headers)
    again = post(writer, ACCELERATORS, chip(), **headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert post(writer, ACCELERATORS, chip(tdp_w=1_000), **headers).status_code == 422


def test_an_own_instance_type_is_created(writer):
    assert post(writer, TYPES, machine()).status_code == 201
    row = post(writer, TYPES, machine(provider="aws", name="p5.48xlarge")).json()
    assert (row["is_own"], row["overrides_shipped"]) == (True, True)


@pytest.mark.parametrize(
    ("address", "body", "field", "said"),
    [
        (
            ACCELERATORS,
            chip(peak_dense_flop_per_s={"bf16": 989.4}),
            "peak_dense_flop_per_s.bf16",
            "TFLOP/s",
        ),
        (
            ACCELERATORS,
            chip(peak_sparse_flop_per_s={"bf16": 1e14}),
            "peak_sparse_flop_per_s.bf16",
            "must be above",
        ),
        (ACCELERATORS, {"key": "my-chip"}, "source", "required"),
        (ACCELERATORS, chip(colour="red"), "colour", "not permitted"),
        (TYPES, machine(accelerator="nothing"), "accelerator", "nothing"),
        (TYPES, [], None, "JSON object"),
        (ACCELERATORS, chip(name=["a"]), "name", "string"),
    ],
)
def test_a_refusal_names_field_and_unit(writer, address, body, field, said):
    answer = post(writer, address, body)
    assert answer.status_code == 400
    assert answer.json().get("field") == field
    assert said in answer.json()["message"]


@pytest.mark.parametrize("address", [ACCELERATORS, TYPES])
def test_only_a_token_with_admin_org_may_write(reader, address):
    assert post(reader, address, chip()).status_code == 403
    of_a_project = token(Scope.MANAGE_PROJECT, reach=TokenReach(project_slug=project("moe").slug))
    assert post(with_token(of_a_project), address, chip()).status_code == 403


@pytest.mark.parametrize("address", [ACCELERATORS, TYPES])
def test_a_token_that_only_sends_power_reads_nothing(address):
    assert with_token(token(Scope.INGEST_POWER)).get(address).status_code == 403
