"""Published figures through the doors that exist: command, API and formulae."""

import json
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from formulae.compute import achieved_flop_per_s, mfu, moe_active_params, training_steps
from formulae.estimate import cost_of_hours
from formulae.money import Money
from planning.models import Estimate
from planning.presets import PRESETS
from projects.access import Scope
from runs.catalogue import shipped_accelerators
from tests import builders
from tests.planning.builders import EXAMPLE, answer, codes, command, make_spec

pytestmark = pytest.mark.django_db


def preset(name: str, *words: str) -> dict[str, Any]:
    """The JSON that `manage.py estimate --preset` prints."""
    out = StringIO()
    call_command("estimate", "--preset", name, "--json", *words, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


# A01 to A03: compute, steps, peaks


def test_a01_10_billion_active_parameters_and_10_trillion_tokens_are_6e23_flop(
    tmp_path: Path,
) -> None:
    assert command(make_spec(), tmp_path)["training_flop"] == 6.0e23
    assert moe_active_params(dense_params=2e9, params_per_expert=4e9, top_k=2) == 10e9


def test_a02_the_run_takes_2384186_steps_and_a_batch_in_tokens_is_refused(tmp_path: Path) -> None:
    steps = training_steps(tokens=1e13, batch_sequences=1024, seq_len=4096)
    assert steps == 2_384_186
    with pytest.raises(CommandError, match="4194304 tokens are 1024 sequences"):
        command(make_spec(seq_len=4096, batch_sequences=4_194_304), tmp_path)


def test_a03_the_catalogue_keeps_dense_and_sparse_peaks_apart() -> None:
    h100 = shipped_accelerators()["h100-sxm-80gb"]
    assert h100.peak_dense_flop_per_s["bf16"] == 989.4e12
    assert h100.peak_dense_flop_per_s["fp8"] == pytest.approx(1979e12, rel=1e-4)
    assert h100.peak_sparse_flop_per_s["fp8"] == pytest.approx(3958e12, rel=1e-4)
    assert answer(make_spec(precision="fp8")).document["assumptions"]["peak"] == "dense"
    chosen = make_spec(precision="fp8", step_mfu=0.3, peak="sparse", sparse_reason="2:4 weights")
    assert codes(answer(chosen))["sparse_peak"] == "amber"


# A04 and A05: MFU


def test_a04_2321792_tokens_a_second_are_an_mfu_of_55_percent() -> None:
    achieved = achieved_flop_per_s(params=10e9, tokens_per_s=2_321_792)
    assert mfu(
        achieved_flop_per_s=achieved, accelerators=256, peak_flop_per_s=989.4e12
    ) == pytest.approx(0.55, abs=5e-4)


def test_a05_an_mfu_is_told_from_one_that_nobody_reached() -> None:
    assert "mfu_low" in codes(answer(make_spec(step_mfu=0.03)))
    assert "above_best_observed" in codes(answer(make_spec(step_mfu=0.7)))
    assert codes(answer(make_spec(step_mfu=0.40))) == {}


# A06: the chapter's run, as printed and corrected


def test_a06_as_printed_it_takes_124_6_days_is_red_and_blocks_approval() -> None:
    found = preset("chapter-as-printed")
    assert found["training_flop"] == 6e24
    assert found["days"]["p50"] == pytest.approx(124.6, abs=0.05)
    assert found["accelerator_h"]["p50"] == pytest.approx(765_615, rel=1e-4)
    severities = {item["code"]: item["severity"] for item in found["warnings"]}
    assert severities["above_dense_peak"] == "red"
    assert severities["flop_differ"] == "red"
    assert severities["sparse_peak"] == "amber"
    assert answer(PRESETS["chapter-as-printed"]).is_blocked


def test_a06_126_days_appear_when_the_peak_of_256_is_rounded_to_an_exaflop(tmp_path: Path) -> None:
    rounded = PRESETS["chapter-as-printed"] | {"peak_flop_per_s": 1.0e18 / 256}
    assert command(rounded, tmp_path)["days"]["p50"] == pytest.approx(126.3, abs=0.05)


def test_a06_corrected_at_the_dense_bf16_peak_it_takes_49_85_days() -> None:
    found = preset("chapter-10b-moe")
    assert found["training_flop"] == 6.0e23
    assert round(found["days"]["p50"], 2) == 49.85
    assert round(found["accelerator_h"]["p50"]) == 306_277
    assert not answer(PRESETS["chapter-10b-moe"]).is_blocked


def test_a06_corrected_at_the_dense_fp8_peak_it_takes_24_92_days(tmp_path: Path) -> None:
    """153,123 hours follow from the rounded 1979 TFLOP/s; the catalogue has 1978.9, twice 989.4."""
    found = preset("chapter-10b-moe-fp8")
    assert round(found["days"]["p50"], 2) == 24.92
    assert found["assumptions"]["peak_flop_per_s"] == 1978.9e12
    assert round(found["accelerator_h"]["p50"]) == 153_131
    assert found["accelerator_h"]["p50"] == pytest.approx(153_123, rel=1e-3)
    rounded = PRESETS["chapter-10b-moe-fp8"] | {"peak_flop_per_s": 1979e12}
    assert round(command(rounded, tmp_path)["accelerator_h"]["p50"]) == 153_123


def test_the_corrected_preset_says_that_nobody_reached_its_mfu() -> None:
    assert codes(answer(PRESETS["chapter-10b-moe"]))["above_best_observed"] == "amber"


# A07 and A08: money


def test_a07_256_accelerators_for_126_days_at_2_50_dollars_cost_1935360() -> None:
    assert cost_of_hours(256 * 126 * 24, Money.of("2.50", "USD")) == Money.of(1_935_360, "USD")


def test_a08_the_chapters_lines_give_1_74_times_the_main_run(tmp_path: Path) -> None:
    corrected = PRESETS["chapter-10b-moe-fp8"] | {"peak_flop_per_s": 1979e12}
    cost = command(corrected, tmp_path)["cost"]
    main = Decimal(cost["p50"])
    total = sum((Decimal(line["amount"]) for line in cost["lines"]), Decimal(0))
    assert abs(main - Decimal("382807.5")) < 1
    assert total == main * Decimal("1.74")
    assert abs(total - 666_085) < 1
    assert abs(main * Decimal("1.8") - 689_053) < 1
    assert abs(main * Decimal(2) - 765_615) < 1
    assert "1.74" in cost["lines_source"]


def test_a08_one_unlisted_line_of_10_percent_gives_1_86(tmp_path: Path) -> None:
    fractions = {
        "experiments": "0.20",
        "preprocessing": "0.05",
        "distillation": "0.15",
        "evaluation": "0.05",
        "unlisted": "0.10",
    }
    lines = [{"key": key, "fraction": fraction} for key, fraction in fractions.items()]
    lines.append({"key": "contingency", "fraction": "0.20", "base": "subtotal"})
    cost = command(make_spec(lines=lines), tmp_path)["cost"]
    total = sum(Decimal(line["amount"]) for line in cost["lines"])
    assert total == Decimal(cost["p50"]) * Decimal("1.86")


@pytest.mark.parametrize(
    ("name", "multiple"), [("olmo-2", 1.5), ("llama-1", 3.4), ("olmo-3", 5.618)]
)
def test_other_evidence_is_a_word_away(name: str, multiple: float, tmp_path: Path) -> None:
    cost = command(make_spec(lines=name), tmp_path)["cost"]
    total = sum(Decimal(line["amount"]) for line in cost["lines"])
    assert float(total / Decimal(cost["p50"])) == pytest.approx(multiple)


# A10 and A11: place


def test_a10_a_pue_of_1_19_passes_1_20_warns_and_0_9_is_refused(tmp_path: Path) -> None:
    assert "pue_high" not in codes(answer(make_spec(pue=1.19)))
    assert "pue_high" in codes(answer(make_spec(pue=1.20)))
    with pytest.raises(CommandError, match="facility energy per IT energy"):
        command(make_spec(pue=0.9), tmp_path)


@pytest.mark.parametrize(("g_per_kwh", "kg"), [(400, 79.87), (30, 5.99)])
def test_a11_an_hour_of_256_accelerators_emits_with_its_grid(
    g_per_kwh: float, kg: float, tmp_path: Path
) -> None:
    """256 x 650 W for an hour are 166.4 kWh, 199.68 kWh at the meter of the facility."""
    tokens = 1e13 / 306_277.7 * 256
    question = make_spec(
        tokens=tokens, host_factor=1.0, pue=1.2, power_w=650, grid_g_per_kwh=g_per_kwh
    )
    found = command(question, tmp_path)
    assert found["accelerator_h"]["p50"] == pytest.approx(256, rel=1e-4)
    assert found["it_energy_kwh"]["p50"] == pytest.approx(166.4, rel=1e-4)
    assert found["energy_kwh"]["p50"] == pytest.approx(199.68, rel=1e-4)
    assert found["emissions_kgco2e"]["p50"] == pytest.approx(kg, abs=0.01)


# A13 to A17: data


def bill(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = command(document, folder)["bill"]
    return found


def usd(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency": "USD"}


@pytest.mark.parametrize(("hot_price", "total"), [("150", 63_050), ("300", 93_050)])
def test_a14_three_tiers_cost_63050_to_93050_dollars_a_month(
    hot_price: str, total: int, tmp_path: Path
) -> None:
    tiers = [
        {"tier": "hot", "terabytes": "200", "months": 1, "price_per_tb_month": usd(hot_price)},
        {"tier": "warm", "terabytes": "1350", "months": 1, "price_per_tb_month": usd("23")},
        {"tier": "cold", "terabytes": "2000", "months": 1, "price_per_tb_month": usd("1")},
    ]
    assert Decimal(bill(make_spec(storage=tiers), tmp_path)["total"]) == total


def test_a13_the_video_preset_holds_1_35_petabytes() -> None:
    lines = {line["key"]: line for line in preset("video-pipeline")["bill"]["lines"]}
    assert lines["storage_warm"]["note"].startswith("1350 TB")


def test_a15_gets_and_puts_have_prices_of_their_own(tmp_path: Path) -> None:
    requests = [
        {"verb": "get", "count": 3 * 10**9, "price_per_1000": usd("0.0004")},
        {"verb": "put", "count": 10**9, "price_per_1000": usd("0.005")},
    ]
    lines = bill(make_spec(requests=requests), tmp_path)["lines"]
    assert [Decimal(line["amount"]) for line in lines] == [1_200, 5_000]


def test_a17_shards_of_250_megabytes_take_5_4_million_gets_an_epoch(tmp_path: Path) -> None:
    requests = [
        {
            "verb": "get",
            "dataset_terabytes": "1350",
            "object_megabytes": "0.45",
            "epochs": 1,
            "price_per_1000": usd("0.0004"),
        }
    ]
    (advice,) = bill(make_spec(requests=requests), tmp_path)["sharding"]
    assert advice["requests_as_shards"] == 5_400_000
    assert Decimal(advice["cost_as_shards"]) == Decimal("2.16")
    assert Decimal(advice["saving"]) == Decimal("1197.84")


# The doors


def test_a_seed_repeats_the_document_and_another_one_moves_it(tmp_path: Path) -> None:
    assert command(EXAMPLE, tmp_path) == command(EXAMPLE, tmp_path)
    other = command(EXAMPLE, tmp_path, "--seed", "2")
    assert other["days"] != command(EXAMPLE, tmp_path)["days"]
    assert other["days"]["p50"] == pytest.approx(
        command(EXAMPLE, tmp_path)["days"]["p50"], rel=0.02
    )


def test_draws_and_seed_of_the_command_line_win(tmp_path: Path) -> None:
    found = command(EXAMPLE, tmp_path, "--draws", "500", "--seed", "9")["assumptions"]
    assert (found["draws"], found["seed"]) == (500, 9)


def test_the_api_gives_the_same_document_as_the_command(tmp_path: Path) -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))
    made = client.post("/api/v1/estimates", EXAMPLE, content_type="application/json")
    assert made.status_code == 201
    expected = command(EXAMPLE, tmp_path)
    assert {key: made.json()[key] for key in expected} == expected


def test_the_same_idempotency_key_keeps_one_estimate() -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))

    def post(document: dict[str, Any]) -> Any:
        return client.post(
            "/api/v1/estimates",
            document,
            content_type="application/json",
            headers={"Idempotency-Key": "kickoff-1"},
        )

    first, second = post(EXAMPLE), post(EXAMPLE)
    assert first.content == second.content
    assert Estimate.objects.count() == 1
    other = post(EXAMPLE | {"tokens": 1e13})
    assert other.status_code == 422


