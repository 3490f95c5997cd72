"""The auditor's walk in a real browser: from a figure to its readings in at most five clicks."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from projects.records import OrganisationRole
from tests.builders import PASSWORD, organisation, person
from tests.carbon.energy_builders import hall

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

SUMS = re.compile(r"The sum of \d+ rows? is this figure\.")


class Clicks:
    """Clicks like a person and counts."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def on(self, locator) -> None:
        locator.click()
        self.page.wait_for_load_state()
        self.count += 1


def figure(page: Page, label: str) -> float:
    tile = page.locator(".tile").filter(
        has=page.locator(".tile-label", has_text=re.compile(f"^{label}$"))
    )
    return float(tile.first.locator("data").first.get_attribute("value"))


def axe_faults(page: Page) -> list:
    found = Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_from_a_figure_to_the_readings_behind_it_in_at_most_five_clicks(page, tmp_path):
    organisation()
    person("ada", role=OrganisationRole.ADMIN)
    hall(tmp_path)
    page.goto("/login/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    page.goto("/projects/moe/")
    whole = figure(page, "Emissions, location-based")
    assert whole > 0

    clicks = Clicks(page)
    clicks.on(page.locator("a.tile", has_text="Emissions, location-based"))
    assert figure(page, "Location-based") == pytest.approx(whole, rel=1e-12)
    expect(page.get_by_text(SUMS)).to_be_visible()
    assert axe_faults(page) == []

    day = row_value(page, "2025-10-01")
    clicks.on(page.get_by_role("link", name="2025-10-01", exact=True))
    assert figure(page, "Location-based") == pytest.approx(day, rel=1e-12)
    expect(page.get_by_text(SUMS)).to_be_visible()

    hour = row_value(page, "2025-10-01T05")
    clicks.on(page.get_by_role("link", name="2025-10-01T05", exact=True))
    assert figure(page, "Location-based") == pytest.approx(hour, rel=1e-12)
    expect(page.get_by_text(SUMS)).to_be_visible()
    for words in ("Grid intensity", "Host factor", "set on the site"):
        expect(page.get_by_text(words).first).to_be_visible()
    assert axe_faults(page) == []

    device = row_value(page, "GPU-0001")
    clicks.on(page.get_by_role("link", name="GPU-0001", exact=True))
    assert figure(page, "Location-based") == pytest.approx(device, rel=1e-12)
    expect(page.get_by_text("what the newest version calls measured and spread")).to_be_visible()
    expect(page.get_by_role("cell", name="metered interval").first).to_be_visible()
    expect(page.get_by_text("all.csv")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^[0-9a-f]{64}$")).first).to_be_visible()
    assert axe_faults(page) == []
    assert clicks.count <= 5


def row_value(page: Page, name: str) -> float:
    """The emissions of a row of the table, exact."""
    row = page.get_by_role("row", name=re.compile(f"^{re.escape(name)}"))
    cells = row.locator("td.number", has_text="CO₂e").locator("data")
    return float(cells.first.get_attribute("value"))
