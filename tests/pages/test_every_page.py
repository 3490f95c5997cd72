"""Every page on the demo's data, in a real browser: light and dark, English and Chinese."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from playwright.sync_api import Page, expect

from tests.builders import organisation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

DEMO = "/projects/demo-moe-10b/"

# Pages that are not visited: they need a post, a mailed link, or answer with data.
NOT_PAGES = frozenset(
    {
        "healthz",
        "readyz",
        "robots",
        "api",
        "api_schema",
        "logout",
        "set_language",
        "set_theme",
        "job_progress",
        "allocation_save",
        "plan_approve",
        "estimate_preview",
        "estimate_read_config",
        "estimate_new_places",
        "estimate_new_hardware",
        "password_reset_confirm",
        "price_template",
        "exchange_rate_template",
        "charges_table",
        "charges_export",
        "factors_csv",
        "metrics",
        "factor_approve",
        "residual_mix_set",
        "book_prepare",
        "energy_export",
    }
)

# Pages of which there are dozens alike: so many of each are looked at.
ALIKE = (
    "catalogue_accelerator",
    "catalogue_accelerator_edit",
    "charge_detail",
    "energy_hour",
    "energy_device",
    "sender",
)
LOOKED_AT_OF_ALIKE = 3


@pytest.fixture
def demo(transactional_db: None) -> None:
    organisation()  # an earlier test's flush took the one that set-up made
    call_command("demo", one_process=True, verbosity=0)


def sign_in(page: Page) -> None:
    page.goto(reverse("login"))
    page.locator("input[name=username]").fill("demo")
    page.locator("input[name=password]").fill("demo-costwatch")
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url("**/")


def named_patterns(
    patterns: list[URLPattern | URLResolver], prefix: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from named_patterns(pattern.url_patterns, path)
        elif pattern.name and not path.startswith("api/"):
            yield pattern.name, pattern


def plain_pages() -> list[str]:
    """Addresses of pages that need no id."""
    return [
        reverse(name)
        for name, pattern in named_patterns(get_resolver().url_patterns)
        if name not in NOT_PAGES and not pattern.pattern.converters
    ]


def linked_pages(page: Page) -> list[str]:
    """Addresses on our own host that the open page links to, without the query; no downloads."""
    links = page.eval_on_selector_all(
        "a[href]:not([download])", "all => all.map(a => a.getAttribute('href'))"
    )
    return [link.partition("?")[0].partition("#")[0] for link in links if link.startswith("/")]


def visit_everything(page: Page, look: Callable[[Page, str], None]) -> set[str]:
    """Open every plain page, then every page that those link to."""
    seen: set[str] = set()
    of_a_kind: Counter[str] = Counter()
    waiting = [*plain_pages(), DEMO]
    while waiting:
        address = waiting.pop(0)
        if address in seen or address.startswith(("/api/", "/static/")):
            continue
        name = resolve(address).url_name
        of_a_kind[name] += 1
        if name in NOT_PAGES or (name in ALIKE and of_a_kind[name] > LOOKED_AT_OF_ALIKE):
            continue
        seen.add(address)
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, f"{address} answered {response.status}"
        if "text/html" not in response.headers.get("content-type", ""):
            continue
        look(page, address)
        waiting += linked_pages(page)
    return seen


LOOKS = (
    {"color_scheme": "light", "locale": "en-US"},
    {"color_scheme": "dark", "locale": "zh-CN"},
)
CHARTS = ("#burn-down", "#energy-chart", "#carbon-chart")


def test_every_page_is_clean_accessible_and_keeps_to_itself(
    demo: None, open_page: Callable[..., Page], subtests: pytest.Subtests
) -> None:
    """No console error, no foreign request (the fixture fails on both), no axe violation."""
    for look_of in LOOKS:
        page = open_page(**look_of)
        sign_in(page)
        seen = visit_everything(page, partial(assert_accessible, subtests))
        assert {"/", DEMO, f"{DEMO}plan/"} <= seen
        assert len(seen) > 12


def assert_accessible(subtests: pytest.Subtests, page: Page, address: str) -> None:
    page.wait_for_load_state("networkidle")
    with subtests.test(address=address):
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        assert page.locator(".synthetic-banner").is_visible() or not is_in_frame(page)
        if address == DEMO:
            for chart in CHARTS:
                expect(page.locator(f"{chart} .main-svg").first).to_be_visible()


def is_in_frame(page: Page) -> bool:
    """Whether the page stands in the frame of somebody who is signed in."""
    return page.locator(".sidebar").count() > 0


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
