"""The cost explorer: totals that tie, days before, movers, scopes, files equal to the page."""

import csv
import io
import re
import zipfile
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.urls import reverse

from audit.models import AuditEntry
from projects.records import OrganisationRole, Role
from reports.models import SavedView
from reports.sheet_files import as_csv, as_xlsx, harmless
from reports.sheets import Cell, Column, Kind, Line, Sheet
from tests import builders
from tests.billing.builders import (
    costing,
    focus_csv,
    imported,
    in_force,
    organisation,
    rule,
)

pytestmark = pytest.mark.django_db(transaction=True)
SPREADSHEET = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


@pytest.fixture(autouse=True)
def _organisation():
    organisation()


@pytest.fixture
def admin() -> Client:
    return builders.signed_in(builders.person("admin", role=OrganisationRole.ADMIN))


def on(day: str, amount: str, **columns: str) -> dict[str, str]:
    """A charge of a day of its own month."""
    year, month = int(day[:4]), int(day[5:7])
    following = f"{year + month // 12}-{month % 12 + 1:02}"
    return costing(
        amount,
        **{
            "BillingPeriodStart": f"{day[:7]}-01T00:00:00Z",
            "BillingPeriodEnd": f"{following}-01T00:00:00Z",
            "ChargePeriodStart": f"{day}T00:00:00Z",
            "ChargePeriodEnd": f"{day}T01:00:00Z",
            **columns,
        },
    )


def two_months() -> None:
    """EC2 rises from 40 to 100, S3 falls from 9 to 5.25, Glue is gone, Athena is new."""
    imported(
        focus_csv(
            [
                on("2026-04-30", "40", ServiceName="AmazonEC2"),
                on("2026-04-28", "9", ServiceName="AmazonS3"),
                on("2026-04-29", "3", ServiceName="AWSGlue"),
                on("2026-03-02", "1", ServiceName="AWSGlue"),
                on("2026-05-01", "60", ServiceName="AmazonEC2"),
                on("2026-05-12", "40", ServiceName="AmazonEC2", RegionId="eu-west-1"),
                on("2026-05-31", "5.25", ServiceName="AmazonS3"),
                on("2026-05-02", "0.5", ServiceName="AmazonAthena"),
            ]
        )
    )


BY_SERVICE = {"group_by": "service_name", "month": "2026-05"}


def groups(page) -> dict[str, tuple]:
    """Name -> cost now, before and difference."""
    return {
        group.key[0] or "": (group.row.cost, group.previous, group.difference)
        for group in page.context["answer"].groups
    }


def amounts(html: str) -> list[str]:
    """The exact values that the page's table has behind what is read."""
    table = html[html.index('class="table-tight"') :]
    return re.findall(r'<data class="quantity" value="([^"]*)"', table[: table.index("</table>")])


