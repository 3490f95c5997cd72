"""Plan and actuals joined: what is not known stays not known."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from planning.burndown import Actuals, Question, build_burndown
from planning.documents import burndown_document
from planning.records import CostGroup, LineBase, PlanLineRecord, PlanRecord

START = date(2026, 9, 14)
QUESTION = Question(as_of=datetime(2026, 9, 20, tzinfo=UTC), currency="USD", basis="effective")


@dataclass
class Cost:
    day: date
    x_cost_class: str = "accelerator"
    currency: str = "USD"
    cost: Decimal | None = Decimal("10")
    accelerator_h: Decimal | None = Decimal("4")


@dataclass
class Energy:
    day: date
    accelerator_energy_kwh: float | None = 100.0
    it_energy_kwh: float | None = 150.0
    facility_energy_kwh: float | None = 180.0
    coverage_fraction: float | None = 1.0
    measured_fraction: float | None = 1.0


@dataclass
class Emission:
    day: date
    scope_2_location_kgco2e: float | None = 72.0


def make_plan(amount: str = "100", extra: str = "90") -> PlanRecord:
    def line(key: str, value: str) -> PlanLineRecord:
        return PlanLineRecord(
            key=key,
            name=key,
            base=LineBase.MAIN_RUN,
            fraction=Decimal(1),
            amount=Decimal(value),
            starts_on=START,
            ends_on=START + timedelta(days=10),
            facility_energy_kwh=1000.0,
            kgco2e=None,
        )

    return PlanRecord(
        version_id=uuid4(),
        number=1,
        is_approved=True,
        approved_at=None,
        approved_by="alice",
        currency="USD",
        main_run_cost=Decimal(amount),
        main_run_starts_on=START,
        main_run_ends_on=START + timedelta(days=10),
        main_run_facility_energy_kwh=1000.0,
        main_run_kgco2e=None,
        estimate_id=uuid4(),
        lines=(line("main_run", amount), line("contingency", extra)),
    )


def test_multiples_are_named_and_measured_against_the_main_run() -> None:
    costs = [Cost(START), Cost(START, x_cost_class="storage_object", cost=Decimal("5"))]
    burndown = build_burndown(QUESTION, make_plan(), Actuals(costs=costs, energy=[], emissions=[]))
    assert burndown.programme_multiple == Decimal("0.1")
    assert burndown.all_in_multiple == Decimal("0.15")
    assert make_plan().programme_multiple == Decimal("1.9")


def test_planned_value_stops_at_the_last_billed_day() -> None:
    costs = [Cost(START), Cost(START + timedelta(days=1))]
    burndown = build_burndown(QUESTION, make_plan(), Actuals(costs=costs, energy=[], emissions=[]))
    assert burndown.planned_value == Decimal("38")
    assert burndown.cost_over_plan == Decimal("-18")


def test_another_currency_makes_the_total_unknown_instead_of_partial() -> None:
    costs = [Cost(START), Cost(START, currency="EUR")]
    burndown = build_burndown(QUESTION, make_plan(), Actuals(costs=costs, energy=[], emissions=[]))
    assert burndown.actual_cost is None
    assert burndown.other_currencies == ("EUR",)
    assert burndown_document(burndown)["actual_cost"] is None


def test_a_class_in_another_basis_that_is_null_makes_the_total_unknown() -> None:
    costs = [Cost(START), Cost(START, cost=None)]
    burndown = build_burndown(QUESTION, make_plan(), Actuals(costs=costs, energy=[], emissions=[]))
    assert burndown.actual_cost is None


def test_a_day_without_a_charge_is_unknown_not_zero() -> None:
    costs = [Cost(START), Cost(START + timedelta(days=2))]
    burndown = build_burndown(QUESTION, None, Actuals(costs=costs, energy=[], emissions=[]))
    assert [row.actual_cost for row in burndown.days] == [Decimal(10), None, Decimal(10)]


def test_nothing_known_gives_no_numbers() -> None:
    burndown = build_burndown(QUESTION, None, Actuals(costs=[], energy=[], emissions=[]))
    assert burndown.days == ()
    document = burndown_document(burndown)
    assert document["actual_cost"] is None
    assert document["facility_energy_kwh"] is None
    assert document["planned_value"] is None


def test_energy_of_all_boundaries_and_emissions_stand_on_the_same_days() -> None:
    actuals = Actuals(costs=[Cost(START)], energy=[Energy(START)], emissions=[Emission(START)])
    burndown = build_burndown(QUESTION, make_plan(), actuals)
    first = burndown.days[0]
    assert first.cost_by_group == {CostGroup.ACCELERATOR: Decimal(10)}
    assert first.facility_energy_kwh == 180.0
    assert first.scope_2_location_kgco2e == 72.0
    assert first.planned_facility_energy_kwh == pytest.approx(200.0)


def test_an_unknown_host_factor_keeps_accelerator_energy_and_drops_the_rest() -> None:
    energy = [Energy(START), Energy(START, it_energy_kwh=None, facility_energy_kwh=None)]
    actuals = Actuals(costs=[], energy=energy, emissions=[])
    burndown = build_burndown(QUESTION, None, actuals)
    assert burndown.accelerator_energy_kwh == 200.0
    assert burndown.facility_energy_kwh is None


def test_money_travels_as_text_with_every_digit() -> None:
    costs = [Cost(START, cost=Decimal("12345678901.000000000000000001"))]
    burndown = build_burndown(QUESTION, None, Actuals(costs=costs, energy=[], emissions=[]))
    assert burndown_document(burndown)["actual_cost"] == "12345678901.000000000000000001"
