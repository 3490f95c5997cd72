"""An upload shows its progress and then its report, without anybody reloading the page."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from billing.models import Delivery
from jobs.services import run_job
from projects.records import OrganisationRole
from tests.billing.builders import charge, focus_csv
from tests.builders import PASSWORD, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def test_the_report_appears_when_the_job_is_over(page: Page, tmp_path):
    person("admin", role=OrganisationRole.ADMIN)
    bill = tmp_path / "bill.csv"
    bill.write_bytes(focus_csv([charge(BilledCost="3")]))
    page.goto(reverse("login"))
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")

    page.goto(reverse("import_upload"))
    page.locator("input[type=file]").set_input_files(bill)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.wait_for_timeout(1500)  # it has asked at least once
    run_job(Delivery.objects.get().job_id)

    expect(page.get_by_role("heading", name="What was charged")).to_be_visible(timeout=15_000)
    expect(page.get_by_text("Other compute")).to_be_visible()
