"""Every page on the demo's data, in a real browser: light and dark, English and Chinese."""

from collections import Counter, deque
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from playwright.sync_api import Browser, Page, Response, expect
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from tests.accessibility import assert_accessible
from tests.browser import fail_on, watched_pages
from tests.builders import organisation
from tests.database_copy import on_a_copy_of_the_database

pytestmark = [pytest.mark.django_db, pytest.mark.browser]

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
        "costs_csv",
        "costs_xlsx",
        "saved_views",
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


# Nothing is asked for any more, and every chart is drawn.
SETTLED = """() => document.readyState === "complete"
    && !document.querySelector(".htmx-request")
    && [...document.querySelectorAll("[data-chart]")].every(
        place => place.dataset.drawn || !document.getElementById(place.dataset.chart))"""
LOOKS = (
    pytest.param({"color_scheme": "light", "locale": "en-US"}, id="light-english"),
    pytest.param({"color_scheme": "dark", "locale": "zh-CN"}, id="dark-chinese"),
)
CHARTS = ("#burn-down", "#energy-chart", "#carbon-chart")
RANGES = """() => [...document.querySelectorAll("[data-linked]")].map(
    place => place.layout.xaxis.range.map(day => day.slice(0, 10)))"""


@pytest.fixture(scope="module")
def demo_url(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The address of a server with the demo's data, which the tests here only read."""
    folder = tmp_path_factory.mktemp("demo")
    with (
        django_db_blocker.unblock(),
        on_a_copy_of_the_database("demo"),
        override_settings(
            DATA_DIR=folder, LAKE_URL=str(folder / "lake"), ALLOWED_HOSTS=["localhost"]
        ),
    ):
        organisation()
        call_command("demo", one_process=True, verbosity=0)
        server = LiveServer("localhost")
        yield server.url
        server.stop()


@pytest.fixture(autouse=True)
def _data_dir(demo_url: str) -> None:
    """The data folder is the demo's, for all tests here."""


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


class Route:
    """The addresses still to visit: every plain page, then every page that those link to."""

    def __init__(self, base_url: str) -> None:
        self.visited: set[str] = set()
        self._base_url = base_url
        self._of_a_kind: Counter[str] = Counter()
        self._waiting = deque([*plain_pages(), DEMO])

    def add_links_of(self, page: Page) -> None:
        """Add the addresses on our own host that the open page links to; no downloads."""
        links = page.eval_on_selector_all(
            "a[href]:not([download])", "all => all.map(a => a.getAttribute('href'))"
        )
        self._waiting += [
            link.partition("?")[0].partition("#")[0] for link in links if link.startswith("/")
        ]

    def next(self) -> str | None:
        """The next address worth a visit."""
        while self._waiting:
            address = self._waiting.popleft()
            if address not in self.visited and self._is_worth_it(address):
                self.visited.add(address)
                return address
        return None

    def _is_worth_it(self, address: str) -> bool:
        if address.startswith(("/api/", "/static/")):
            return False
        name = str(resolve(address).url_name)
        self._of_a_kind[name] += 1
        enough = name in ALIKE and self._of_a_kind[name] > LOOKED_AT_OF_ALIKE
        return name not in NOT_PAGES and not enough

    def open_next(self, tab: Page, meanwhile: Callable[[], None]) -> bool:
        """Open the next address in the tab, do something while the server answers; say if any."""
        address = self.next()
        if address is None:
            meanwhile()
            return False
        with tab.expect_navigation(wait_until="commit") as loading:
            tab.evaluate("url => { location.assign(url); }", self._base_url + address)
            meanwhile()
        response: Response = loading.value
        assert response.status == 200, f"{address} answered {response.status}"
        assert "text/html" in response.headers.get("content-type", ""), f"{address} is no page"
        return True


def walk(tabs: tuple[Page, Page], route: Route, look: Callable[[Page], None]) -> None:
    """Look at every page; while one tab is looked at, the next page loads in the other."""
    front, back = tabs
    is_open = route.open_next(front, lambda: None)
    while is_open:
        front.wait_for_function(SETTLED)
        route.add_links_of(front)
        is_open = route.open_next(back, lambda: look(front))  # noqa: B023
        front, back = back, front


@pytest.mark.parametrize("look_of", LOOKS)
def test_every_page_is_clean_accessible_and_keeps_to_itself(
    look_of: dict[str, str],
    demo_url: str,
    browser: Browser,
    page_faults: list[str],
    subtests: pytest.Subtests,
) -> None:
    """No console error, no foreign request, no axe violation."""
    with watched_pages(browser, demo_url, page_faults) as open_page:
        front = open_page(**look_of)
        sign_in(front)
        route = Route(demo_url)
        walk((front, front.context.new_page()), route, lambda page: check(page, subtests))
    assert {"/", DEMO, f"{DEMO}plan/"} <= route.visited
    assert len(route.visited) > 12
    fail_on(page_faults)


def check(page: Page, subtests: pytest.Subtests) -> None:
    address = page.url
    with subtests.test(address=address):
        assert_accessible(page)
        assert page.locator(".synthetic-banner").is_visible() or not is_in_frame(page)
        if address.endswith(DEMO):
            for chart in CHARTS:
                expect(page.locator(f"{chart} .main-svg").first).to_be_visible()


def is_in_frame(page: Page) -> bool:
    """Whether the page stands in the frame of somebody who is signed in."""
    return page.locator(".sidebar").count() > 0


def test_charts_of_a_project_share_their_zoom_and_the_day_under_the_pointer(
    demo_url: str, browser: Browser, page_faults: list[str]
) -> None:
    """A drag zooms all three, a double-click resets each; what is pointed at shows in all."""
    with watched_pages(browser, demo_url, page_faults) as open_page:
        page = open_page()
        sign_in(page)
        page.goto(DEMO)
        page.wait_for_function(SETTLED)
        whole = page.evaluate(RANGES)
        page.evaluate("document.getElementById('burn-down').scrollIntoView({block: 'center'})")
        place = page.locator("#burn-down .nsewdrag").bounding_box()
        assert place
        x, y = place["x"], place["y"] + place["height"] / 2
        page.mouse.move(x + 150, y)
        for chart in CHARTS:
            expect(page.locator(f"{chart} .hoverlayer .legend")).to_have_count(1)
        page.mouse.down()
        page.mouse.move(x + 250, y)
        page.mouse.move(x + 350, y)
        page.mouse.up()
        page.wait_for_function(
            f"whole => ({RANGES})().every((range, place) => range[0] > whole[place][0])", arg=whole
        )
        assert len({tuple(one) for one in page.evaluate(RANGES)}) == 1
        page.mouse.dblclick(x + 250, y)
        page.wait_for_function(f"whole => String(({RANGES})()) === String(whole)", arg=whole)
    fail_on(page_faults)
