"""The question as people write it: every key, every name, and every mistake that is caught."""

import copy
import json
import math
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from planning.model_spec import ModelSpec
from planning.spec import EstimateRequest, SpecError, parse_request
from runs.catalogue import shipped_accelerators
from runs.naming import plain_name
from tests.planning.builders import EXAMPLE, answer, codes, make_spec

pytestmark = pytest.mark.django_db


def problems_of(document: dict[str, Any]) -> dict[str, str]:
    """What is said to be wrong with a question."""
    with pytest.raises(SpecError) as refused:
        answer(document)
    return refused.value.problems


def changed(path: str, value: Any, base: dict[str, Any] = EXAMPLE) -> dict[str, Any]:
    """The example with the key at a dotted path set."""
    document = copy.deepcopy(base)
    *folders, key = path.split(".")
    place = document
    for folder in folders:
        place = place.setdefault(folder, {})
    place[key] = value
    return document


# The shape


def test_the_example_of_the_documentation_is_answered() -> None:
    document = answer(EXAMPLE).document
    for name in ("accelerator_h", "days", "energy_kwh", "emissions_kgco2e"):
        assert set(document[name]) == {"p10", "p50", "p80", "p90", "mean"}
    assert set(document["cost"]) >= {"currency", "p10", "p50", "p80", "p90", "mean", "lines"}
    assert isinstance(document["cost"]["p50"], str)
    assert document["training_flop"] > 0
    assert document["priors"]
    assert all(set(item) >= {"code", "message"} for item in document["warnings"])


def test_an_answer_is_plain_json_without_infinity_or_nan() -> None:
    assert json.loads(json.dumps(answer(EXAMPLE).document, allow_nan=False))


def test_null_is_the_same_as_a_key_left_out() -> None:
    short = {key: value for key, value in EXAMPLE.items() if value is not None}
    short["model"] = {key: value for key, value in EXAMPLE["model"].items() if value is not None}
    assert parse_request(short) == parse_request(EXAMPLE)
    assert answer(short).document == answer(EXAMPLE).document


def test_every_optional_key_may_be_null() -> None:
    required = {"model", "tokens", "accelerator"}
    nulls = dict.fromkeys(set(EstimateRequest.model_fields) - required)
    model = {"params": 8.03e9, **dict.fromkeys(set(ModelSpec.model_fields) - {"params"})}
    bare = {"model": model, "tokens": 15e12, "accelerator": "H100 SXM 80GB"}
    assert answer(bare | nulls).document["training_flop"] == pytest.approx(6 * 8.03e9 * 15e12)


def test_null_inside_a_nested_key_is_the_same_as_absent() -> None:
    reliability = {"restart_s": 600, "checkpoint_interval_s": None, "checkpoint_write_s": None}
    assert parse_request(EXAMPLE | {"reliability": reliability}) == parse_request(
        EXAMPLE | {"reliability": {"restart_s": 600}}
    )


def test_a_kept_question_reads_back_as_the_same_question() -> None:
    request = parse_request(EXAMPLE)
    assert parse_request(request.document()) == request


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("params", "model.params"),
        ("active_params", "model.active_params"),
        ("mfu", "step_mfu"),
        ("accelerators", "accelerator_count"),
        ("starts_on", "started_on"),
        ("price_per_accelerator_h", "price_per_accelerator_hour"),
        ("g_per_kwh", "grid_g_per_kwh"),
        ("provider", "region"),
        ("country", "region"),
    ],
)
def test_an_old_key_says_its_new_name(old: str, new: str) -> None:
    assert new in problems_of(EXAMPLE | {old: "1"})[old]


@pytest.mark.parametrize(
    "path",
    [
        "gpu_count",
        "model.n_layers",
        "reliability.mtbf",
        "price_per_accelerator_hour.price",
        "on_premises.wattage",
    ],
)
def test_an_unknown_key_is_named_with_its_path(path: str) -> None:
    assert path in problems_of(changed(path, 1))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.layers", "thirty"),
        ("model.params", -1),
        ("tokens", "many"),
        ("precision", "int4"),
        ("started_on", "next spring"),
        ("step_mfu", "high"),
        ("price_per_accelerator_hour.amount", "two"),
        ("price_per_accelerator_hour.currency", "dollars"),
        ("price_per_accelerator_hour", "2.50"),
        ("purchase", "stolen"),
        ("draws", 3),
        ("seed", -1),
        ("peak", "double"),
    ],
)
def test_a_wrong_value_is_named_with_its_path(path: str, value: Any) -> None:
    assert path in problems_of(changed(path, value))


