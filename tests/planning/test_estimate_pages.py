"""The estimator's pages: question, live answer, config.json, links, exports, old answers."""

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from planning.chapter import chapter_example
from planning.estimate_forms import EstimateForm, initial_from
from planning.estimate_links import packed, unpacked
from planning.estimating import Answer
from planning.first_answers import todays_question
from planning.models import Estimate
from planning.presets import PRESETS
from planning.spec import EstimateRequest, SpecError, parse_request
from projects.access import Role
from projects.models import User
from projects.records import OrganisationRole
from tests import builders
from tests.planning.builders import EXAMPLE

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
}
EVERYTHING: dict[str, Any] = {
    **EXAMPLE,
    "name": "Everything",
    "model": {**EXAMPLE["model"], "experts": 8, "top_k": 2, "mtp_depth": 1, "recompute": "full"},
    "batch_sequences": 1024,
    "step_mfu": {"low": 0.3, "mode": 0.4, "high": 0.5},
    "goodput": 0.9,
    "reliability": {"failures_per_node_day": 0.01, "restart_s": 600},
    "pue": {"low": 1.1, "mode": 1.2, "high": 1.3},
    "host_factor": 1.5,
    "price_ratio": {"low": 0.9, "mode": 1.0, "high": 1.2},
    "lines": [
        {"key": "experiments", "fraction": "0.4"},
        {"key": "own-1", "name": "Audit", "amount": {"amount": "9000", "currency": "USD"}},
        {"key": "contingency", "fraction": "0.125", "base": "subtotal"},
    ],
    "storage": [
        {
            "tier": "hot",
            "terabytes": "200",
            "months": "3",
            "price_per_tb_month": {"amount": "150", "currency": "USD"},
        }
    ],
    "requests": [{"verb": "get", "dataset_terabytes": "9", "object_megabytes": "0.4", "epochs": 2}],
    "transfer": [
        {"kind": "nat", "dataset_terabytes": "9", "epochs": 2},
        {"kind": "nat", "terabytes": "1"},
    ],
    "services": [{"kind": "logging", "gigabytes_per_month": "500"}],
    "draws": 500,
    "seed": 7,
}


@pytest.fixture
def client() -> Client:
    alice = builders.person("alice")
    builders.project("moe", members=[(alice, Role.OWNER)])
    return builders.signed_in(alice)


def fields_of(spec: dict[str, Any]) -> dict[str, Any]:
    """A question as a browser posts it."""
    form = EstimateForm(initial=initial_from(parse_request(spec).document()))
    found = {}
    for name in form.fields:
        value = form[name].value()
        value = json.dumps(value) if isinstance(value, dict) and value else value
        if value not in (None, "", False, {}):
            found[name] = value
    return found


def asked_through_form(spec: dict[str, Any]) -> EstimateRequest:
    form = EstimateForm(fields_of(spec))
    assert form.is_valid(), form.errors
    return parse_request(form.document())


def preview(client: Client, fields: dict[str, Any]) -> str:
    answered = client.post("/estimates/preview/", fields, headers=HTMX)
    assert answered.status_code == 200
    return str(answered.content.decode())


@pytest.mark.parametrize("spec", [EVERYTHING, EXAMPLE, *PRESETS.values()])
def test_nothing_of_a_question_is_lost_in_the_form(spec: dict[str, Any]) -> None:
    asked, expected = asked_through_form(spec), parse_request(spec)
    assert asked.model.description() == expected.model.description()
    rest = {"model": expected.model}
    assert asked.model_copy(update=rest) == expected


def test_every_field_of_an_answer_stands_beside_the_question(client: Client) -> None:
    page = client.get("/estimates/new/?preset=video-pipeline").content.decode()
    for words in ("The answer", "P10 to P90", "What the cost hangs on", "The plan around it"):
        assert words in page
    assert "All in, with the bill around" in page
    for words in ("The working", "Priors that were used", "The bill around", "packed into shards"):
        assert words in page


def test_the_answer_follows_the_question_without_keeping_anything(client: Client) -> None:
    fields = fields_of(PRESETS["chapter-10b-moe"])
    assert "49.8" in preview(client, fields)
    assert "24.9" in preview(client, fields | {"precision": "fp8"})
    assert Estimate.objects.count() == 0


