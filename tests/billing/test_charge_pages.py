"""The pages of charges: every view adds up to one total, down to the line of the file."""

import csv
import io
import re
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from billing.allocation_wishes import TargetWish
from billing.charge_rows import charge_rows
from billing.charge_selectors import stack_of
from billing.cost_questions import Scope, make_question, question_in
from billing.cost_selectors import cost_table
from billing.models import ChargeSlice
from projects.records import OrganisationRole, Role
from tests import builders
from tests.billing.builders import (
    charge,
    costing,
    focus_csv,
    imported,
    in_force,
    organisation,
    rule,
    total,
)

pytestmark = pytest.mark.django_db(transaction=True)
ALL = {"month": "all"}


@pytest.fixture(autouse=True)
def _organisation():
    organisation()


@pytest.fixture
def admin() -> Client:
    return builders.signed_in(builders.person("admin", role=OrganisationRole.ADMIN))


def shown(response) -> str:
    """The text of a page, without its markup."""
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_the_page_adds_up_and_narrows_to_a_group(admin):
    imported(
        focus_csv(
            [
                costing("10.25"),
                costing("-2.25", ChargeCategory="Credit"),
                costing("4", ServiceName="AmazonS3", ServiceCategory="Storage"),
            ]
        )
    )

    page = admin.get(reverse("charges"))
    services = admin.get(reverse("charges"), {"group_by": "service_name"})

    assert page.context["totals"][0].cost == Decimal("12.00")
    assert sum(group.row.cost for group in page.context["groups"]) == Decimal("12.00")
    assert {group.name: group.row.cost for group in services.context["groups"]} == {
        "AmazonEC2": Decimal(8),
        "AmazonS3": Decimal(4),
    }
    link = next(one.narrow_url for one in services.context["groups"] if one.name == "AmazonS3")
    narrowed = admin.get(reverse("charges") + link)
    assert narrowed.context["totals"][0].cost == Decimal(4)
    assert "Service: AmazonS3" in shown(narrowed)


@pytest.mark.parametrize("column", ["sku_id", "tag:team", "resource_id", "x_usage_type"])
def test_columns_that_only_the_lake_has_add_up_too(admin, column):
    imported(
        focus_csv([costing("1", ResourceId="r", Tags='{"team": "x"}'), costing("2", SkuId="s")])
    )

    page = admin.get(reverse("charges"), {"group_by": column, **ALL})

    assert page.context["totals"][0].cost == 3


def test_what_a_charge_lacks_is_said_to_be_missing_and_shares_wait_for_a_total(admin):
    imported(focus_csv([charge(EffectiveCost=""), costing("1", RegionId="eu-west-1")]))

    page = admin.get(reverse("charges"), {"basis": "effective", "group_by": "region_id"})

    assert page.context["totals"][0].cost is None
    assert "n/a" in shown(page)
    assert [group.share for group in page.context["groups"]] == [None, None]


def test_the_csv_is_the_table_and_runs_in_no_spreadsheet(admin):
    rows = [costing("-3.5", ServiceName="=cmd|' /C calc'!A0"), costing("1", ServiceName="EC2")]
    imported(focus_csv(rows))

    answer = admin.get(reverse("charges_table"), {"group_by": "service_name", **ALL})

    header, *lines = list(csv.reader(io.StringIO(answer.content.decode())))
    assert header == ["service_name", "currency", "billed_cost", "share", "rows"]
    assert lines[0][:3] == ["EC2", "USD", "1"]
    assert lines[1][:3] == ["'=cmd|' /C calc'!A0", "USD", "-3.5"]
    assert lines[-1][:3] == ["Total", "USD", "-2.5"]


def test_rows_are_listed_and_their_sum_is_the_groups(admin):
    imported(focus_csv([costing(str(number)) for number in range(1, 61)]))

    page = admin.get(reverse("charge_rows"), ALL)
    second = admin.get(reverse("charge_rows"), {**ALL, "page": "2"})
    beyond = admin.get(reverse("charge_rows"), {**ALL, "page": str(10**30)})

    assert [row["cost"] for row in page.context["rows"]][:2] == [60, 59]
    assert page.context["totals"][0].cost == sum(range(1, 61))
    assert [row["cost"] for row in second.context["rows"]] == list(range(10, 0, -1))
    assert beyond.status_code == 200