def test_the_api_names_a_wrong_key_with_its_path() -> None:
    client = builders.with_token(builders.token(Scope.MANAGE_PROJECT))
    wrong = EXAMPLE | {"model": EXAMPLE["model"] | {"n_layers": 32}}
    refused = client.post("/api/v1/estimates", wrong, content_type="application/json")
    assert refused.status_code == 400
    assert refused.json()["field"] == "model.n_layers"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_answered_in_words_and_in_json(name: str) -> None:
    assert preset(name)["name"] == PRESETS[name]["name"]
    out = StringIO()
    call_command("estimate", "--preset", name, stdout=out)
    assert "P80" in out.getvalue()


# --fail-over


def exit_status(*words: str) -> int:
    try:
        call_command("estimate", "--preset", "chapter-10b-moe", *words, stdout=StringIO())
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--fail-over", "5000000 USD", "--at", "p80"), 0),
        (("--fail-over", "5,000,000 USD"), 0),
        (("--fail-over", "765600 USD", "--at", "p80"), 3),
        (("--fail-over", "765700 USD", "--at", "p50"), 0),
        (("--fail-over", "800000 USD", "--of", "programme"), 3),
        (("--fail-over", "2000000 USD", "--of", "programme", "--at", "p90"), 0),
    ],
)
def test_a_cost_above_the_limit_exits_3(words: tuple[str, ...], status: int) -> None:
    assert exit_status(*words) == status


