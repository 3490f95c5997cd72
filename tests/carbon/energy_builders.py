"""Plain builders of energy on the books: a hall with devices, two projects, factors."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from projects.models import Project
from runs.records import SiteRecord
from runs.selectors import devices_of
from runs.services import assign_devices
from tests.builders import project
from tests.carbon.builders import (
    INTERVALS,
    START,
    factor,
    imported,
    interval,
    operator,
    site,
    write_csv,
)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hall:
    """Four devices over some days: three for moe, of one of which dense takes half an hour."""

    site: SiteRecord
    moe: Project
    dense: Project


def hall(tmp_path: Path, *, days: int = 2, devices: int = 4) -> Hall:
    """Metered intervals of one hour, 1 kWh and a bit a device, on the books with factors."""
    place = site()
    moe, dense = project("moe"), project("dense")
    rows = [
        interval(
            START + step * HOUR,
            START + (step + 1) * HOUR,
            3_600_000_000 + 7 * number + step,
            f"GPU-{number:04d}",
        )
        for step in range(24 * days)
        for number in range(devices)
    ]
    factor(place, "host_factor", 1.5)
    factor(place, "pue", 1.2)
    factor(place, "grid_g_per_kwh", 400.0)
    first = write_csv(tmp_path / "first.csv", INTERVALS, rows[:1])
    imported(first)
    assign(place, moe, ["GPU-0000"], START)
    imported(write_csv(tmp_path / "all.csv", INTERVALS, rows))
    names = [f"GPU-{number:04d}" for number in range(devices)]
    assign(place, moe, names[1:2], START)
    switch = START + 5 * HOUR + HOUR / 2
    assign(place, moe, names[2:3], START, switch)
    assign(place, dense, names[2:3], switch, switch + 10 * HOUR)
    close(place)
    return Hall(site=place, moe=moe, dense=dense)


def assign(
    place: SiteRecord, to: Project, uuids: list[str], start: datetime, end: datetime | None = None
) -> None:
    """Let devices work for a project."""
    ids = [one.device_id for one in devices_of(place.site_id) if one.device_uuid in uuids]
    assign_devices(operator(), device_ids=ids, project_id=to.pk, start=start, end=end)


def close(place: SiteRecord) -> None:
    """Bring the books to what readings, factors and assignments say."""
    from carbon.attribution import microsecond_of
    from carbon.posting import post_hours

    low, high = microsecond_of(START), microsecond_of(START + 400 * DAY)
    post_hours(place, start=low, end=high, posted_at=datetime(2025, 10, 21, tzinfo=UTC))