def test_a_preview_is_not_answered_to_those_who_may_not_ask() -> None:
    bob = builders.person("bob", role=OrganisationRole.MEMBER)
    builders.project("moe", members=[(bob, Role.VIEWER)])
    viewer = builders.signed_in(bob)
    for door in ("preview/", "read-config/", "new/places/", "new/hardware/"):
        assert viewer.post(f"/estimates/{door}", {}).status_code == 403
    assert viewer.get("/estimates/preview/").status_code == 405


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"step_mfu": "55"}, "step_mfu", "55 % is 0.55"),
        ({"tokens": "ten"}, "tokens", "10T"),
        ({"pue": "0.9"}, "pue", "PUE"),
        ({"grid_g_per_kwh": "0.4"}, "grid_g_per_kwh", "0.4 kg/kWh is 400"),
        ({"accelerator": "H1000"}, "accelerator", "H1000"),
        ({"region": "aws:mars-1"}, "region", "mars-1"),
        ({"peak": "sparse", "sparse_reason": ""}, "sparse_reason", "2:4 sparsity"),
        ({"goodput_low": "0.5"}, "goodput", "most likely"),
        ({"extra": "[1]"}, "extra", "JSON object"),
        ({"extra": "[" * 9_000}, "extra", "JSON"),
        ({"extra": '{"colour": 1}'}, "", "colour"),
        ({"storage_hot_terabytes": "-1"}, "storage_hot_terabytes", "0"),
    ],
)
def test_a_mistake_is_told_with_its_field_and_the_answer_stays(
    client: Client, change: dict[str, str], field: str, words: str
) -> None:
    fields = fields_of(PRESETS["dense-8b"] | {"goodput": None}) | change
    answered = client.post("/estimates/preview/", fields, headers=HTMX)
    page = answered.content.decode()
    assert answered["HX-Retarget"] == "#problems"
    assert f'data-field="{field}"' in page
    assert words in page


def test_red_findings_and_priors_are_shown_beside_the_answer(client: Client) -> None:
    fields = fields_of(PRESETS["chapter-as-printed"])
    page = preview(client, fields)
    assert 'data-code="above_dense_peak"' in page
    assert 'data-code="sparse_peak"' in page
    assert "published runs" in preview(client, fields_of(PRESETS["dense-8b"]))


def test_a_config_json_fills_the_fields_of_the_model(client: Client) -> None:
    file = io.BytesIO(json.dumps(LLAMA).encode())
    file.name = "config.json"
    page = client.post("/estimates/read-config/", {"config_file": file}, headers=HTMX)
    text = page.content.decode()
    assert 'name="layers"' in text
    assert 'value="80"' in text
    assert "Read from config.json" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Drop a config.json"),
        ("{", "no JSON"),
        ("[" * 50_000, "no JSON"),
        ('{"model_type": "mamba"}', "model_type"),
        ("x" * 1_000_001, "larger than 1 MB"),
    ],
)
def test_an_unreadable_config_says_why(client: Client, text: str, words: str) -> None:
    page = client.post("/estimates/read-config/", {"config_text": text}, headers=HTMX)
    assert page["HX-Retarget"] == "#config-read"
    assert words in page.content.decode()


def test_a_config_opens_the_estimator_without_script_too(client: Client) -> None:
    answered = client.post("/estimates/read-config/", {"config_text": json.dumps(LLAMA)})
    assert answered.status_code == 302
    assert 'value="28672"' in client.get(answered["Location"]).content.decode()


def test_a_link_holds_a_whole_question(client: Client) -> None:
    question = parse_request(EVERYTHING)
    assert unpacked(packed(question)) == question
    page = client.get(f"/estimates/new/?q={packed(question)}").content.decode()
    assert "Everything" in page


@pytest.mark.parametrize("link", ["x", "!!", "é", "A" * 7_000, "eNqrrgUAAXUA-Q", "eJwDAAAAAAE"])
def test_a_broken_link_is_said_so_and_the_page_opens(client: Client, link: str) -> None:
    page = client.get("/estimates/new/", {"q": link})
    assert page.status_code == 200
    assert "holds no question" in page.content.decode()


def test_a_link_that_unpacks_to_too_much_is_refused() -> None:
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 3_000_000 + b"{}", 9)).decode()
    with pytest.raises(SpecError):
        unpacked(bomb.rstrip("="))


def kept(client: Client, spec: dict[str, Any]) -> Estimate:
    answered = client.post("/estimates/new/", fields_of(spec))
    assert answered.status_code == 302, answered.content.decode()[:500]
    return Estimate.objects.get(pk=answered["Location"].split("/")[-2])


def test_a_kept_answer_is_shown_in_full_and_asked_again(client: Client) -> None:
    found = kept(client, PRESETS["dense-70b"])
    page = client.get(f"/estimates/{found.pk}/").content.decode()
    assert "The question as it was asked" in page
    assert "&quot;layers&quot;: 80" in page
    again = client.get(f"/estimates/new/?from={found.pk}").content.decode()
    assert 'value="28672"' in again
    assert client.get(f"/estimates/new/?from={uuid4()}").status_code == 404
    assert client.get("/estimates/new/?from=x").status_code == 404


def test_side_tables_are_loaded_by_themselves(client: Client) -> None:
    found = kept(client, PRESETS["dense-8b"])
    places = client.get(f"/estimates/{found.pk}/places/").content.decode()
    assert "aws:eu-north-1" in places
    hardware = client.get(f"/estimates/{found.pk}/hardware/").content.decode()
    assert "A100" in hardware
    typed = client.post("/estimates/new/hardware/", fields_of(PRESETS["dense-8b"]))
    assert "A100" in typed.content.decode()


