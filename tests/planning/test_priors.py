"""The priors are what their rows give, every row has its source, and an answer names them."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from formulae.beliefs import Belief, LogNormal, quantile_of
from planning import prior_fit
from planning.management.commands import fit_priors
from planning.prior_fit import fitted_runs, priors_document
from planning.prior_rows import (
    DATA,
    best_observed,
    generation_of,
    generations,
    hardware_use,
    throughputs,
    training_runs,
)
from planning.priors import TrainingPriors, training_priors
from runs.catalogue import shipped_accelerators
from tests.planning.builders import EXAMPLE, answer, make_spec


def make_priors(key: str = "h100-sxm-80gb", **changes: Any) -> TrainingPriors:
    """The priors of a dense run of 70 billion parameters on 1,024 accelerators."""
    accelerator = shipped_accelerators()[key]
    values: dict[str, Any] = {
        "active_params": 7e10,
        "is_moe": False,
        "precision": "bf16",
        "accelerators": 1024,
        "year": 2025.0,
    } | changes
    peak = accelerator.peak_dense_flop_per_s[values["precision"]]
    return training_priors(accelerator, (), peak_flop_per_s=peak, **values)


def width(belief: Belief) -> float:
    return quantile_of(belief, 0.9) / quantile_of(belief, 0.1)


# The fit


def test_the_shipped_priors_are_what_the_rows_give() -> None:
    out = StringIO()
    call_command("fit_priors", "--check", "--json", stdout=out)
    assert json.loads(out.getvalue()) == json.loads((DATA / "priors.json").read_text("utf-8"))


def test_a_changed_row_makes_the_check_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = training_runs()
    slower = replace(first, accelerator_h=first.accelerator_h * 1.1)
    monkeypatch.setattr(prior_fit, "training_runs", lambda: (slower, *others))
    with pytest.raises(CommandError, match="not what its rows give"):
        call_command("fit_priors", "--check", stdout=StringIO())


def test_a_check_writes_nothing_and_a_fit_writes_the_same_file_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fit_priors, "DATA", tmp_path)
    with pytest.raises(CommandError):
        call_command("fit_priors", "--check", stdout=StringIO())
    assert list(tmp_path.iterdir()) == []
    call_command("fit_priors", stdout=StringIO())
    assert (tmp_path / "priors.json").read_bytes() == (DATA / "priors.json").read_bytes()


def test_the_order_of_the_rows_moves_no_coefficient(monkeypatch: pytest.MonkeyPatch) -> None:
    before = priors_document()["efficiency"]["coefficients"]
    monkeypatch.setattr(prior_fit, "training_runs", lambda: training_runs()[::-1])
    after = priors_document()["efficiency"]["coefficients"]
    assert [item["value"] for item in after] == pytest.approx([item["value"] for item in before])


def test_a_row_that_is_only_shown_says_why_and_moves_nothing() -> None:
    shown = [run for run in training_runs() if run.use != "fit"]
    assert shown
    assert all(run.use == "shown" and run.note for run in shown)
    assert not {run.key for run in shown} & {run.key for run in fitted_runs()}


# The rows


def rows() -> Iterator[tuple[str, int, dict[str, str]]]:
    for path in sorted(DATA.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, strict=True), start=2):
                yield path.name, number, row


def test_every_row_has_a_source_or_a_reason() -> None:
    for name, number, row in rows():
        said = row.get("source") or row.get("why")
        assert said, f"{name}, line {number}: no source"
        assert None not in row, f"{name}, line {number}: too many columns"


def test_every_coefficient_of_the_fit_says_why_it_starts_where_it_starts() -> None:
    assert all(item["why"] for item in priors_document()["efficiency"]["coefficients"])


def test_every_run_and_every_throughput_is_of_an_accelerator_of_the_catalogue() -> None:
    known = set(shipped_accelerators())
    assert {run.accelerator_key for run in training_runs()} <= known
    assert {row.accelerator_key for row in throughputs()} <= known


def test_keys_of_runs_are_unique_and_their_figures_can_be_meant() -> None:
    keys = [run.key for run in training_runs()]
    assert len(set(keys)) == len(keys)
    for run in training_runs():
        assert run.active_params <= run.params
        assert run.flop > 0
        assert run.billed_ratio is None or 0 < run.billed_ratio <= 1
        assert 2017 <= run.year <= 2030


def test_no_throughput_is_above_its_dense_peak() -> None:
    for row in throughputs():
        peaks = shipped_accelerators()[row.accelerator_key].peak_dense_flop_per_s
        if row.precision in peaks:
            assert row.model_flop_per_s < peaks[row.precision], row


@pytest.mark.parametrize("key", sorted(shipped_accelerators()))
def test_every_accelerator_has_a_generation_and_ranges_of_its_use(key: str) -> None:
    assert generation_of(key) in generations()
    for quantity in ("power_fraction", "host_factor", "pue"):
        belief = hardware_use(quantity, key).belief
        assert belief.low <= belief.mode <= belief.high


def test_the_best_observed_is_of_the_hardware_and_the_precision() -> None:
    found = best_observed("h100-sxm-80gb", "fp8")
    assert found is not None
    assert found.model_flop_per_s == 827e12
    assert best_observed("h100-sxm-80gb", "fp16") == best_observed("h100-sxm-80gb", "bf16")


# What follows from them


def test_newer_hardware_mixtures_and_long_contexts_are_used_less() -> None:
    dense = make_priors().end_to_end.median
    assert make_priors(is_moe=True).end_to_end.median < dense
    assert make_priors(active_params=1e8).end_to_end.median < dense
    assert make_priors(accelerators=16_384).end_to_end.median < dense
    assert make_priors(year=2022.0).end_to_end.median < dense


def test_step_mfu_times_goodput_is_the_fitted_efficiency() -> None:
    found = make_priors()
    assert isinstance(found.step_mfu.belief, LogNormal)
    product = found.step_mfu.belief.median * found.goodput.belief.median
    assert product == pytest.approx(found.end_to_end.median, rel=0.05)
    assert found.step_mfu.belief.median > found.end_to_end.median


def test_fp8_reaches_a_smaller_share_of_a_larger_peak() -> None:
    bf16, fp8 = (make_priors(precision=precision).step_mfu.belief for precision in ("bf16", "fp8"))
    assert bf16.median / 2 < fp8.median < bf16.median


@pytest.mark.parametrize("precision", ["tf32", "fp32"])
def test_a_slower_precision_is_judged_over_its_own_peak(precision: str) -> None:
    assert make_priors(precision=precision).step_mfu.belief.median < 0.6


@pytest.mark.parametrize("key", ["mi300x-192gb", "gaudi2-96gb", "trainium2", "b200-sxm-180gb"])
def test_hardware_without_a_published_run_has_a_wide_prior_and_says_so(key: str) -> None:
    lacking, known = make_priors(key).step_mfu, make_priors("a100-sxm-80gb").step_mfu
    assert "none on" in lacking.basis
    assert "wider guess" in lacking.basis
    assert "none on" not in known.basis
    assert width(lacking.belief) > width(known.belief)


def test_a_prior_names_the_runs_of_its_own_hardware_and_kind_first() -> None:
    nearest = make_priors("h100-sxm-80gb").step_mfu.runs[0]
    assert generation_of(nearest.accelerator_key).key == "hopper"
    assert not nearest.is_moe
    mixture = make_priors("h100-sxm-80gb", is_moe=True).step_mfu.runs[0]
    assert mixture.is_moe


# What an answer says of them


@pytest.mark.django_db
def test_an_answer_names_the_priors_it_used_and_the_runs_behind_them() -> None:
    priors = {item["quantity"]: item for item in answer(EXAMPLE).document["priors"]}
    for name in ("step_mfu", "goodput"):
        assert priors[name]["runs"]
        assert all(run["name"] and run["source"] for run in priors[name]["runs"])
    for item in priors.values():
        assert item["source"]
        assert item["basis"]
        assert item["p10"] <= item["p50"] <= item["p90"]
        assert item["unit"]
    assert {"power_w", "host_factor", "pue", "g_per_kwh"} <= set(priors)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "quantity"),
    [
        ({"step_mfu": 0.4}, "step_mfu"),
        ({"goodput": 0.9}, "goodput"),
        ({"power_w": 600}, "power_w"),
        ({"host_factor": 1.4}, "host_factor"),
        ({"pue": 1.1}, "pue"),
        ({"grid_g_per_kwh": 300}, "g_per_kwh"),
    ],
)
def test_what_is_given_needs_no_prior(given: dict[str, Any], quantity: str) -> None:
    before = {item["quantity"] for item in answer(EXAMPLE).document["priors"]}
    after = {item["quantity"] for item in answer(EXAMPLE | given).document["priors"]}
    assert before - after == {quantity}


@pytest.mark.django_db
def test_a_given_number_is_certain_and_a_given_range_is_not() -> None:
    certain = answer(make_spec()).document["days"]
    assert certain["p10"] == certain["p90"]
    ranged = answer(make_spec(step_mfu={"low": 0.4, "mode": 0.5, "high": 0.6})).document["days"]
    assert ranged["p10"] < ranged["p90"]


@pytest.mark.django_db
def test_stated_failures_lower_goodput_and_are_named() -> None:
    failing = EXAMPLE | {"reliability": {"failures_per_node_day": 0.0065}}
    plain, worse = answer(EXAMPLE).document, answer(failing).document
    assert worse["assumptions"]["goodput"]["p50"] < plain["assumptions"]["goodput"]["p50"]
    priors = {item["quantity"]: item for item in worse["priors"]}
    assert "after failures" in priors["goodput"]["basis"]
    assert worse["assumptions"]["failures"]["advice"]["interval_s"] > 0


@pytest.mark.django_db
def test_the_interval_of_days_is_that_of_the_fitted_efficiency() -> None:
    found = answer(EXAMPLE).document
    efficiency, days = found["assumptions"]["end_to_end_efficiency"], found["days"]
    assert days["p90"] / days["p10"] == pytest.approx(
        efficiency["p90"] / efficiency["p10"], rel=0.05
    )