def test_a_wrong_part_of_a_range_is_named_and_nothing_else() -> None:
    assert set(problems_of(EXAMPLE | {"step_mfu": {"low": 0.3, "mode": 0.4}})) == {"step_mfu.high"}
    order = problems_of(EXAMPLE | {"step_mfu": {"low": 0.5, "mode": 0.4, "high": 0.3}})
    assert "low <= mode <= high" in order["step_mfu"]


def test_a_wrong_line_is_named_by_its_place_and_nothing_else() -> None:
    lines = [{"key": "experiments", "fraction": "0.2"}, {"key": "evaluation"}]
    assert set(problems_of(EXAMPLE | {"lines": lines})) == {"lines.1"}


def test_lines_are_a_known_preset_or_have_each_key_once() -> None:
    assert "olmo-3" in problems_of(EXAMPLE | {"lines": "gpt-5"})["lines"]
    twice = [{"key": "data", "fraction": "0.2"}] * 2
    assert "once" in problems_of(EXAMPLE | {"lines": twice})["lines"]


def test_what_is_missing_is_named() -> None:
    assert set(problems_of({"name": "nothing"})) == {"model", "tokens", "accelerator"}
    assert "model.params" in problems_of(EXAMPLE | {"model": {}})


# The hardware


@pytest.mark.parametrize("key", sorted(shipped_accelerators()))
def test_every_accelerator_is_answered_by_its_key_and_its_full_name(key: str) -> None:
    spec = shipped_accelerators()[key]
    peaks = spec.peak_dense_flop_per_s
    for name in (key, spec.name, plain_name(spec)):
        question = EXAMPLE | {"accelerator": name, "precision": None, "draws": 100}
        if not peaks:
            question["peak_flop_per_s"] = 500e12
        found = answer(question)
        assert found.document["assumptions"]["accelerator_key"] == key
        assert name != key or "accelerator_assumed" not in codes(found)


def test_an_accelerator_without_a_published_peak_says_so() -> None:
    problems = problems_of(EXAMPLE | {"accelerator": "rtx-pro-6000-96gb"})
    assert "RTX PRO 6000" in problems["precision"]


@pytest.mark.parametrize(
    ("name", "key", "precision"),
    [
        ("V100", "v100-sxm2-32gb", "fp16"),
        ("A100", "a100-sxm-80gb", "bf16"),
        ("TPU v4", "tpu-v4", "bf16"),
        ("H100", "h100-sxm-80gb", "bf16"),
        ("p5.48xlarge", "h100-sxm-80gb", "bf16"),
    ],
)
def test_a_short_name_is_read_and_says_what_was_assumed(
    name: str, key: str, precision: str
) -> None:
    found = answer(EXAMPLE | {"accelerator": name, "precision": None})
    assert found.document["assumptions"]["accelerator_key"] == key
    assert found.document["assumptions"]["precision"] == precision
    assert codes(found)["accelerator_assumed"] == "info"
    assert codes(found)["precision_assumed"] == "info"


def test_an_unknown_accelerator_is_refused_with_near_names() -> None:
    assert "H100" in problems_of(EXAMPLE | {"accelerator": "H1000"})["accelerator"]


def test_a_precision_that_the_hardware_lacks_is_refused_with_what_it_has() -> None:
    problems = problems_of(EXAMPLE | {"accelerator": "A100 SXM 80GB", "precision": "fp8"})
    assert "bf16" in problems["precision"]


def test_an_unknown_place_is_refused() -> None:
    assert "region" in problems_of(EXAMPLE | {"region": "moon:base-1"})


# The guards: each fires on its example and not on the neighbour


