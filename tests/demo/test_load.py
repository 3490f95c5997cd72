"""The loaded demo says what its generator's ledger says, to the last digit, and stays so."""

from collections import defaultdict
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.checks import verify_chain
from billing.checks import verify as verify_billing
from billing.invoice_records import Tie
from billing.invoice_selectors import reconciliations
from billing.selectors import billed_through, cost_by_day, costs_grouped
from carbon.checks import verify as verify_carbon
from carbon.selectors import emissions_by_day, emissions_summary, energy_by_day
from costwatch.configuration import dump_document
from costwatch.demo import story
from costwatch.demo.charges import build_bills
from costwatch.demo.energy import CERTIFICATE_KWH
from costwatch.demo.ledger import ChargeLedger, EnergyLedger
from costwatch.demo.load import DemoError, Wish, load_demo
from costwatch.demo.power import build_power
from planning.checks import verify as verify_planning
from planning.selectors import burndown_of, plan_versions
from projects.models import Organisation, Project, User
from tests import builders

FIRST, LAST = date(2026, 8, 1), date(2026, 11, 30)
Costs = dict[tuple[date, str], Decimal]
COLUMN_OF_BASIS = {
    "billed": "billed_cost",
    "effective": "effective_cost",
    "list": "list_cost",
    "contracted": "contracted_cost",
}


def stated_costs(ledger: ChargeLedger, project: str | None, basis: str) -> Costs:
    """What the ledger says of a project's days and classes."""
    costs: defaultdict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for key, cost in ledger.costs.items():
        if key.project == project:
            costs[key.day, key.x_cost_class] += getattr(cost, COLUMN_OF_BASIS[basis])
    return dict(costs)


def told_costs(organisation: Organisation, project: Project, basis: str) -> Costs:
    """What the application says of the same."""
    costs: defaultdict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for row in cost_by_day(organisation.pk, project.pk, basis=basis, start_on=FIRST, end_on=LAST):
        assert row.currency == "USD"
        costs[row.day, row.x_cost_class] += row.cost
    return dict(costs)


@pytest.mark.django_db(transaction=True)
def test_the_loaded_demo(subtests: Any) -> None:
    organisation = builders.organisation()
    load_demo(organisation, Wish(seed=7, with_accounts=True))
    project = Project.objects.get(slug=story.PROJECT_SLUG)
    charges, energy = build_bills(7)[1], build_power(7)[1]
    checks: list[Callable[..., None]] = [
        costs_are_the_ledgers,
        unallocated_charges_stay_in_sight,
        accelerator_hours_are_the_ledgers,
        invoices_tie_within_a_cent,
        energy_is_the_ledgers,
        the_factors_are_named,
        the_plan_is_approved_and_burns_down,
        everybody_can_sign_in,
        every_check_holds,
        loading_it_again_changes_nothing,
        another_seed_restates_the_bills,
        invoices_tie_within_a_cent,
    ]
    for check in checks:
        with subtests.test(check.__name__.replace("_", " ")):
            check(organisation, project, charges, energy)