def test_one_charge_shows_its_reason_its_history_and_the_line_of_its_file(admin):
    line = costing(
        "98.32",
        SkuMeter="BoxUsage:p5.48xlarge",
        ConsumedQuantity="2",
        PricingQuantity="2",
        Note="as written",
    )
    imported(("may.csv", focus_csv([line, costing("1")])))
    rows = admin.get(reverse("charge_rows"), ALL).context["rows"]

    page = admin.get(reverse("charge_detail", args=[rows[0]["slice_id"], rows[0]["number"]]))

    text = shown(page)
    assert "its instance type or SKU has accelerators" in text
    assert page.context["charge"]["x_accelerator_h"] == 16
    assert page.context["origin"].line["Note"] == "as written"
    assert page.context["origin"].line["BilledCost"] == "98.32"
    assert page.context["origin"].file.sha256 in text
    assert "may.csv" in text
    assert "known from" in text


def test_a_restated_charge_says_until_when_it_was_known(admin):
    imported(focus_csv([costing("1")]))
    old = ChargeSlice.objects.get()
    imported(focus_csv([costing("2")]))

    page = admin.get(reverse("charge_detail", args=[old.pk, 0]))

    (known,) = page.context["history"]
    assert known.superseded_at is not None
    assert "superseded" in shown(page)


def test_a_member_sees_the_charges_of_the_own_projects_and_nobodys_of_others():
    alice = builders.person("alice")
    moe = builders.project("moe", members=[(alice, Role.VIEWER)])
    builders.project("secret")
    imported(
        focus_csv(
            [
                costing("1", SubAccountId="a"),
                costing("2", SubAccountId="b"),
                costing("4", SubAccountId="c"),
            ]
        )
    )
    in_force(rule("sub_account", "a", "moe"), rule("sub_account", "b", "secret"))
    member = builders.signed_in(alice)

    page = member.get(reverse("charges"), ALL)
    by_project = member.get(reverse("charges"), {**ALL, "group_by": "project"})
    by_lake = member.get(reverse("charges"), {**ALL, "group_by": "sku_id"})
    rows = member.get(reverse("charge_rows"), ALL)
    export = member.get(reverse("charges_export"), ALL)

    assert moe.slug in shown(by_project)
    assert "secret" not in shown(by_project)
    assert "Unallocated" not in shown(by_project)
    for one in (page, by_project, by_lake, rows):
        assert one.context["totals"][0].cost == 1
    assert [row["sub_account_id"] for row in rows.context["rows"]] == ["a"]
    exported = list(csv.DictReader(io.StringIO(b"".join(export).decode())))
    assert [row["SubAccountId"] for row in exported] == ["a"]
    addresses = [
        reverse("charge_detail", args=[ChargeSlice.objects.get().pk, number]) for number in range(4)
    ]
    statuses = [member.get(address).status_code for address in addresses]
    assert sorted(statuses) == [200, 404, 404, 404]


@pytest.mark.parametrize(
    "asked",
    [
        {"group_by": "colour"},
        {"group_by": "tag:"},
        {"basis": "blended"},
        {"filter": "colour=red"},
        {"filter": "nothing"},
        {"month": "2026-13"},
        {"from": "2026-06-01", "to": "2026-05-01"},
        {"from": "31/02/2026"},
    ],
)
def test_a_question_that_cannot_be_is_refused_in_words(admin, asked):
    for name in ("charges", "charge_rows", "charges_table", "charges_export"):
        answer = admin.get(reverse(name), asked)
        assert answer.status_code == 400


def test_hostile_tags_stay_text(admin):
    hostile = "</script><img src=x onerror=alert(1)>"
    imported(focus_csv([costing("1", Tags=f'{{"team": "{hostile}"}}')]))

    page = admin.get(reverse("charges"), {"group_by": "tag:team", **ALL})
    odd = admin.get(reverse("charges"), {"group_by": "tag:x'--", **ALL})

    assert hostile not in page.content.decode()
    assert odd.context["totals"][0].cost == 1


def test_shared_charges_are_listed_with_the_share_and_add_up(admin):
    moe = builders.project("moe")
    builders.project("dense")
    imported(focus_csv([costing("0.01"), costing("0.02")]))
    targets = [TargetWish(project="moe"), TargetWish(project="dense", weight=Decimal(2))]
    in_force(rule("sub_account", "", "", op="any", targets=targets))
    scope = Scope(project_id=moe.pk)
    question = make_question(group_by=(), basis="billed", scope=scope)

    found = charge_rows(stack_of(organisation().pk, question), question, limit=10, offset=0)

    assert found.count == 2
    assert {row["share"] for row in found.rows} == {Decimal(1) / 3}
    assert cost_table(organisation().pk, question).total[0].cost == Decimal("0.01")
    assert total() == Decimal("0.03")