GUARDS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("pue_high", "amber", {"pue": 1.2}, {"pue": 1.19}),
    ("above_dense_peak", "red", {"step_mfu": 0.51, "sparse": True}, {"step_mfu": 0.49}),
    ("sparse_peak", "amber", {"sparse": True}, {}),
    (
        "above_best_observed",
        "amber",
        {"precision": "fp8", "step_mfu": 0.45},
        {"precision": "fp8", "step_mfu": 0.40},
    ),
    ("mfu_low", "amber", {"step_mfu": 0.04}, {"step_mfu": 0.05}),
    (
        "price_high",
        "amber",
        {"price_per_accelerator_hour": {"amount": "55.04", "currency": "USD"}},
        {"price_per_accelerator_hour": {"amount": "6.88", "currency": "USD"}},
    ),
    (
        "price_high",
        "amber",
        {"price_per_accelerator_hour": {"amount": "100.01", "currency": "EUR"}},
        {"price_per_accelerator_hour": {"amount": "1100", "currency": "JPY"}},
    ),
    ("power_high", "amber", {"power_w": 1300}, {"power_w": 700}),
    (
        "failures_leave_nothing",
        "amber",
        {"accelerator_count": 1_000_000},
        {"accelerator_count": 16_384},
    ),
    ("grid_missing", "info", {"grid_g_per_kwh": None}, {"region": "SWE", "grid_g_per_kwh": None}),
    ("count_missing", "info", {"accelerator_count": None}, {"accelerator_count": 1}),
    ("few_tokens", "amber", {"tokens": 9e9}, {"tokens": 11e9}),
    ("flop_differ", "red", {"training_flop": 6.4e23}, {"training_flop": 6.2e23}),
    ("precision_assumed", "info", {"precision": None}, {}),
    ("accelerator_assumed", "info", {"accelerator": "H100"}, {"accelerator": "H100 SXM 80GB"}),
    (
        "compute_near_threshold",
        "amber",
        {"tokens": 60e12},
        {"tokens": 50e12},
    ),
    (
        "compute_above_threshold",
        "amber",
        {"tokens": 170e12},
        {"tokens": 160e12},
    ),
    (
        "params_differ",
        "amber",
        {"model": EXAMPLE["model"] | {"params": 8.4e9}},
        {"model": EXAMPLE["model"] | {"params": 8.1e9}},
    ),
    (
        "memory",
        "red",
        {"model": {"params": 400e9}, "accelerator_count": 64},
        {"model": {"params": 400e9}, "accelerator_count": 16_384},
    ),
]


def guarded(fields: dict[str, Any]) -> dict[str, Any]:
    """A question with these fields; `sparse` stands for a peak with its reason."""
    fields = dict(fields)
    if fields.pop("sparse", False):
        fields |= {"peak": "sparse", "sparse_reason": "a test of 2:4 sparsity"}
    return make_spec(**({"step_mfu": 0.4} | fields))