def test_exports_hold_question_answer_and_working(client: Client) -> None:
    found = kept(client, PRESETS["video-pipeline"] | {"name": "=1+1"})
    document = client.get(f"/estimates/{found.pk}/export.json").json()
    assert document["spec"] == found.spec
    assert document["days"] == found.result["days"]
    answered = client.get(f"/estimates/{found.pk}/export.csv")
    rows = list(csv.DictReader(io.StringIO(answered.content.decode())))
    assert rows[0]["name"] == "'=1+1"
    parts = {row["part"] for row in rows}
    assert {"result", "plan_line", "bill_line", "flop_term", "input", "prior"} <= parts
    cost = next(row for row in rows if row["key"] == "cost")
    assert cost["p50"] == found.result["cost"]["p50"]


def test_the_page_answers_without_script(client: Client) -> None:
    fields = fields_of(PRESETS["chapter-10b-moe"]) | {"action": "preview"}
    page = client.post("/estimates/new/", fields)
    assert page.status_code == 200
    assert "49.8" in page.content.decode()
    assert Estimate.objects.count() == 0


FIRST_SPEC = {
    "name": "First",
    "params": 64e9,
    "active_params": 10e9,
    "tokens": 1e13,
    "accelerator": "h100-sxm-80gb",
    "accelerators": 256,
    "mfu": {"low": 0.45, "mode": 0.55, "high": 0.6},
    "goodput": 1.0,
    "price_per_accelerator_h": "2.50",
    "currency": "USD",
    "host_factor": 1.5,
    "pue": 1.2,
    "provider": "aws",
    "region": "us-east-1",
}
_LEVELS = {"p10": 1.0, "p50": 2.0, "p80": 3.0, "p90": 4.0, "mean": 2.5}
FIRST_RESULT = {
    "flop": 6e23,
    "accelerator_h": 306277.0,
    "days": 49.85,
    "currency": "USD",
    "cost": "765692.500000000000000000",
    "accelerator_energy_kwh": 214394.0,
    "it_energy_kwh": 321591.0,
    "facility_energy_kwh": 385909.0,
    "scope_2_location_kgco2e": None,
    "interval": {"draws": 4000, "seed": 1, "days": _LEVELS, "cost": None},
    "assumptions": {
        "accelerator": "NVIDIA H100 SXM 80GB",
        "accelerator_source": "data sheet",
        "precision": "bf16",
        "peak_dense_flop_per_s": 989.4e12,
        "tdp_w": 700.0,
        "power_is_tdp": True,
        "grid": None,
        "formula": "6 * N * D",
    },
}


def test_answers_of_the_first_estimator_still_open(client: Client) -> None:
    alice = User.objects.get(username="alice")
    first = Estimate.objects.create(
        organisation=alice.organisation,
        name="First",
        spec=FIRST_SPEC,
        result=FIRST_RESULT,
        created_by="alice",
        created_by_user_id=alice.pk,
    )
    page = client.get(f"/estimates/{first.pk}/").content.decode()
    assert "earlier version of the estimator" in page
    assert "306,277" in page
    assert "765,69" in page
    assert "First" in client.get("/estimates/").content.decode()
    for kind in ("json", "csv"):
        assert client.get(f"/estimates/{first.pk}/export.{kind}").status_code == 200
    again = client.get(f"/estimates/new/?from={first.pk}").content.decode()
    assert 'value="aws:us-east-1"' in again
    drafted = client.post(f"/estimates/{first.pk}/", {"project": "moe", "starts_on": "2026-09-14"})
    assert drafted["Location"] == "/projects/moe/plan/"


def test_the_first_questions_are_asked_in_todays_keys() -> None:
    question = parse_request(todays_question(FIRST_SPEC))
    assert question.accelerator_count == 256
    assert question.region == "aws:us-east-1"
    assert Answer.from_document(FIRST_RESULT).figure("days", "p90") == 4.0


def test_the_chapters_figures_are_shown_printed_exact_and_corrected(client: Client) -> None:
    example = chapter_example()
    rows = {row.name: row for row in example.figures}
    assert (rows["Training compute"].printed, rows["Training compute"].bf16) == (6e24, 6e23)
    days = rows["Days"]
    assert [round(value, 2) for value in (days.exact, days.bf16, days.fp8)] == [
        124.61,
        49.85,
        24.92,
    ]
    hours = rows["Accelerator-hours"]
    assert [round(value) for value in (hours.printed, hours.bf16, hours.fp8)] == [
        774_144,
        306_277,
        153_123,
    ]
    main = rows["Main run, 1.0×, at 2.50 USD"]
    assert (round(main.printed), round(main.fp8)) == (1_935_360, 382_807)
    assert [round(line.fp8) for line in example.totals] == [666_085, 689_053, 765_615]
    page = client.get("/estimates/chapter/").content.decode()
    for text in ("6.00 × 10²⁴", "124.61", "1.86×", "126.3", "$382,807"):
        assert text.replace(" ", "\xa0") in page or text in page


def test_a_config_of_impossible_size_is_refused_without_script_too(client: Client) -> None:
    config = LLAMA | {"hidden_size": 999_999_999}
    page = client.post("/estimates/read-config/", {"config_text": json.dumps(config)})
    assert page.status_code in (200, 302)
