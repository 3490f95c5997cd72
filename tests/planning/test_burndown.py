"""Plan and actuals joined: what is not known stays not known."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from billing.records import DailyCostRow
from carbon.records import EmissionDay, EmissionSummary, EnergyDay
from planning.accrual_records import Accruals, AccruedDay, Rate, RateBasis
from planning.burndown import Actuals, Question, build_burndown
from planning.documents import burndown_document
from planning.records import CostGroup, LineBase, PlanLineRecord, PlanRecord

START = date(2026, 9, 14)
QUESTION = Question(as_of=datetime(2026, 9, 20, tzinfo=UTC), currency="USD", basis="effective")


def make_cost(
    day: date = START,
    *,
    x_cost_class: str = "accelerator",
    currency: str = "USD",
    cost: str | None = "10",
) -> DailyCostRow:
    return DailyCostRow(
        day=day,
        x_cost_class=x_cost_class,
        currency=currency,
        cost=None if cost is None else Decimal(cost),
        accelerator_h=Decimal("4"),
    )


def make_energy(day: date = START, facility_energy_kwh: float | None = 180.0) -> EnergyDay:
    return EnergyDay(
        day=day,
        accelerator_energy_kwh=100.0,
        it_energy_kwh=None if facility_energy_kwh is None else 150.0,
        facility_energy_kwh=facility_energy_kwh,
        coverage_fraction=1.0,
        measured_fraction=1.0,
        spread_fraction=0.0,
        estimated_fraction=0.0,
    )


def make_emission(day: date = START) -> EmissionDay:
    return EmissionDay(
        day=day,
        facility_energy_kwh=180.0,
        scope_2_location_kgco2e=72.0,
        scope_2_market_kgco2e=None,
        coverage_fraction=1.0,
    )


def make_summary() -> EmissionSummary:
    return EmissionSummary(
        start_on=None,
        end_on=None,
        accelerator_energy_kwh=None,
        it_energy_kwh=None,
        facility_energy_kwh=None,
        scope_2_location_kgco2e=None,
        scope_2_market_kgco2e=None,
        market_basis=(),
        coverage_fraction=None,
        measured_fraction=None,
        spread_fraction=None,
        estimated_fraction=None,
        factors=(),
    )


def make_actuals(
    costs: Sequence[DailyCostRow] = (),
    energy: Sequence[EnergyDay] = (),
    emissions: Sequence[EmissionDay] = (),
) -> Actuals:
    return Actuals(costs=costs, energy=energy, emissions=emissions, emission_summary=make_summary())


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
        version_id=1,
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
    costs = [make_cost(), make_cost(x_cost_class="storage_object", cost="5")]
    burndown = build_burndown(QUESTION, make_plan(), make_actuals(costs))
    assert burndown.programme_multiple == Decimal("0.1")
    assert burndown.all_in_multiple == Decimal("0.15")
    assert make_plan().programme_multiple == Decimal("1.9")


def test_planned_value_stops_at_the_last_billed_day() -> None:
    costs = [make_cost(), make_cost(START + timedelta(days=1))]
    burndown = build_burndown(QUESTION, make_plan(), make_actuals(costs))
    assert burndown.planned_value == Decimal("38")
    assert burndown.cost_over_plan == Decimal("-18")


def test_another_currency_makes_the_total_unknown_instead_of_partial() -> None:
    costs = [make_cost(), make_cost(currency="EUR")]
    burndown = build_burndown(QUESTION, make_plan(), make_actuals(costs))
    assert burndown.actual_cost is None
    assert burndown.other_currencies == ("EUR",)
    assert burndown_document(burndown)["actual_cost"] is None


def test_a_charge_without_a_cost_makes_the_total_unknown_instead_of_partial() -> None:
    costs = [make_cost(), make_cost(START + timedelta(days=1), cost=None)]
    burndown = build_burndown(QUESTION, make_plan(), make_actuals(costs))
    assert burndown.actual_cost is None
    assert burndown.compute_cost is None
    assert burndown_document(burndown)["actual_cost"] is None
    assert {row.actual_cost for row in burndown.days} == {None}


def test_a_day_without_a_charge_is_unknown_not_zero() -> None:
    costs = [make_cost(), make_cost(START + timedelta(days=2))]
    burndown = build_burndown(QUESTION, None, make_actuals(costs))
    assert [row.actual_cost for row in burndown.days] == [Decimal(10), None, Decimal(10)]


def test_nothing_known_gives_no_numbers() -> None:
    burndown = build_burndown(QUESTION, None, make_actuals())
    assert burndown.days == ()
    document = burndown_document(burndown)
    assert document["actual_cost"] is None
    assert document["facility_energy_kwh"] is None
    assert document["planned_value"] is None


def test_energy_of_all_boundaries_and_emissions_stand_on_the_same_days() -> None:
    actuals = make_actuals([make_cost()], [make_energy()], [make_emission()])
    burndown = build_burndown(QUESTION, make_plan(), actuals)
    first = burndown.days[0]
    assert first.cost_by_group == {CostGroup.ACCELERATOR: Decimal(10)}
    assert first.facility_energy_kwh == 180.0
    assert first.scope_2_location_kgco2e == 72.0
    assert first.planned_facility_energy_kwh == pytest.approx(200.0)


def test_money_travels_as_text_with_every_digit() -> None:
    costs = [make_cost(cost="12345678901.000000000000000001")]
    burndown = build_burndown(QUESTION, None, make_actuals(costs))
    assert burndown_document(burndown)["actual_cost"] == "12345678901.000000000000000001"


def test_before_the_first_bill_the_cost_to_date_is_what_is_accrued() -> None:
    rate = Rate(amount=Decimal("2.5"), currency="USD", basis=RateBasis.OWN_PRICE)
    accrued = AccruedDay(
        day=START,
        x_cost_class="accelerator",
        currency="USD",
        quantity=Decimal(8),
        unit="accelerator_h",
        rate=rate,
        cost=Decimal(20),
    )
    actuals = replace(make_actuals(), accruals=Accruals(days=(accrued,)))
    found = build_burndown(QUESTION, make_plan(), actuals)
    assert (found.actual_cost, found.accrued_cost, found.cost_to_date) == (
        None,
        Decimal(20),
        Decimal(20),
    )
    nothing = build_burndown(QUESTION, make_plan(), make_actuals())
    assert nothing.cost_to_date is None