@pytest.mark.parametrize(
    ("code", "severity", "bad", "good"), GUARDS, ids=[guard[0] for guard in GUARDS]
)
def test_a_guard_fires_on_its_example_and_not_on_the_neighbour(
    code: str, severity: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    assert codes(answer(guarded(bad)))[code] == severity
    assert code not in codes(answer(guarded(good)))


def test_a_price_that_nobody_knows_is_told() -> None:
    found = answer(make_spec(accelerator="gaudi2-96gb", price_per_accelerator_hour=None))
    assert codes(found)["price_missing"] == "amber"
    assert found.document["cost"] is None


def test_a_model_of_the_example_has_no_findings_that_ask_for_a_second_look() -> None:
    assert set(codes(answer(make_spec(step_mfu=0.4, power_w=None)))) == set()


def test_findings_come_most_severe_first() -> None:
    found = list(codes(answer(guarded({"step_mfu": 0.55, "sparse": True, "pue": 1.5}))).values())
    assert found == sorted(found, key=["red", "amber", "info"].index)
    assert found[0] == "red"


def test_a_sparse_peak_needs_a_reason() -> None:
    for document in (
        make_spec(precision="fp8", peak="sparse"),
        make_spec(precision="fp8", peak="sparse", sparse_reason="  "),
    ):
        assert set(problems_of(document)) == {"sparse_reason"}
    typed = problems_of(make_spec(precision="fp8", peak_flop_per_s=3958e12))
    assert "sparse_reason" in typed["peak_flop_per_s"]
    rounded = make_spec(precision="fp8", peak_flop_per_s=1979e12, step_mfu=0.4)
    assert "sparse_peak" not in codes(answer(rounded))


def test_a_dense_fp8_peak_at_bf16_needs_a_reason_too() -> None:
    problems = problems_of(make_spec(peak_flop_per_s=1979e12))
    assert "200 %" in problems["peak_flop_per_s"]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"step_mfu": 55}, "step_mfu", "55 % is 0.55"),
        ({"goodput": 90}, "goodput", "55 % is 0.55"),
        ({"pue": 0.9}, "pue", "at least what its IT uses"),
        ({"grid_g_per_kwh": 0.4}, "grid_g_per_kwh", "0.4 kg/kWh is 400"),
        ({"grid_g_per_kwh": {"low": 0.3, "mode": 0.4, "high": 0.5}}, "grid_g_per_kwh", "kg"),
        ({"grid_g_per_kwh": 400_000}, "grid_g_per_kwh", "gCO2e/kWh"),
        ({"tokens": 2_384}, "tokens", "not sequences or steps"),
        ({"seq_len": 4096, "batch_sequences": 4_194_304}, "batch_sequences", "1024 sequences"),
        ({"power_w": 0.65}, "power_w", "0.7 kW is 700"),
        ({"power_w": 650_000}, "power_w", "milliwatt"),
        ({"host_factor": 0.5}, "host_factor", "accelerator watt"),
        ({"peak_flop_per_s": 989.4}, "peak_flop_per_s", "989.4e12"),
        ({"accelerator_count": 0}, "accelerator_count", "how many accelerators"),
        ({"tokens": 0, "training_flop": 6e23}, "tokens", "tokens"),
        ({"peak_flop_per_s": math.nan}, "peak_flop_per_s", "FLOP/s"),
        ({"price_ratio": 110}, "price_ratio", "1.0 is the price"),
        ({"model": {"params": 10}}, "model", "10 billion give 6e10"),
        (
            {"price_per_accelerator_hour": {"amount": "2000000", "currency": "USD"}},
            "price_per_accelerator_hour",
            "USD per accelerator-hour",
        ),
    ],
)
def test_a_wrong_unit_is_refused_with_the_unit_and_the_fix(
    fields: dict[str, Any], field: str, words: str
) -> None:
    problems = problems_of(make_spec(**fields))
    assert set(problems) == {field}
    assert words in problems[field]


def test_a_batch_in_sequences_is_taken() -> None:
    answer(make_spec(seq_len=4096, batch_sequences=1024))


def test_an_amount_beyond_money_is_refused_not_crashed_on() -> None:
    price = {"amount": "999999", "currency": "USD"}
    problems = problems_of(
        make_spec(
            model={"params": 1e14}, tokens=1e16, step_mfu=1e-4, price_per_accelerator_hour=price
        )
    )
    assert "price_per_accelerator_hour" in problems


# The documentation


def documented() -> str:
    """The section of `estimate` in the documentation of the command line."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    return page.partition("## `estimate`")[2].partition("\n## ")[0]


def models(of: type[BaseModel]) -> set[type[BaseModel]]:
    """A model of the question, and every one below it."""
    found = {of}
    for field in of.model_fields.values():
        for part in (field.annotation, *nested(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                found |= models(part)
    return found


def nested(annotation: Any) -> list[Any]:
    """What a union or a tuple holds."""
    parts = list(get_args(annotation))
    return parts + [deeper for part in parts for deeper in nested(part)]


@pytest.mark.parametrize("model", models(EstimateRequest), ids=lambda model: model.__name__)
def test_every_key_of_a_question_is_documented(model: type[BaseModel]) -> None:
    tables = re.sub(r"```.*?```", "", documented(), flags=re.DOTALL)
    words = set(re.findall(r"[a-z][a-z0-9_]*", " ".join(re.findall(r"`[^`]+`", tables))))
    assert set(model.model_fields) - words == set()


def test_every_finding_and_every_key_of_an_answer_is_documented() -> None:
    text = documented()
    assert all(f"`{guard[0]}`" in text for guard in GUARDS)
    assert all(f'"{key}"' in text for key in answer(EXAMPLE).document)


def test_the_documented_example_is_answered() -> None:
    example = json.loads(documented().partition("```json\n")[2].partition("```")[0])
    assert answer(example).document == answer(EXAMPLE).document