def costs_are_the_ledgers(
    organisation: Organisation, project: Project, charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    for basis in COLUMN_OF_BASIS:
        assert told_costs(organisation, project, basis) == stated_costs(
            charges, story.PROJECT_SLUG, basis
        )


def unallocated_charges_stay_in_sight(
    organisation: Organisation, _project: Project, charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    table = costs_grouped(
        organisation.pk,
        group_by=["project"],
        basis="billed",
        start_on=FIRST,
        end_on=LAST,
        include_unallocated=True,
    )
    told = {row.group[0]: row.cost for row in table.rows}
    nobodys = charges.of_project(None).billed_cost
    assert nobodys > 0
    assert sorted(told.values()) == sorted(
        [nobodys, charges.of_project(story.PROJECT_SLUG).billed_cost]
    )
    assert table.total[0].cost == charges.total().billed_cost


def accelerator_hours_are_the_ledgers(
    organisation: Organisation, project: Project, charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    rows = cost_by_day(organisation.pk, project.pk, basis="billed", start_on=FIRST, end_on=LAST)
    told = sum((row.accelerator_h for row in rows if row.accelerator_h is not None), Decimal(0))
    assert told == charges.of_project(story.PROJECT_SLUG).accelerator_h
    assert billed_through(organisation.pk, project.pk) == date(2026, 11, 14)


def energy_is_the_ledgers(
    organisation: Organisation, project: Project, _charges: ChargeLedger, energy: EnergyLedger
) -> None:
    days = energy_by_day(organisation.pk, project.pk, start_on=FIRST, end_on=LAST)
    assert [day.day for day in days] == sorted(energy.days)
    for day in days:
        stated = energy.days[day.day]
        seen_kwh = day.accelerator_energy_kwh * (1 - day.estimated_fraction)
        assert seen_kwh == pytest.approx(stated.accelerator_energy_millijoule / 3.6e9, rel=1e-12)
        assert 0 <= day.estimated_fraction < 0.02
        assert day.facility_energy_kwh == pytest.approx(
            day.accelerator_energy_kwh * story.HOST_FACTOR * story.PUE, rel=1e-9
        )
        assert day.coverage_fraction == pytest.approx(
            stated.covered_device_h / stated.assigned_device_h, rel=1e-9
        )


def the_factors_are_named(
    organisation: Organisation, project: Project, _charges: ChargeLedger, energy: EnergyLedger
) -> None:
    summary = emissions_summary(organisation.pk, project.pk, start_on=FIRST, end_on=LAST)
    factors = {factor.kind: factor for factor in summary.factors}
    grids = {factor.level for factor in summary.factors if factor.kind == "grid_intensity"}
    assert grids == {"us_state", "hour"}
    assert factors["pue"].value == story.PUE
    assert factors["pue"].source == story.PUE_SOURCE
    assert factors["host_factor"].value == story.HOST_FACTOR
    assert summary.coverage_fraction == pytest.approx(energy.coverage_fraction, rel=1e-9)
    days = emissions_by_day(organisation.pk, project.pk, start_on=FIRST, end_on=LAST)
    assert summary.scope_2_location_kgco2e == pytest.approx(
        sum(day.scope_2_location_kgco2e for day in days), rel=1e-9
    )
    assert summary.contracted_kwh == pytest.approx(CERTIFICATE_KWH)


def the_plan_is_approved_and_burns_down(
    _organisation: Organisation, project: Project, charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    (plan,) = plan_versions(project)
    assert plan.is_approved
    days = (plan.main_run_ends_on - plan.main_run_starts_on) / timedelta(days=1)
    assert 72 <= days <= 73
    burndown = burndown_of(project, as_of=story.AS_OF + timedelta(days=3650), basis="billed")
    assert burndown.actual_cost == charges.of_project(story.PROJECT_SLUG).billed_cost
    assert burndown.programme_multiple is not None
    assert burndown.all_in_multiple is not None
    assert 1 < burndown.programme_multiple < burndown.all_in_multiple < Decimal("1.8")


def everybody_can_sign_in(*_: object) -> None:
    for person in story.DEMO_USERS:
        user = User.objects.get(username=person.username)
        assert user.check_password(story.DEMO_PASSWORD)
        assert user.organisation_role == person.organisation_role
        roles = [membership.role for membership in user.memberships.all()]
        assert roles == ([person.project_role] if person.project_role else [])


def every_check_holds(organisation: Organisation, *_: object) -> None:
    for verify in (verify_chain, verify_billing, verify_carbon, verify_planning):
        assert list(verify(organisation.pk)) == []


def loading_it_again_changes_nothing(
    organisation: Organisation, project: Project, charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    before = dump_document(organisation.pk)
    stages = load_demo(organisation, Wish(seed=7, with_accounts=True))
    assert "power" not in stages
    assert dump_document(organisation.pk) == before
    assert len(plan_versions(project)) == 1
    assert told_costs(organisation, project, "billed") == stated_costs(
        charges, story.PROJECT_SLUG, "billed"
    )


def another_seed_restates_the_bills(
    organisation: Organisation, project: Project, *_: object
) -> None:
    load_demo(organisation, Wish(seed=8, with_accounts=True))
    assert told_costs(organisation, project, "billed") == stated_costs(
        build_bills(8)[1], story.PROJECT_SLUG, "billed"
    )


@pytest.mark.django_db
def test_somebodys_own_project_of_the_same_address_is_left_alone() -> None:
    organisation = builders.organisation()
    builders.project(story.PROJECT_SLUG)
    with pytest.raises(DemoError, match="not marked as synthetic"):
        load_demo(organisation, Wish())
    with pytest.raises(CommandError, match="not marked as synthetic"):
        call_command("demo", one_process=True)


@pytest.mark.django_db
def test_where_the_project_exists_if_absent_does_nothing(capsys: Any) -> None:
    builders.organisation()
    builders.project(story.PROJECT_SLUG)
    call_command("demo", if_absent=True)
    assert "/projects/demo-moe-10b/" in capsys.readouterr().out
    assert not User.objects.filter(username="demo").exists()


def invoices_tie_within_a_cent(
    organisation: Organisation, _project: Project, _charges: ChargeLedger, _energy: EnergyLedger
) -> None:
    stated = [one for one in reconciliations(organisation.pk) if one.expected is not None]
    assert len(stated) >= 2
    assert {one.tie for one in stated} == {Tie.TIES}
