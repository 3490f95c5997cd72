"""The frame of every page: what it keeps for the next one, and the policy it stands under."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def test_the_theme_and_the_language_are_kept_for_the_next_page(page: Page) -> None:
    page.goto(reverse("login"))
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("button", name="中文").click()
    page.goto(reverse("password_reset"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")


def test_inline_script_without_a_nonce_does_not_run(page: Page, page_faults: list[str]) -> None:
    """The content security policy is in force, with Plotly and htmx working beside it."""
    page.goto(reverse("login"))
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.wasInjected = true';
            document.head.append(script);
        }"""
    )
    assert page.evaluate("window.wasInjected") is None
    assert any("Content Security Policy" in fault for fault in page_faults)
    page_faults.clear()
