"""Plain builders of the books: energy of hours, instruments, people who sign."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from carbon.instruments import NewInstrument, add_instrument
from carbon.residual_mixes import set_residual_mix
from carbon.selectors import emissions_summary
from carbon.site_factors import ALWAYS
from runs.records import SiteRecord
from runs.services import change_device, ensure_devices, save_site
from tests.builders import organisation
from tests.carbon.builders import (
    INTERVALS,
    NOW,
    START,
    factor,
    imported,
    interval,
    operator,
    write_csv,
)
from tests.carbon.builders import site as bare_site

HOUR = timedelta(hours=1)
MILLIJOULE_PER_KWH = 3_600_000_000
MANY_W = 1e9  # one device of the tests stands for many
YEAR_START = datetime(2025, 1, 1, tzinfo=UTC)
YEAR_END = datetime(2026, 1, 1, tzinfo=UTC)


def hall(slug: str = "hall-1", *, country: str = "DEU", **factors: float) -> SiteRecord:
    """An own hall whose accelerators' energy is that of the facility, unless factors differ."""
    bare = bare_site(slug)
    save_site(
        operator(),
        SiteRecord(
            site_id=bare.site_id,
            organisation_id=bare.organisation_id,
            slug=slug,
            name=slug,
            country=country,
        ),
    )
    for kind, value in {"host_factor": 1.0, "pue": 1.0, **factors}.items():
        factor(bare, kind, value, valid_from=ALWAYS)
    found = bare_site(slug)
    assert found.country == country
    return found


def used(
    tmp_path: Path,
    *hours_kwh: float,
    slug: str = "hall-1",
    start: datetime = START,
    device: str = "GPU-0",
    now: datetime = NOW,
) -> None:
    """Let a device of a site use so many kWh in one hour after the other."""
    rows = [
        interval(
            start + step * HOUR,
            start + (step + 1) * HOUR,
            round(kwh * MILLIJOULE_PER_KWH),
            device=f"{slug}-{device}",
        )
        for step, kwh in enumerate(hours_kwh)
    ]
    place = bare_site(slug)
    ensure_devices(place, [(f"{slug}-{device}", "", "")])
    change_device(operator(), f"{slug}-{device}", model="", accelerator_key="", max_power_w=MANY_W)
    path = tmp_path / f"{slug}-{device}-{start:%Y%m%d%H}.csv"
    imported(write_csv(path, INTERVALS, rows), site_name=slug, now=now)


def certificate(
    *,
    energy_kwh: float | None = 600_000,
    name: str = "Wind 2025",
    kind: str = "certificate",
    market_zone: str = "DEU",
    g_per_kwh: float = 0.0,
    start: datetime = YEAR_START,
    end: datetime = YEAR_END,
    retired_on: date | None = date(2025, 10, 1),
    known_at: datetime = NOW,
    **more: object,
):
    """An instrument that counts."""
    new = NewInstrument(
        kind=kind,
        name=name,
        market_zone=market_zone,
        start=start,
        end=end,
        energy_kwh=energy_kwh,
        g_per_kwh=g_per_kwh,
        retired_on=retired_on if kind == "certificate" else None,
        **more,
    )
    return add_instrument(operator(), new, known_at=known_at)


def residual_mix(g_per_kwh: float, *, zone: str = "DEU", year: int = 2025) -> None:
    """What energy outside contracts emits."""
    set_residual_mix(
        operator(),
        market_zone=zone,
        year=year,
        g_per_kwh=g_per_kwh,
        source="AIB 2025",
        known_at=NOW,
    )


def summary(project_id=None, **more):
    """Energy and emissions of the organisation, or of a project."""
    return emissions_summary(organisation().pk, project_id, **more)