def sheet_rows(content: bytes, number: int = 1) -> list[list[str]]:
    """The cells of a workbook's sheet as their own text; numbers as written."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        shared = [
            "".join(text.text or "" for text in item.iter(f"{{{SPREADSHEET['s']}}}t"))
            for item in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        ]
        sheet = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
    rows = []
    for row in sheet.iterfind(".//s:row", SPREADSHEET):
        found: dict[int, str] = {}
        for cell in row.iterfind("s:c", SPREADSHEET):
            assert cell.find("s:f", SPREADSHEET) is None, "a formula"
            value = cell.findtext("s:v", "", SPREADSHEET)
            letters = re.sub(r"\d", "", cell.attrib["r"])
            place = 0
            for letter in letters:
                place = place * 26 + ord(letter) - 64
            found[place - 1] = shared[int(value)] if cell.get("t") == "s" else value
        rows.append([found.get(at, "") for at in range(max(found, default=-1) + 1)])
    return rows


def test_groups_stand_beside_as_many_days_before_and_both_totals_tie(admin):
    two_months()

    page = admin.get(reverse("costs"), BY_SERVICE)

    assert groups(page) == {
        "AmazonEC2": (100, 40, 60),
        "AmazonS3": (Decimal("5.25"), 9, Decimal("-3.75")),
        "AmazonAthena": (Decimal("0.5"), 0, Decimal("0.5")),
        "AWSGlue": (0, 3, -3),
    }
    answer = page.context["answer"]
    assert (str(answer.before.start_on), answer.before.count) == ("2026-03-31", 31)
    (total,) = answer.totals
    assert (total.row.cost, total.previous) == (Decimal("105.75"), 52)
    assert sum(row.cost for row in total.by_period.values()) == Decimal("105.75")


def test_the_largest_rises_and_falls_are_named(admin):
    two_months()

    (movers,) = admin.get(reverse("costs"), BY_SERVICE).context["answer"].movers

    assert [one.key[0] for one in movers.rises] == ["AmazonEC2", "AmazonAthena"]
    assert [one.key[0] for one in movers.falls] == ["AmazonS3", "AWSGlue"]
    assert movers.rises[0].change == Decimal("1.5")
    assert movers.rises[1].change is None  # out of nothing


def test_days_that_are_not_billed_yet_are_not_compared(admin):
    two_months()

    page = admin.get(
        reverse("costs"), {"group_by": "service_name", "from": "2026-05-31", "to": "2026-06-30"}
    )

    answer = page.context["answer"]
    assert answer.compared.count == answer.before.count == 1


def test_without_earlier_charges_nothing_is_compared(admin):
    imported(focus_csv([on("2026-05-01", "1")]))

    page = admin.get(reverse("costs"))

    assert page.context["answer"].before is None
    assert groups(page)["other_compute"] == (1, None, None)


def test_two_columns_and_weeks_keep_every_cent(admin):
    two_months()

    page = admin.get(
        reverse("costs"), {"group_by": "service_name,region_id", "month": "2026-05", "by": "week"}
    )

    answer = page.context["answer"]
    assert {group.key: group.row.cost for group in answer.groups if group.row.cost} == {
        ("AmazonEC2", "us-west-2"): 60,
        ("AmazonEC2", "eu-west-1"): 40,
        ("AmazonS3", "us-west-2"): Decimal("5.25"),
        ("AmazonAthena", "us-west-2"): Decimal("0.5"),
    }
    assert [str(day) for day in answer.periods] == ["2026-04-27", "2026-05-11", "2026-05-25"]


def test_any_column_and_none_add_up(admin):
    imported(
        focus_csv([on("2026-05-01", "1", Tags='{"team": "x"}'), on("2026-05-02", "2", SkuId="s")])
    )

    for column in ("tag:team", "sku_id", "x_usage_type", "billing_currency", "day", ""):
        page = admin.get(reverse("costs"), {"group_by": column, "month": "2026-05"})
        assert page.context["answer"].totals[0].row.cost == 3, column


def test_currencies_are_never_in_one_sum(admin):
    imported(focus_csv([on("2026-05-01", "1"), on("2026-05-01", "7", BillingCurrency="EUR")]))

    answer = admin.get(reverse("costs")).context["answer"]

    assert {one.row.currency: one.row.cost for one in answer.totals} == {"USD": 1, "EUR": 7}
    assert len(answer.groups) == 2


def test_a_cell_leads_to_the_charges_that_it_is_the_sum_of(admin):
    two_months()
    page = admin.get(reverse("costs"), {**BY_SERVICE, "table": "periods", "by": "day"})

    seen = 0
    for line in page.context["sheet"].lines:
        for column, cell in zip(page.context["sheet"].columns, line.cells, strict=True):
            if cell.href and column.kind is Kind.MONEY and cell.value:
                behind = admin.get(cell.href)
                assert behind.context["totals"][0].cost == cell.value, column.title
                seen += 1
    assert seen >= 9


def test_a_filter_of_the_form_becomes_part_of_the_address(admin):
    two_months()

    answer = admin.get(
        reverse("costs"),
        {**BY_SERVICE, "add_column": "region_id", "add_value": "eu-west-1"},
    )
    assert answer.status_code == 302
    page = admin.get(answer["Location"])

    assert "add_value" not in answer["Location"]
    assert page.context["answer"].totals[0].row.cost == 40
    proposed = admin.get(reverse("costs"), {**BY_SERVICE, "add_column": "region_id"})
    assert {one["value"] for one in proposed.context["values"]} == {"us-west-2", "eu-west-1"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_by": "nonsense"},
        {"group_by": "region_id,service_name,project"},
        {"by": "hour"},
        {"filter": "nonsense"},
        {"from": "2026-13-01"},
        {"through": "9999-12-31"},
    ],
)
def test_a_question_that_cannot_be_read_is_told_so(admin, wrong):
    for name in ("costs", "costs_csv", "costs_xlsx"):
        assert admin.get(reverse(name), wrong).status_code == 400


def test_a_member_sees_the_charges_of_its_projects_only():
    alice = builders.person("alice")
    builders.project("moe", members=[(alice, Role.VIEWER)])
    builders.project("other")
    in_force(
        rule("region", "us-west-2", "moe"),
        rule("region", "eu-west-1", "other"),
    )
    two_months()
    imported(focus_csv([on("2026-05-03", "1000", RegionId="us-east-1")]), source="second")

    client = builders.signed_in(alice)
    page = client.get(reverse("costs"), BY_SERVICE)

    assert page.context["answer"].totals[0].row.cost == Decimal("65.75")
    text = client.get(reverse("costs_csv"), BY_SERVICE).content.decode()
    assert "1000" not in text
    assert "65.75" in text
    assert (
        "eu-west-1"
        not in client.get(reverse("costs"), {**BY_SERVICE, "add_column": "region_id"})
        .content.decode()
        .split('id="costs-values"')[1]
        .split("</datalist>")[0]
    )


def test_the_empty_page_has_one_sentence_and_one_button(admin):
    nothing = admin.get(reverse("costs")).content.decode()
    two_months()
    elsewhere = admin.get(
        reverse("costs"), {**BY_SERVICE, "filter": "region_id=moon"}
    ).content.decode()

    for page in (nothing, elsewhere):
        block = page.split('class="empty"')[1].split("</div>")[0]
        assert block.count("<p>") == 1
        assert block.count("button-primary") == 1


def test_page_csv_and_workbook_say_the_same_digit_by_digit(admin):
    imported(
        focus_csv(
            [
                on("2026-05-01", "1234567.123456789012345678", ServiceName="=1+1"),
                on("2026-05-02", "0.000000000000000001", ServiceName="=1+1"),
                on("2026-05-02", "-3.5", ServiceName="<r>x</r>"),
                on("2026-04-30", "2", ServiceName="EC2"),
            ]
        )
    )
    for table in ("totals", "periods"):
        files_say_what_the_page_says(admin, {**BY_SERVICE, "table": table})


def files_say_what_the_page_says(admin: Client, asked: dict[str, str]) -> None:
    page = admin.get(reverse("costs"), asked).content.decode()
    text = admin.get(reverse("costs_csv"), asked).content.decode()
    book = admin.get(reverse("costs_xlsx"), asked).content

    header, *lines = csv.reader(io.StringIO(text))
    texts = {0, header.index("Currency")}
    in_csv = [
        value for line in lines for at, value in enumerate(line) if at not in texts and value != ""
    ]
    assert amounts(page) == in_csv
    assert lines[0][:3] == ["'=1+1", "USD", "1234567.123456789012345679"]
    assert lines[-1][2] == "1234563.623456789012345679"

    top, *rows = sheet_rows(book)
    exact = top.index("Billed, every digit")
    assert [row[exact] for row in rows] == [line[2] for line in lines]
    assert [row[0] for row in rows] == ["=1+1", "EC2", " <r>x</r>", "Total USD"]
    plain = [at for at, title in enumerate(top) if title in header and title != "Billed"]
    for row, line in zip(rows, lines, strict=True):
        for at in plain:
            theirs = line[header.index(top[at])].removeprefix("'")
            ours = row[at] if at < len(row) else ""
            if theirs == "" or at in (0, 1):
                assert ours.strip() == theirs
            else:
                assert Decimal(ours) == pytest.approx(Decimal(theirs), rel=Decimal("1e-14"))
    assert ["Days", "2026-05-01 – 2026-05-31"] in sheet_rows(book, 2)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\tx", "\r=1", " =1", "\n=1", "\uff1d1", "a\n=1"]
)
def test_no_text_is_run_by_a_spreadsheet(text):
    columns = (Column(title="a"), Column(title="b", kind=Kind.MONEY))
    cells = (Cell(value=text), Cell(value=Decimal(1)))
    sheet = Sheet(key="x", title="x", columns=columns, lines=(Line(cells=cells),))

    if text != "a\n=1":
        assert harmless(text).startswith("'")
    assert text in as_csv(sheet).replace('"', "")
    sheet_rows(as_xlsx([sheet]))  # no formula in it


def test_a_saved_view_is_opened_renamed_and_deleted_on_the_page(admin):
    two_months()
    query = "group_by=service_name&basis=billed&month=2026-05&table=periods"

    kept = admin.post(reverse("saved_views"), {"name": "services", "query": query})
    (view,) = SavedView.objects.all()
    page = admin.get(reverse("costs"))

    assert kept.status_code == 303
    assert f'href="/costs/?{view.query.replace("&", "&amp;")}"' in page.content.decode()
    assert admin.get(f"{view.path}?{view.query}").context["asked"].by_period
    admin.post(reverse("saved_view", args=[view.pk]), {"name": "all", "is_shared": "on"})
    assert SavedView.objects.get().is_shared
    admin.post(reverse("saved_view_delete", args=[view.pk]), {"back": "//example.org/"})
    assert not SavedView.objects.exists()
    assert {"view.save", "view.rename", "view.delete"} <= set(
        AuditEntry.objects.values_list("action", flat=True)
    )


def test_a_view_that_is_saved_without_days_opens_the_newest_month(admin):
    two_months()
    page = admin.get(reverse("costs"), {"group_by": "service_name"})

    admin.post(reverse("saved_views"), {"name": "now", "query": page.context["kept_query"]})
    view = SavedView.objects.get()
    imported(focus_csv([on("2026-06-01", "7")]))

    newest = admin.get(f"{view.path}?{view.query}").context["answer"]
    assert (newest.totals[0].row.cost, str(newest.days.start_on)) == (7, "2026-06-01")


def test_a_form_leads_back_to_our_own_pages_only(admin):
    for back in ("//example.org/", "https://example.org/", "javascript:alert(1)", "\\\\x"):
        answer = admin.post(reverse("saved_views"), {"name": "x", "query": "", "back": back})
        assert answer["Location"].startswith("/costs/")


def test_the_number_of_statements_does_not_grow_with_the_charges(
    admin, django_assert_max_num_queries
):
    two_months()
    with django_assert_max_num_queries(30):
        admin.get(reverse("costs"), BY_SERVICE)
