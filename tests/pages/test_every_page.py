"""Every page on the demo's data, in a real browser: light and dark, English and Chinese."""

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

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
        "plan_approve",
        "password_reset_confirm",
    }
)


@pytest.fixture
def demo(transactional_db: None) -> None:
    call_command("demo", one_process=True, verbosity=0)


def sign_in(page: Page) -> None:
    page.goto(reverse("login"))
    page.get_by_label("Username").fill("demo")
    page.get_by_label("Password").fill("demo-costwatch")
    page.get_by_role("button", name="Sign in").click()
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
    """Addresses on our own host that the open page links to, without the query."""
    links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))")
    return [link.partition("?")[0].partition("#")[0] for link in links if link.startswith("/")]


def visit_everything(page: Page, look: Callable[[Page, str], None]) -> set[str]:
    """Open every plain page, then every page that those link to."""
    seen: set[str] = set()
    waiting = [*plain_pages(), "/projects/demo-moe-10b/"]
    while waiting:
        address = waiting.pop(0)
        if address in seen or address.startswith(("/api/", "/static/")):
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


def test_every_page_is_clean_accessible_and_keeps_to_itself(
    demo: None, open_page: Callable[..., Page]
) -> None:
    """No console error, no foreign request (the fixture fails on both), no axe violation."""
    violations: list[str] = []

    def look(page: Page, address: str) -> None:
        page.wait_for_load_state("networkidle")
        results = Axe().run(page)
        if results.violations_count:
            violations.append(f"{address}\n{results.generate_report()}")

    light = open_page(color_scheme="light")
    sign_in(light)
    seen = visit_everything(light, look)
    assert {"/", "/projects/demo-moe-10b/", "/projects/demo-moe-10b/plan/"} <= seen
    assert len(seen) > 12
    assert violations == []


def test_the_burn_down_is_drawn_in_dark_and_chinese(
    demo: None, open_page: Callable[..., Page]
) -> None:
    page = open_page(color_scheme="light")
    sign_in(page)
    page.goto("/projects/demo-moe-10b/")
    expect(page.locator("#burn-down .main-svg").first).to_be_visible()
    expect(page.locator("#energy-chart .main-svg").first).to_be_visible()
    expect(page.locator("#carbon-chart .main-svg").first).to_be_visible()
    expect(page.get_by_text("Synthetic demo data")).to_be_visible()
    page.context.add_cookies(
        [
            {"name": "django_language", "value": "zh-hans", "url": page.url},
            {"name": "theme", "value": "dark", "url": page.url},
        ]
    )
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("#burn-down .main-svg").first).to_be_visible()
    assert Axe().run(page).violations_count == 0


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