def test_files_are_named_by_what_is_in_them(admin):
    imported(focus_csv([costing("1")]))
    may = {"month": "2026-05", "basis": "effective"}

    table = admin.get(reverse("charges_table"), may)
    export = admin.get(reverse("charges_export"), may)
    some = admin.get(reverse("charges_table"), {"from": "2026-05-01", "to": "2026-05-03"})
    everything = admin.get(reverse("charges_table"), ALL)

    assert 'filename="costs-effective-2026-05.csv"' in table["Content-Disposition"]
    assert "effective_cost" in table.content.decode().splitlines()[0]
    assert 'filename="charges-focus-1.2-2026-05.csv"' in export["Content-Disposition"]
    assert 'filename="costs-billed-2026-05-01_2026-05-02.csv"' in some["Content-Disposition"]
    assert 'filename="costs-billed-all.csv"' in everything["Content-Disposition"]


def test_many_months_are_months_and_not_days(admin):
    imported(focus_csv([costing("1"), costing("2")]))

    months = admin.get(reverse("charges"), ALL)
    days = admin.get(reverse("charges"), {"month": "2026-05"})

    assert "Month by month" in shown(months)
    assert "Day by day" not in shown(months)
    assert {trace["type"] for trace in months.context["chart"]["figure"]["data"]} == {"bar"}
    assert months.context["chart"]["figure"]["data"][0]["x"] == ["2026-05"]
    assert "Day by day" in shown(days)


def test_what_is_chosen_is_told_apart_by_something_finer(admin):
    imported(focus_csv([costing("1", SkuId="a"), costing("2", SkuId="b")]))

    classes = admin.get(reverse("charges"), ALL)
    services = admin.get(reverse("charges") + classes.context["groups"][0].narrow_url)
    skus = admin.get(reverse("charges") + services.context["groups"][0].narrow_url)

    assert services.context["question"].group_by == ("service_name",)
    assert skus.context["question"].group_by == ("sku_id",)
    assert [group.name for group in skus.context["groups"]] == ["b", "a"]


def test_one_charge_leads_back_to_the_list_it_was_found_in(admin):
    imported(focus_csv([costing("1"), costing("2", RegionId="eu-west-1")]))
    asked = {"month": "2026-05", "basis": "effective", "filter": "region_id=eu-west-1"}

    rows = admin.get(reverse("charge_rows"), asked)
    (link,) = re.findall(r'href="([^"]*/rows/[0-9a-f-]{36}/[^"]*)"', rows.content.decode())
    page = admin.get(link.replace("&amp;", "&"))
    back = admin.get(page.context["list_url"])

    assert back.context["question"] == rows.context["question"]
    assert admin.get(page.context["charges_url"]).context["question"] == rows.context["question"]
    assert "empty fields" in shown(page)
    assert "1 May 2026 to 31 May 2026" in shown(rows)


def test_tags_are_proposed_by_the_keys_that_the_days_have_and_the_person_may_see(admin):
    alice = builders.person("alice")
    builders.project("moe", members=[(alice, Role.VIEWER)])
    imported(
        focus_csv(
            [
                costing("1", SubAccountId="a", Tags='{"team": "x"}'),
                costing("2", SubAccountId="b", Tags='{"secret": "y"}'),
            ]
        )
    )
    in_force(rule("sub_account", "a", "moe"))
    page = admin.get(reverse("charges"), {"month": "2026-05"})

    assert page.context["tag_keys"] == ["secret", "team"]
    assert admin.get(reverse("charges"), {"month": "2026-04"}).context["tag_keys"] == []
    assert builders.signed_in(alice).get(reverse("charges"), ALL).context["tag_keys"] == ["team"]


def test_what_has_no_value_says_what_it_lacks(admin):
    imported(focus_csv([costing("1", SkuId="")]))

    def name(column):
        page = admin.get(reverse("charges"), {"group_by": column, **ALL})
        return page.context["groups"][0].name

    assert name("tag:team") == "without this tag"
    assert name("sku_id") == "no SKU"


def test_a_member_of_no_project_reads_why_there_is_nothing():
    imported(focus_csv([costing("1")]))
    nobody = builders.signed_in(builders.person("nobody"))

    for name in ("charges", "charge_rows"):
        assert "You belong to no project" in shown(nobody.get(reverse(name), ALL))


def test_only_slices_with_charges_on_the_days_are_opened(admin):
    imported(focus_csv([costing("1")]))
    may, april = (question_in({"month": [month]}, Scope()) for month in ("2026-05", "2026-04"))

    assert len(stack_of(organisation().pk, may).slices) == 1
    assert not stack_of(organisation().pk, april).slices
