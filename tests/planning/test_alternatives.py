"""The same run in other places and on other hardware: what moves, and what stays."""

from typing import Any

import pytest

from planning.alternatives import Alternative, on_other_hardware, same_run_elsewhere
from planning.spec import SpecError, parse_request
from projects.selectors import the_organisation
from tests.planning.builders import AS_OF, EXAMPLE, make_spec

pytestmark = pytest.mark.django_db


def elsewhere(document: dict[str, Any]) -> tuple[Alternative, ...]:
    return same_run_elsewhere(the_organisation().pk, parse_request(document), as_of=AS_OF)


def hardware(document: dict[str, Any]) -> tuple[Alternative, ...]:
    return on_other_hardware(the_organisation().pk, parse_request(document), as_of=AS_OF)


def asked(rows: tuple[Alternative, ...]) -> Alternative:
    (found,) = [row for row in rows if row.is_asked]
    return found


def test_places_come_with_the_lowest_emissions_first_and_the_asked_one_once() -> None:
    rows = elsewhere(EXAMPLE)
    emissions = [row.scope_2_location_kgco2e for row in rows]
    known = [kg for kg in emissions if kg is not None]
    assert known == sorted(known)
    assert len({row.key for row in rows}) == len(rows) > 5
    assert asked(rows).key == "aws:us-east-1"
    assert rows[0].g_per_kwh is not None
    assert rows[0].g_per_kwh < 60


def test_another_place_changes_energy_and_carbon_but_no_hours_and_no_price() -> None:
    rows = elsewhere(EXAMPLE)
    own = asked(rows)
    assert {row.accelerator_h for row in rows} == {own.accelerator_h}
    assert {row.cost for row in rows} == {own.cost}
    assert len({row.scope_2_location_kgco2e for row in rows}) > 5


def test_carbon_follows_from_the_intensity_of_the_place() -> None:
    """A11: the same energy at 400 and at 30 g/kWh is 79.87 and 5.99 kg."""
    for row in elsewhere(make_spec(region="aws:us-east-1", grid_g_per_kwh=None)):
        if row.facility_energy_kwh and row.g_per_kwh:
            assert row.scope_2_location_kgco2e == pytest.approx(
                row.facility_energy_kwh * row.g_per_kwh / 1000, rel=0.05
            )


def test_a_place_written_in_another_way_is_not_shown_twice() -> None:
    rows = elsewhere(EXAMPLE | {"region": "AWS:us-east-1"})
    assert [row.is_asked for row in rows if row.key == "aws:us-east-1"] == [True]


def test_without_a_place_the_asked_row_has_no_carbon_and_comes_last() -> None:
    rows = elsewhere(make_spec(grid_g_per_kwh=None))
    assert rows[-1].is_asked
    assert rows[-1].scope_2_location_kgco2e is None


def test_other_hardware_has_its_own_days_power_and_price() -> None:
    rows = {row.key: row for row in hardware(EXAMPLE)}
    assert rows["h100-sxm-80gb"].is_asked
    slow, fast = rows["a100-sxm-80gb"].days, rows["b200-sxm-180gb"].days
    own = rows["h100-sxm-80gb"].days
    assert slow is not None
    assert own is not None
    assert fast is not None
    assert fast < own < slow


def test_hardware_without_fp8_falls_back_to_16_bit_and_says_so() -> None:
    rows = {row.key: row for row in hardware(EXAMPLE | {"precision": "fp8"})}
    assert rows["a100-sxm-80gb"].note == "bf16"
    assert rows["h200-sxm-141gb"].note == ""


def test_a_stated_mfu_is_that_of_the_asked_hardware_only() -> None:
    rows = {row.key: row for row in hardware(EXAMPLE | {"step_mfu": 0.9})}
    plain = {row.key: row for row in hardware(EXAMPLE)}
    assert rows["a100-sxm-80gb"].days == plain["a100-sxm-80gb"].days
    assert rows["h100-sxm-80gb"].days != plain["h100-sxm-80gb"].days


def test_hardware_that_cannot_answer_is_shown_with_the_reason() -> None:
    question = EXAMPLE | {"accelerator": "H100 SXM 80GB", "precision": "tf32"}
    rows = {row.key: row for row in hardware(question)}
    assert rows["tpu-v5p"].note == "bf16"
    fixed = [{"key": "data", "amount": {"amount": "1000", "currency": "CHF"}}]
    price = {"amount": "2.50", "currency": "CHF"}
    euros = hardware(EXAMPLE | {"lines": fixed, "price_per_accelerator_hour": price})
    reasons = [row.note for row in euros if not row.is_asked]
    assert all("CHF" in reason for reason in reasons)
    assert {row.days for row in euros if not row.is_asked} == {None}


def test_a_question_that_cannot_be_answered_is_refused() -> None:
    with pytest.raises(SpecError):
        elsewhere(EXAMPLE | {"tokens": 5})
    with pytest.raises(SpecError):
        hardware(EXAMPLE | {"tokens": 5})
