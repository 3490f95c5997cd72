"""An upload of power shows its progress and then its report, without anybody reloading the page."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from jobs.models import Job
from jobs.services import run_job
from projects.records import OrganisationRole
from tests.builders import PASSWORD, person
from tests.carbon.builders import SAMPLES, samples, site, write_csv

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def test_the_report_appears_when_the_job_is_over(page: Page, tmp_path):
    person("admin", role=OrganisationRole.ADMIN)
    site()
    hour = write_csv(tmp_path / "hour.csv", SAMPLES, samples())
    page.goto(reverse("login"))
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")

    page.goto(reverse("power"))
    page.locator("input[type=file]").set_input_files(hour)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.wait_for_timeout(1500)  # it has asked at least once
    expect(page.get_by_role("heading", name="hour.csv")).to_be_visible()
    run_job(Job.objects.get(kind="carbon.store_power_delivery").pk)

    expect(page.get_by_role("heading", name="Import report")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("heading", name="hour.csv")).to_be_visible()