def test_the_answer_is_printed_before_the_exit(capsys: pytest.CaptureFixture[str]) -> None:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command(
            "estimate", "--preset", "chapter-10b-moe", "--json", "--fail-over", "1 USD", stdout=out
        )
    assert json.loads(out.getvalue())["training_flop"] == 6e23


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("5000000 EUR", "EUR"),
        ("5000000", "amount and its currency"),
        ("lots USD", "amount and its currency"),
        ("5000000 dollars", "amount and its currency"),
        ("NaN USD", "amount and its currency"),
        ("1,5 USD", "amount and its currency"),
        ("-5 USD", "amount and its currency"),
        ("\u0661 USD", "amount and its currency"),
    ],
)
def test_a_limit_of_another_currency_or_none_is_refused(limit: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        exit_status("--fail-over", limit)


def test_a_limit_without_a_price_is_refused(tmp_path: Path) -> None:
    unpriced = make_spec(accelerator="gaudi2-96gb", price_per_accelerator_hour=None)
    with pytest.raises(CommandError, match="no price"):
        command(unpriced, tmp_path, "--fail-over", "1 USD")


def test_what_is_no_question_is_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    deep = "[" * 200_000
    for text, words in (("[1]", "one JSON object"), ("{", "is not JSON"), (deep, "is not JSON")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CommandError, match=words):
            call_command("estimate", "--file", str(path), stdout=StringIO())
    with pytest.raises(CommandError, match=r"missing\.json"):
        call_command("estimate", "--file", str(tmp_path / "missing.json"), stdout=StringIO())
