"""What the check of every page sees: also a fault that only one row of a long table has."""

import pytest
from playwright.sync_api import Browser, Page

from tests.accessibility import assert_accessible

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><title>Rows</title>
<style>body {{ background: #fff; color: #000; }} .pale {{ color: #ddd; }}</style></head>
<body><main><h1>Rows</h1><table><thead><tr><th>Name</th></tr></thead>
<tbody>{rows}</tbody></table></main></body></html>"""
ROW = "<tr><td>one of many</td></tr>"


@pytest.fixture
def blank(browser: Browser) -> Page:
    with browser.new_context() as context:
        yield context.new_page()


def test_rows_alike_pass(blank: Page) -> None:
    blank.set_content(PAGE.format(rows=ROW * 9))
    assert_accessible(blank)
    assert blank.locator("tr[data-alike]").count() == 7


@pytest.mark.parametrize(
    "fault", ["<tr><td class='pale'>pale</td></tr>", "<tr><td><a href='/x'></a></td></tr>"]
)
def test_a_fault_of_the_last_row_alone_is_seen(blank: Page, fault: str) -> None:
    blank.set_content(PAGE.format(rows=ROW * 9 + fault))
    with pytest.raises(AssertionError, match="accessibility violations"):
        assert_accessible(blank)


def test_a_fault_of_every_row_is_seen(blank: Page) -> None:
    blank.set_content(PAGE.format(rows="<tr><td class='pale'>pale</td></tr>" * 9))
    with pytest.raises(AssertionError, match="color-contrast"):
        assert_accessible(blank)
