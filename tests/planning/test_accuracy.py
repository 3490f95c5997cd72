"""How far the estimator is off on published runs: the bar, and the page that says so."""

from pathlib import Path

import pytest

from bench.estimator_accuracy import METHODS, Score, by_run, energy_by_run, score, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "estimator.md"


@pytest.fixture(scope="module")
def scores() -> dict[str, Score]:
    return {name: score(name, method) for name, method in METHODS.items()}


def test_the_median_error_with_the_family_left_out_is_at_most_18_percent(
    scores: dict[str, Score],
) -> None:
    assert scores["Costwatch"].median_absolute_error <= 0.18


def test_three_quarters_of_the_runs_lie_within_30_percent(scores: dict[str, Score]) -> None:
    assert scores["Costwatch"].within_30_percent >= 0.75


def test_the_median_signed_error_is_within_5_percent(scores: dict[str, Score]) -> None:
    assert abs(scores["Costwatch"].median_signed_error) <= 0.05


def test_the_80_percent_interval_covers_and_is_narrower_than_a_lognormal_by_class(
    scores: dict[str, Score],
) -> None:
    own, plain = scores["Costwatch"], scores["Median by hardware class, plain lognormal"]
    assert own.coverage_of_80_percent is not None
    assert 0.65 <= own.coverage_of_80_percent <= 0.95
    assert own.mean_sd_log is not None
    assert plain.mean_sd_log is not None
    assert own.mean_sd_log < plain.mean_sd_log


def test_it_is_nearer_than_every_other_method(scores: dict[str, Score]) -> None:
    others = [one for name, one in scores.items() if name != "Costwatch"]
    assert all(
        scores["Costwatch"].median_absolute_error < one.median_absolute_error for one in others
    )
    assert all(scores["Costwatch"].within_30_percent > one.within_30_percent for one in others)


def test_the_page_shows_the_tables_as_they_are(scores: dict[str, Score]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table(list(scores.values())) in text
    assert by_run() in text
    assert energy_by_run() in text
