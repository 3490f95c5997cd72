"""The tables of a project's page as files: the same days and sums, every digit."""

import csv
import io
from zipfile import ZipFile

import pytest
from django.test import Client
from django.urls import reverse

from planning.services import approve_plan
from projects.records import Role
from tests import builders
from tests.billing import builders as bills
from tests.planning import builders as plans

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    vera = builders.person("vera")
    moe = builders.project("moe", members=[(vera, Role.VIEWER)])
    draft = plans.make_draft(bills.operator(), moe)
    approve_plan(bills.operator(), draft, as_of=plans.AS_OF)
    return builders.signed_in(vera)


def rows_of(client: Client, table: str, query: str = "") -> list[dict[str, str]]:
    answer = client.get(f"/projects/moe/days/{table}.csv{query}")
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_the_file_has_the_days_and_the_sums_of_the_page(client):
    page = client.get("/projects/moe/")
    shown = page.context["page"].rows

    rows = rows_of(client, "cost")

    assert [row["Day"] for row in rows] == [one.day.isoformat() for one in shown]
    assert {row["Currency"] for row in rows} == {"USD"}
    assert [row["Planned value"] for row in rows][-1] == f"{shown[-1].planned_value:f}".rstrip(
        "0"
    ).rstrip(".")
    assert {row["Cost to date"] for row in rows} == {""}  # nothing is billed: not known, never 0


def test_the_page_leads_to_its_files_with_what_it_was_asked(client):
    page = client.get("/projects/moe/?basis=billed").content.decode()

    assert f'{reverse("days_csv", args=["moe", "cost"])}?basis=billed"' in page
    assert f'{reverse("days_xlsx", args=["moe"])}?basis=billed"' in page


def test_a_table_that_the_page_does_not_show_is_no_file(client):
    assert client.get("/projects/moe/days/energy.csv").status_code == 404
    assert client.get("/projects/moe/days/secrets.csv").status_code == 404


def test_the_workbook_opens_and_says_what_was_asked(client):
    answer = client.get("/projects/moe/days.xlsx?basis=billed")

    book = ZipFile(io.BytesIO(answer.content))
    assert "Cost by day" in book.read("xl/workbook.xml").decode()
    assert "billed" in book.read("xl/sharedStrings.xml").decode()
