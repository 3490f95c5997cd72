"""The lines around a main run: the true product of the chapter's table, and other evidence."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.money import Money
from formulae.plan_lines import (
    EVIDENCE_PRESETS,
    PLAN_LINES,
    REFERENCE_BAND,
    PlanLineBase,
    PlanLineRule,
    evidence_preset,
    plan_lines,
    programme_multiple,
)
from formulae.units import QuantityError


@pytest.mark.parametrize(
    ("key", "multiple"),
    [("chapter", "1.74"), ("olmo-2", "1.5"), ("llama-1", "3.4"), ("olmo-3", "5.618")],
)
def test_each_preset_multiplies_to_what_its_source_says(key: str, multiple: str) -> None:
    preset = evidence_preset(key)
    assert programme_multiple(preset.rules) == Decimal(multiple)
    assert preset.source
    assert preset.finding


def test_the_main_run_comes_first_in_every_preset() -> None:
    for preset in EVIDENCE_PRESETS:
        first = preset.rules[0]
        assert (first.key, first.fraction, first.base) == (
            "main_run",
            Decimal(1),
            PlanLineBase.MAIN_RUN,
        )


def test_an_unknown_preset_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(QuantityError, match="chapter, olmo-2, llama-1, olmo-3"):
        evidence_preset("gpt-5")


def test_the_chapters_lines_lie_outside_the_band_that_they_are_said_to_prove() -> None:
    assert (Decimal("1.8"), Decimal("2.0")) == REFERENCE_BAND
    assert programme_multiple() < REFERENCE_BAND[0]
    missing = PlanLineRule(key="unlisted", fraction=Decimal("0.10"), base=PlanLineBase.MAIN_RUN)
    assert programme_multiple((*PLAN_LINES[:-1], missing, PLAN_LINES[-1])) == Decimal("1.86")


def test_153123_hours_at_2_50_dollars_are_666085_dollars_in_all() -> None:
    main = Money.of("2.50", "USD").times(153_123)
    assert abs(main.amount - 382_807) < 1
    total = sum((line.amount.amount for line in plan_lines(main)), Decimal(0))
    assert abs(total - 666_085) < 1
    low, high = (main.times(multiple).amount for multiple in REFERENCE_BAND)
    assert abs(low - 689_053) < 1
    assert abs(high - 765_615) < 1


@given(st.decimals(min_value=0, max_value=10**12, places=6))
def test_plan_lines_sum_to_the_multiple_exactly(cost: Decimal) -> None:
    lines = plan_lines(Money.of(cost, "USD"))
    assert [line.rule for line in lines] == list(PLAN_LINES)
    total = sum((line.amount.amount for line in lines), Decimal(0))
    assert total == cost * Decimal("1.74")


def test_a_line_on_the_subtotal_follows_every_line_above_it() -> None:
    contingency = plan_lines(Money.of(1000, "USD"))[-1]
    assert contingency.base_amount == Money.of(1450, "USD")
    assert contingency.amount == Money.of(290, "USD")
