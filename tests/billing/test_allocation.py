"""Charges go to the shares of one rule at most; what no rule names stays visible as unallocated."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from billing import configuration
from billing.allocation_wishes import RuleWish, TargetWish
from billing.checks import verify
from billing.models import DailyCost, RuleSet
from billing.records import RuleCondition
from billing.selectors import (
    billed_through,
    cost_by_day,
    costs_grouped,
    unallocated_cost,
)
from billing.services import RulesChangedError, rebuild_daily_costs, replace_rules
from jobs.models import Job
from jobs.records import JobContext
from tests.billing.builders import (
    by,
    charge,
    costing,
    focus_csv,
    imported,
    in_force,
    operator,
    organisation,
    roll_up,
    rule,
    total,
)
from tests.builders import project

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = [
    charge(BilledCost="1", SubAccountId="alpha", Tags='{"team": "x"}', ResourceId="r-1"),
    charge(BilledCost="2", SubAccountId="alpha", Tags='{"team": "y"}', ResourceId="r-2"),
    charge(BilledCost="4", SubAccountId="beta", Tags='{"team": "x", "env": "prod"}'),
    charge(BilledCost="8", SubAccountId="beta"),
    charge(BilledCost="16", SubAccountId=""),
]
SHARED = (TargetWish(project="moe", weight=Decimal(2)), TargetWish(project="dense"))


def test_without_rules_everything_is_unallocated():
    imported(focus_csv(ROWS))

    assert by("project") == {None: Decimal(31)}


def test_charges_go_to_projects_by_account_tag_and_resource():
    project("moe")
    imported(focus_csv(ROWS))

    in_force(rule("tag", "x", "moe", key="team"))
    assert by("project") == {"moe": Decimal(5), None: Decimal(26)}

    in_force(
        rule("tag", "x", "moe", key="team"),
        rule("resource", "r-2", "moe"),
        rule("sub_account", "beta", "moe"),
    )
    assert by("project") == {"moe": Decimal(15), None: Decimal(16)}
    assert verify(organisation().pk) == []


def test_the_first_rule_wins_and_no_charge_counts_twice():
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))

    in_force(
        rule("tag", "x", "moe", key="team"),
        rule("sub_account", "alpha", "dense"),
        rule("sub_account", "*", "dense"),
    )

    assert by("project") == {"moe": Decimal(5), "dense": Decimal(10), None: Decimal(16)}
    assert sum(by("project").values()) == Decimal(31)


@pytest.mark.parametrize(
    ("condition", "cost"),
    [
        (RuleCondition(field="tag", key="team", op="any"), 7),
        (RuleCondition(field="label", key="team", op="any"), 7),
        (RuleCondition(field="tag", key="team", op="absent"), 24),
        (RuleCondition(field="tag", key="env", op="is", value="prod"), 4),
        (RuleCondition(field="resource", op="starts_with", value="r-"), 3),
        (RuleCondition(field="resource", op="matches", value=r"-[2-9]$"), 2),
        (RuleCondition(field="sub_account", op="one_of", value="alpha\nbeta\n"), 15),
        (RuleCondition(field="sub_account", op="absent"), 16),
        (RuleCondition(field="billing_account", value="111111111111"), 31),
        (RuleCondition(field="service", op="starts_with", value="Amazon"), 31),
        (RuleCondition(field="service_category", value="Compute"), 31),
        (RuleCondition(field="region", op="matches", value="^us-(east|west)-[0-9]$"), 31),
        (RuleCondition(field="provider", value="AWS"), 31),
        (RuleCondition(field="invoice_issuer", value="AWS"), 31),
        (RuleCondition(field="charge_category", value="Usage"), 31),
        (RuleCondition(field="cost_class", value="other_compute"), 31),
        (RuleCondition(field="resource_name", op="absent"), 31),
        (RuleCondition(field="source", value="aws"), 31),
        (RuleCondition(field="source", op="matches", value="^gcp"), 0),
        (RuleCondition(field="source", op="absent"), 0),
    ],
    ids=lambda one: f"{one.field} {one.op}" if isinstance(one, RuleCondition) else "",
)
def test_every_field_and_comparison_finds_its_charges(condition, cost):
    project("moe")
    imported(focus_csv(ROWS))

    in_force(RuleWish(conditions=(condition,), targets=(TargetWish(project="moe"),)))

    assert by("project").get("moe", 0) == cost
    assert verify(organisation().pk) == []


def test_all_conditions_of_a_rule_must_hold():
    project("moe")
    imported(focus_csv(ROWS))

    in_force(
        RuleWish(
            conditions=(
                RuleCondition(field="tag", key="team", value="x"),
                RuleCondition(field="sub_account", value="beta"),
            ),
            targets=(TargetWish(project="moe"),),
        )
    )

    assert by("project") == {"moe": Decimal(4), None: Decimal(27)}


def test_shares_sum_to_the_cost_to_the_last_digit():
    project("moe")
    project("dense")
    amounts = ["0.000000000000000001", "-0.000000000000000002", "10", "-7.77", "100.01"]
    imported(focus_csv([costing(text, RegionId=f"r{index}") for index, text in enumerate(amounts)]))

    in_force(rule("sub_account", "*", "", targets=SHARED))

    found = {
        (row.region_id, row.project.slug): row.billed_cost
        for row in DailyCost.objects.select_related("project")
    }
    for index, text in enumerate(amounts):
        assert found[f"r{index}", "moe"] + found[f"r{index}", "dense"] == Decimal(text)
    assert found["r0", "moe"] == Decimal("0.000000000000000001")
    assert found["r1", "moe"] == Decimal("-0.000000000000000001")
    assert found["r2", "moe"] == Decimal("6.666666666666666667")
    assert total("billed") == sum(map(Decimal, amounts))
    assert verify(organisation().pk) == []


def test_shares_carry_run_team_and_plan_line_and_may_stay_with_nobody():
    project("moe")
    imported(focus_csv(ROWS))

    in_force(
        rule(
            "sub_account",
            "beta",
            "",
            targets=[
                TargetWish(project="moe", run_key="main", team="pre", plan_line_key="main_run"),
                TargetWish(project="moe", team="post"),
                TargetWish(weight=Decimal(2), team="platform"),
            ],
        )
    )

    shares = DailyCost.objects.filter(rule_position=1, has_tags=False)
    assert {
        (one.project_id is None, one.run_key, one.team, one.plan_line_key, one.billed_cost)
        for one in shares
    } == {
        (False, "main", "pre", "main_run", Decimal(2)),
        (False, None, "post", None, Decimal(2)),
        (True, None, "platform", None, Decimal(4)),
    }
    assert by("team") == {
        "pre": Decimal(3),
        "post": Decimal(3),
        "platform": Decimal(6),
        None: Decimal(19),
    }
    assert by("project") == {"moe": Decimal(6), None: Decimal(25)}
    assert verify(organisation().pk) == []


def test_rows_are_counted_once_however_many_share_them():
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))

    in_force(rule("sub_account", "*", "", targets=SHARED))

    assert sum(DailyCost.objects.values_list("rows", flat=True)) == len(ROWS)


def test_a_cost_that_a_row_lacks_is_unknown_in_every_share():
    project("moe")
    project("dense")
    imported(focus_csv([costing("1"), charge(EffectiveCost="")]))

    in_force(rule("sub_account", "*", "", targets=SHARED))

    assert by("project", "effective") == {"moe": None, "dense": None}
    assert by("project", "billed")["moe"] == Decimal("1.4")
    assert verify(organisation().pk) == []


def test_rules_apply_to_bills_that_come_later():
    project("moe")
    in_force(rule("sub_account", "alpha", "moe"))

    imported(focus_csv(ROWS))

    assert by("project")["moe"] == Decimal(3)
    assert verify(organisation().pk) == []


def test_a_rule_by_source_tells_equal_charges_of_two_sources_apart():
    project("moe")
    imported(focus_csv(ROWS), source="aws")
    imported(focus_csv([costing("100")]), source="reseller")

    in_force(rule("source", "reseller", "moe"))

    assert by("project") == {"moe": Decimal(100), None: Decimal(31)}
    own = costs_grouped(organisation().pk, group_by=["project", "tag:team"], basis="billed")
    assert [(row.group, row.cost) for row in own.rows] == [(("moe", None), Decimal(100))]
    assert verify(organisation().pk) == []


def test_removing_a_rule_gives_the_charges_back():
    project("moe")
    imported(focus_csv(ROWS))
    before = roll_up()
    in_force(rule("sub_account", "alpha", "moe"))

    in_force()

    assert roll_up() == before
    assert RuleSet.objects.count() == 2


def test_rolling_up_again_changes_nothing():
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))
    job = Job.objects.get(pk=in_force(rule("sub_account", "alpha", "", targets=SHARED)))
    before = roll_up()

    rebuild_daily_costs(JobContext(job_id=job.pk, organisation_id=organisation().pk, payload={}))

    assert roll_up() == before


def test_verify_says_when_rules_are_not_applied_yet():
    project("moe")
    imported(focus_csv(ROWS))

    replace_rules(operator(), [rule("sub_account", "alpha", "moe")])

    assert "daily_cost_rules" in {finding.code for finding in verify(organisation().pk)}


def test_verify_finds_a_share_that_is_one_unit_off():
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))
    in_force(rule("sub_account", "beta", "", targets=SHARED))

    share = DailyCost.objects.filter(rule_position=1).first()
    share.billed_cost += Decimal("0.000000000000000001")
    share.save()

    codes = {finding.code for finding in verify(organisation().pk)}
    assert {"daily_cost_python", "daily_cost_engine"} <= codes


MOE = (TargetWish(project="moe"),)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (rule("colour", "x", "moe"), "Match by one of"),
        (rule("sub_account", "x", "moe", op="contains"), "Compare by one of"),
        (rule("tag", "x", "moe"), "tag's key"),
        (rule("resource", "x", "moe", key="k"), "tag's key"),
        (rule("sub_account", " ", "moe"), "which value"),
        (rule("sub_account", "\n \n", "moe", op="one_of"), "which value"),
        (rule("sub_account", "(?=x)", "moe", op="matches"), "lookaround"),
        (rule("sub_account", r"(x)\1", "moe", op="matches"), "references"),
        (rule("sub_account", "x" * 301, "moe", op="matches"), "at most 300"),
        (rule("sub_account", "x", "nobody"), "no project nobody"),
        (RuleWish(conditions=(), targets=MOE), "needs a condition"),
        (RuleWish(conditions=(RuleCondition(field="region", op="any"),), targets=()), "share"),
        (rule("region", "x", "", targets=[*MOE, *MOE]), "Two shares"),
        (rule("region", "x", "", targets=[TargetWish(weight=Decimal(0))]), "above 0"),
        (rule("region", "x", "", targets=[TargetWish(weight=Decimal("NaN"))]), "above 0"),
        (rule("region", "x", "", targets=[TargetWish(weight=Decimal("1e-7"))]), "decimals"),
        (rule("region", "x", "", targets=[TargetWish(team="t" * 121)]), "at most 120"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_words(wish, words):
    project("moe")

    with pytest.raises(ValidationError, match=words):
        replace_rules(operator(), [wish])

    assert not RuleSet.objects.exists()


def test_two_rules_for_the_same_charges_are_refused():
    project("moe")

    with pytest.raises(ValidationError, match="Rules 1 and 2"):
        replace_rules(operator(), [rule("region", "x", "moe"), rule("region", " x", "moe")])


def test_rules_made_from_older_ones_are_refused():
    project("moe")
    in_force(rule("region", "x", "moe"))

    with pytest.raises(RulesChangedError, match="meanwhile"):
        replace_rules(operator(), [rule("region", "y", "moe")], instead_of=0)

    assert RuleSet.objects.count() == 1


def test_selectors_answer_for_one_project_and_for_the_rest():
    moe = project("moe")
    imported(focus_csv(ROWS))
    in_force(rule("sub_account", "alpha", "moe"))
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


def test_rules_of_both_shapes_are_read_and_written_as_configuration():
    project("moe")
    short = {"match": "resource", "value": "*", "project": "moe"}
    full = {
        "name": "Shared storage",
        "when": [
            {"field": "cost_class", "op": "one_of", "values": ["storage_file", "storage_object"]},
            {"field": "tag", "key": "team", "op": "absent"},
            {"field": "region", "op": "matches", "value": "^us-"},
        ],
        "shares": [
            {"project": "moe", "weight": "2.5", "team": "data", "plan_line_key": "storage"},
            {"project": None, "weight": "1"},
        ],
    }
    document = {"allocation_rules": [short, full]}

    assert configuration.apply(operator(), document) == ["allocation_rules: 2 in force"]
    assert configuration.dump(organisation().pk)["allocation_rules"] == [short, full]
    assert configuration.apply(operator(), document) == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"match": "colour", "value": "x", "project": "moe"}, "match"),
        ({"when": [{"field": "region", "op": "any"}]}, "shares"),
        (
            {
                "when": [{"field": "region", "op": "any"}],
                "shares": [{"project": "moe", "weight": "much"}],
            },
            "much",
        ),
        (
            {
                "when": [{"field": "region", "op": "any"}],
                "shares": [{"project": "moe", "colour": "red"}],
            },
            "colour",
        ),
    ],
)
def test_a_rule_that_the_configuration_cannot_mean_is_refused_by_name(entry, words):
    project("moe")

    with pytest.raises(ValueError, match=words):
        configuration.apply(operator(), {"allocation_rules": [entry]})
