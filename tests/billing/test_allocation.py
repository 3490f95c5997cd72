"""Charges go to one project at most; what no rule names stays visible as unallocated."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
from django.core.exceptions import ValidationError

from billing.checks import verify
from billing.models import RuleSet
from billing.selectors import (
    billed_through,
    cost_by_day,
    costs_grouped,
    unallocated_cost,
)
from billing.services import RuleWish, add_rule, rebuild_daily_costs, remove_rule
from jobs.models import Job
from jobs.records import JobContext
from jobs.services import run_job
from tests.billing.builders import by, charge, focus_csv, imported, operator, organisation, roll_up
from tests.builders import project

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = [
    charge(BilledCost="1", SubAccountId="alpha", Tags='{"team": "x"}', ResourceId="r-1"),
    charge(BilledCost="2", SubAccountId="alpha", Tags='{"team": "y"}', ResourceId="r-2"),
    charge(BilledCost="4", SubAccountId="beta", Tags='{"team": "x", "env": "prod"}'),
    charge(BilledCost="8", SubAccountId="beta"),
    charge(BilledCost="16", SubAccountId=""),
]


def rule(match: str, value: str, slug: str, key: str = "") -> UUID:
    """Add a rule and have it applied."""
    job_id = add_rule(operator(), RuleWish(match=match, key=key, value=value, project=slug))
    run_job(job_id)
    return job_id


def test_without_rules_everything_is_unallocated():
    imported(focus_csv(ROWS))

    assert by("project") == {None: Decimal(31)}


def test_charges_go_to_projects_by_account_tag_and_resource():
    project("moe")
    imported(focus_csv(ROWS))

    rule("tag", "x", "moe", key="team")
    assert by("project") == {"moe": Decimal(5), None: Decimal(26)}

    rule("resource", "r-2", "moe")
    rule("sub_account", "beta", "moe")
    assert by("project") == {"moe": Decimal(15), None: Decimal(16)}
    assert verify(organisation().pk) == []


def test_the_first_rule_wins_and_no_charge_counts_twice():
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))

    rule("tag", "x", "moe", key="team")
    rule("sub_account", "alpha", "dense")
    rule("sub_account", "*", "dense")

    assert by("project") == {"moe": Decimal(5), "dense": Decimal(10), None: Decimal(16)}
    assert sum(by("project").values()) == Decimal(31)


def test_rules_apply_to_bills_that_come_later():
    project("moe")
    rule("sub_account", "alpha", "moe")

    imported(focus_csv(ROWS))

    assert by("project")["moe"] == Decimal(3)
    assert verify(organisation().pk) == []


def test_removing_a_rule_gives_the_charges_back():
    project("moe")
    imported(focus_csv(ROWS))
    before = roll_up()
    rule("sub_account", "alpha", "moe")

    run_job(remove_rule(operator(), 1))

    assert roll_up() == before
    assert RuleSet.objects.count() == 2


def test_rolling_up_again_changes_nothing():
    project("moe")
    imported(focus_csv(ROWS))
    job = Job.objects.get(pk=rule("sub_account", "alpha", "moe"))
    before = roll_up()

    rebuild_daily_costs(JobContext(job_id=job.pk, organisation_id=organisation().pk, payload={}))

    assert roll_up() == before


def test_verify_says_when_rules_are_not_applied_yet():
    project("moe")
    imported(focus_csv(ROWS))

    add_rule(operator(), RuleWish(match="sub_account", value="alpha", project="moe"))

    assert "daily_cost_rules" in {finding.code for finding in verify(organisation().pk)}


@pytest.mark.parametrize(
    "wish",
    [
        RuleWish(match="colour", value="x", project="moe"),
        RuleWish(match="tag", value="x", project="moe"),
        RuleWish(match="resource", key="k", value="x", project="moe"),
        RuleWish(match="sub_account", value=" ", project="moe"),
        RuleWish(match="sub_account", value="x", project="nobody"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(wish):
    project("moe")

    with pytest.raises(ValidationError):
        add_rule(operator(), wish)

    assert not RuleSet.objects.exists()


def test_the_same_rule_twice_is_refused():
    project("moe")
    rule("sub_account", "alpha", "moe")

    with pytest.raises(ValidationError):
        add_rule(operator(), RuleWish(match="sub_account", value="alpha", project="moe"))


def test_selectors_answer_for_one_project_and_for_the_rest():
    moe = project("moe")
    imported(focus_csv(ROWS))
    rule("sub_account", "alpha", "moe")
    pk = organisation().pk

    days = cost_by_day(
        pk, moe.pk, basis="billed", start_on=date(2026, 5, 1), end_on=date(2026, 5, 5)
    )
    assert [(row.day, row.x_cost_class, row.cost) for row in days] == [
        (date(2026, 5, 4), "other_compute", Decimal(3))
    ]
    assert (
        cost_by_day(pk, moe.pk, basis="billed", start_on=date(2026, 5, 1), end_on=date(2026, 5, 4))
        == []
    )
    assert [entry.cost for entry in unallocated_cost(pk, basis="billed")] == [Decimal(28)]
    assert billed_through(pk, moe.pk) == date(2026, 5, 4)
    own = costs_grouped(pk, group_by=["tag:team"], basis="billed", allowed_project_ids=[moe.pk])
    assert {row.group[0]: row.cost for row in own.rows} == {"x": Decimal(1), "y": Decimal(2)}
    assert costs_grouped(pk, group_by=["day"], basis="billed", allowed_project_ids=[]).rows == ()
