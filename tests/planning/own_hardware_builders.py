"""Plain builders of own hardware: a hall with two devices, a card of one dollar an hour."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from billing.own_records import OwnRateCard
from jobs.services import run_job
from planning.charging import Charged, charge_month
from planning.rate_cards import save_rate_card
from projects.models import Project
from runs.progress import ensure_run
from runs.records import RunRecord, SiteRecord
from runs.services import assign_devices, change_device, ensure_devices
from tests.carbon.book_builders import hall, used
from tests.carbon.builders import operator

START = datetime(2025, 10, 1, tzinfo=UTC)
MONTH = "2025-10"
NOW = datetime(2025, 10, 3, 12, 30, tzinfo=UTC)  # two days are over
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
KEY = "h100-sxm-80gb"


def make_card(**changes: object) -> OwnRateCard:
    """Five years of life: one dollar an hour; ten cents a kWh."""
    usual = {
        "currency": "USD",
        "capital_per_accelerator": Decimal(43800),
        "life_years": Decimal(5),
        "electricity_per_kwh": Decimal("0.10"),
        "source": "invoice 7",
    }
    return OwnRateCard(**{**usual, **changes})


def make_hall(slug: str = "hall-1", *, with_card: bool = True, **factors: float) -> SiteRecord:
    """A hall with a card from October on."""
    site = hall(slug, **factors)
    if with_card:
        save_rate_card(operator(), site, valid_from=date(2025, 10, 1), card=make_card())
    return site


def devices(site: SiteRecord, count: int = 2) -> list[int]:
    rows = [(f"{site.slug}-GPU-{n}", "n1", "NVIDIA H100 80GB HBM3") for n in range(count)]
    return list(ensure_devices(site, rows).values())


def make_run(project: Project, slug: str = "main") -> RunRecord:
    return ensure_run(operator(), project, slug, accelerator_key=KEY)


def assign(
    ids: list[int],
    project: Project,
    start: datetime,
    end: datetime | None,
    run_id: UUID | None = None,
) -> None:
    assign_devices(
        operator(), device_ids=ids, project_id=project.pk, run_id=run_id, start=start, end=end
    )


def power(
    tmp_path: Path, site: SiteRecord, *hours_kwh: float, start: datetime = START, device: int = 0
) -> None:
    """Energy of a device's hours, one after the other."""
    used(
        tmp_path,
        *hours_kwh,
        slug=site.slug,
        start=start,
        device=f"GPU-{device}",
        now=NOW + 15 * DAY,
    )
    uuid = f"{site.slug}-GPU-{device}"
    change_device(operator(), uuid, model="", accelerator_key=KEY, max_power_w=1e9)


def charged(site: SiteRecord, month: str = MONTH, *, now: datetime = NOW) -> Charged:
    """A month handed to billing and published."""
    found = charge_month(operator(), site, month, now=now)
    if found.receipt is not None:
        run_job(found.receipt.job_id)
    return found
