"""Rules change on their pages only after a preview, and the preview is what comes true."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import TargetWish, wishes_of
from billing.models import RuleSet
from billing.services import replace_rules
from jobs.models import Job
from jobs.services import run_job
from projects.records import OrganisationRole, Role
from tests.billing.builders import (
    by,
    charge,
    focus_csv,
    imported,
    in_force,
    operator,
    organisation,
    rule,
)
from tests.builders import person, project, signed_in

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = [
    charge(EffectiveCost="1", SubAccountId="alpha", Tags='{"team": "x"}'),
    charge(EffectiveCost="2", SubAccountId="alpha", Tags='{"team": "y"}'),
    charge(EffectiveCost="4", SubAccountId="beta", Tags='{"team": "x", "env": "prod"}'),
    charge(EffectiveCost="8.01", SubAccountId="beta"),
]


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


def filled(conditions, shares, **more):
    """What the form of a rule sends."""
    number = getattr(newest_rule_set(organisation().pk), "number", 0)
    data = {
        "number": str(number),
        "conditions": str(len(conditions)),
        "shares": str(len(shares)),
        "rule-name": "",
        "preview": "1",
    }
    for index, condition in enumerate(conditions):
        values = {"field": "", "key": "", "op": "is", "value": ""} | condition
        data |= {f"when-{index}-{name}": value for name, value in values.items()}
    for index, share in enumerate(shares):
        values = {"project": "", "weight": "1", "run_key": "", "team": "", "plan_line_key": ""}
        data |= {f"share-{index}-{name}": value for name, value in (values | share).items()}
    return data | more


ALPHA = [{"field": "sub_account", "value": "alpha"}]


def sealed(answer):
    """The signed rules of a preview page."""
    found = re.search(r'name="sealed"\s+value="([^"]+)"', answer.content.decode())
    assert found, answer.content.decode()[:2000]
    return found[1]


def save(client, answer):
    return client.post(reverse("allocation_save"), {"sealed": sealed(answer)})


def apply_changes():
    for job in Job.objects.filter(kind="billing.rebuild_daily_costs", state="queued"):
        run_job(job.pk)


def test_a_rule_is_previewed_then_saved_and_does_what_was_shown(admin):
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))
    shares = [{"project": "moe", "weight": "2"}, {"project": "dense", "team": "pre"}, {}]

    page = admin.post(reverse("allocation_new"), filled([*ALPHA, {}], shares))

    assert RuleSet.objects.count() == 0
    changes = page.context["preview"].projects
    assert {one.project: (one.before, one.after, one.difference) for one in changes} == {
        "dense": (Decimal(0), Decimal(1), Decimal(1)),
        "moe": (Decimal(0), Decimal(2), Decimal(2)),
        None: (Decimal("15.01"), Decimal("12.01"), Decimal(-3)),
    }
    assert page.context["caught"].rows == 2
    answer = save(admin, page)
    assert answer.status_code == 302
    apply_changes()
    assert by("project", "effective") == {one.project: one.after for one in changes}
    assert "Account is alpha" in admin.get(answer.url).content.decode()


def test_the_preview_of_shares_comes_true_to_the_last_digit(admin):
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))
    shares = [{"project": "moe"}, {"project": "dense", "weight": "2"}]

    page = admin.post(
        reverse("allocation_new"), filled([{"field": "provider", "op": "any"}], shares)
    )
    save(admin, page)
    apply_changes()

    after = {one.project: one.after for one in page.context["preview"].projects}
    after.pop(None)
    assert by("project", "effective") == after
    assert sum(after.values()) == Decimal("15.01")


def test_saving_without_a_preview_does_nothing(admin):
    project("moe")

    for forged in ({}, {"sealed": "x"}, {"sealed": "e30:1vM:abc"}):
        assert admin.post(reverse("allocation_save"), forged).status_code == 302

    assert not RuleSet.objects.exists()


def test_rules_that_somebody_changed_meanwhile_are_not_overwritten(admin):
    project("moe")
    imported(focus_csv(ROWS))
    data = filled(ALPHA, [{"project": "moe"}])
    page = admin.post(reverse("allocation_new"), data)
    replace_rules(operator(), [rule("sub_account", "beta", "moe")])

    answer = admin.post(reverse("allocation_save"), {"sealed": sealed(page)}, follow=True)
    late = admin.post(reverse("allocation_new"), data)

    assert "meanwhile" in answer.content.decode()
    assert "meanwhile" in late.content.decode()
    assert RuleSet.objects.count() == 1


def test_a_preview_of_one_organisation_is_nothing_in_another(admin):
    project("moe")
    page = admin.post(reverse("allocation_new"), filled(ALPHA, [{"project": "moe"}]))
    other = person("oscar", role=OrganisationRole.ADMIN, of=organisation("other"))

    answer = signed_in(other).post(reverse("allocation_save"), {"sealed": sealed(page)})

    assert answer.status_code == 404
    assert not RuleSet.objects.exists()


def test_a_project_of_another_organisation_cannot_be_named(admin):
    project("moe")
    project("foreign", of=organisation("other"))

    answer = admin.post(reverse("allocation_new"), filled(ALPHA, [{"project": "foreign"}]))

    assert "sealed" not in answer.content.decode()


def test_rules_are_edited_moved_and_removed_after_a_preview(admin):
    project("moe")
    project("dense")
    imported(focus_csv(ROWS))
    in_force(rule("sub_account", "alpha", "moe"), rule("tag", "x", "dense", key="team"))

    def change(position, action):
        number = newest_rule_set(organisation().pk).number
        data = {"action": action, "number": str(number)}
        return save(admin, admin.post(reverse("allocation_change", args=[position]), data))

    change(2, "up")
    apply_changes()
    assert by("project", "effective")["dense"] == Decimal(5)

    data = filled([{"field": "tag", "key": "team", "value": "y"}], [{"project": "dense"}])
    save(admin, admin.post(reverse("allocation_edit", args=[1]), data))
    change(2, "remove")
    apply_changes()
    assert by("project", "effective") == {"dense": Decimal(2), None: Decimal("13.01")}


def test_a_move_beyond_the_ends_and_an_unknown_rule_change_nothing(admin):
    project("moe")
    in_force(rule("sub_account", "alpha", "moe"))

    for position, action in ((1, "up"), (1, "down"), (1, "burn"), (9, "remove"), (0, "remove")):
        answer = admin.post(
            reverse("allocation_change", args=[position]), {"action": action, "number": "1"}
        )
        assert answer.status_code == 302
    assert admin.get(reverse("allocation_edit", args=[9])).status_code == 404
    assert RuleSet.objects.count() == 1


def test_the_preview_warns_of_rules_that_catch_nothing(admin):
    project("moe")
    imported(focus_csv(ROWS))
    in_force(rule("sub_account", "alpha", "moe"), rule("sub_account", "gamma", "moe"))

    page = admin.post(
        reverse("allocation_new"),
        filled([{"field": "tag", "key": "team", "value": "y"}], [{"project": "moe"}]),
    )

    assert page.context["warnings"] == [
        "Rule 2 catches nothing: no charge so far meets it.",
        "Rule 3 catches nothing: what meets it is taken by rule 1 before.",
    ]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"field": "sub_account", "op": "matches", "value": "(?=a)"}, "lookaround"),
        ({"field": "tag", "value": "x"}, "key"),
        ({"field": "region", "value": ""}, "which value"),
        ({}, "needs a condition"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_its_form(admin, condition, words):
    project("moe")

    page = admin.post(
        reverse("allocation_new"), filled([condition], [{"project": "moe"}])
    ).content.decode()

    assert words in page
    assert "sealed" not in page


def test_one_more_line_is_added_without_losing_what_was_typed(admin):
    project("moe")
    data = filled(ALPHA, [{"project": "moe"}], more_conditions="1")
    del data["preview"]

    page = admin.post(reverse("allocation_new"), data).content.decode()

    assert "when-1-field" in page
    assert "alpha" in page
    assert not RuleSet.objects.exists()


def test_the_list_says_what_each_rule_caught_and_what_is_left(admin):
    project("moe")
    imported(focus_csv(ROWS))
    in_force(
        rule(
            "sub_account", "alpha", "", targets=[TargetWish(project="moe"), TargetWish(team="ops")]
        )
    )

    page = admin.get(reverse("allocation"))

    (row,) = page.context["rules"]
    assert row["catch"].rows == 2
    assert [entry.cost for entry in row["catch"].totals] == [Decimal(3)]
    assert [entry.cost for entry in page.context["unmatched"].totals] == [Decimal("12.01")]
    assert "team ops" in page.content.decode()


def test_what_is_left_is_seen_by_account_service_and_tag(admin):
    project("moe")
    imported(focus_csv(ROWS))
    in_force(rule("sub_account", "alpha", "moe"))
    address = reverse("allocation_unallocated")

    accounts = admin.get(address)
    keys = admin.get(address, {"by": "tags"})
    values = admin.get(address, {"by": "tag:team", "filter": "sub_account_id=beta"})

    def costs(page):
        return {one["row"].group[0]: one["row"].cost for one in page.context["rows"]}

    assert costs(accounts) == {"beta": Decimal("12.01")}
    assert {one["key"].key: one["key"].rows for one in keys.context["keys"]} == {
        "env": 1,
        "team": 1,
    }
    assert costs(values) == {"x": Decimal(4), None: Decimal("8.01")}
    start = next(one["rule_url"] for one in values.context["rows"] if one["row"].group[0])
    form = admin.get(start).content.decode()
    assert 'value="team"' in form
    assert admin.get(address, {"by": "colour"}).status_code == 302


def test_an_empty_installation_has_pages_too(admin):
    for name in ("allocation", "allocation_new", "allocation_unallocated"):
        assert admin.get(reverse(name)).status_code == 200
    assert admin.get(reverse("import_rules")).url == reverse("allocation")


def test_auditors_read_rules_and_members_do_not(admin):
    ana = person("ana")
    project("moe", members=[(ana, Role.OWNER)])
    in_force(rule("sub_account", "alpha", "moe"))
    auditor = signed_in(person("tom", role=OrganisationRole.AUDITOR))
    member = signed_in(ana)

    for name in ("allocation", "allocation_unallocated"):
        assert auditor.get(reverse(name)).status_code == 200
        assert member.get(reverse(name)).status_code == 403
    for name, args in (("allocation_new", []), ("allocation_edit", [1])):
        assert auditor.get(reverse(name, args=args)).status_code == 403
        assert member.get(reverse(name, args=args)).status_code == 403
    for name, args in (("allocation_save", []), ("allocation_change", [1])):
        assert auditor.post(reverse(name, args=args)).status_code == 403
        assert member.post(reverse(name, args=args)).status_code == 403
    assert len(wishes_of(newest_rule_set(organisation().pk))) == 1
    assert "Remove" not in auditor.get(reverse("allocation")).content.decode()
