"""Parts of pages that ask again by themselves: what they say, and when they stop."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from billing.models import Delivery
from billing.services import IncomingFile, NewDelivery, add_price, receive_files
from projects.records import OrganisationRole, Role
from reports.live import live_of
from runs.selectors import devices_of
from runs.services import assign_devices, ensure_devices
from tests import builders
from tests.billing import builders as bills
from tests.billing import price_builders as prices
from tests.carbon.builders import operator, site

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


@pytest.fixture
def moe():
    """Two devices work for it."""
    found = builders.project("moe", members=[(builders.person("vera"), Role.VIEWER)])
    ensure_devices(
        site(), [("GPU-a", "n1", "NVIDIA H100 80GB HBM3"), ("GPU-b", "n1", "NVIDIA H100 80GB HBM3")]
    )
    assign_devices(
        operator(),
        device_ids=[one.device_id for one in devices_of(site().site_id)],
        project_id=found.pk,
        start=NOW - timedelta(hours=5),
        end=None,
    )
    return found


def test_devices_without_readings_are_counted_and_their_power_is_not_guessed(moe):
    live = live_of(moe, now=NOW)

    assert live is not None
    assert (live.assigned, live.reporting) == (2, 0)
    assert live.power_w is None
    assert live.emitted_kgco2e_per_h is None


def test_the_burn_rate_is_the_rate_in_force_for_each_assigned_device(moe):
    add_price(bills.operator(), prices.price_wish("2.50"))

    live = live_of(moe, now=NOW)

    assert live is not None
    assert live.cost_per_h == Decimal(5)


def test_the_page_asks_again_until_no_device_is_assigned(moe):
    vera = builders.signed_in(moe.memberships.get().user)
    page = vera.get("/projects/moe/").content.decode()

    assert 'hx-get="/projects/moe/now/"' in page
    assert 'aria-live="polite"' in page
    assert vera.get("/projects/moe/now/").status_code == 200
    assert vera.get("/projects/moe/now/")["Cache-Control"].startswith("max-age=0")

    builders.project("idle", members=[(moe.memberships.get().user, Role.VIEWER)])
    over = vera.get("/projects/idle/now/")
    assert over.status_code == 286
    assert "No device is assigned" in over.content.decode()
    assert "/now/" not in vera.get("/projects/moe/?as_of=2026-01-01").content.decode()


def test_imports_ask_again_only_while_one_is_under_way():
    admin = builders.signed_in(builders.person("root", role=OrganisationRole.ADMIN))
    receive_files(
        bills.operator(),
        NewDelivery(
            source_name="aws",
            files=[IncomingFile(name="a.csv", chunks=[bills.focus_csv([bills.charge()])])],
        ),
    )
    assert 'hx-trigger="every 5s"' in admin.get("/imports/").content.decode()

    Delivery.objects.update(state=Delivery.State.PUBLISHED)

    assert 'hx-trigger="every 5s"' not in admin.get("/imports/").content.decode()
