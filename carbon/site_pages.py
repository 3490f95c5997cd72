"""What the pages of sites show, put together from the rooms' reads; nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from carbon.factor_chains import factors_by_day
from carbon.records import DatedFactor, EmissionSummary, EnergyDay, FactorUsed
from carbon.selectors import emissions_summary
from carbon.site_factors import ALWAYS, dated_factors
from projects.access import projects_for
from projects.records import Actor
from runs.records import DeviceRecord, SiteRecord
from runs.selectors import assignments_between, devices_of, sites
from ui.charts import Series, TimeChart, cumulative_area_figure

KIND_UNITS = {
    "host_factor": "×",
    "pue": "×",
    "grid_g_per_kwh": "gCO₂e/kWh",
    "wue_l_per_kwh": "L/kWh",
    "source_l_per_kwh": "L/kWh",
    "max_gap_s": "s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRow:
    """A site in the list."""

    site: SiteRecord
    devices: int
    summary: EmissionSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorRow:
    """A site's own factor in the table of its page."""

    factor_id: UUID
    name: str
    value: float
    unit: str
    valid_from: date | None
    tier: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFactors:
    """The factors that hold on a day, and the site's own dated ones."""

    host_factor: FactorUsed | None
    pue: FactorUsed
    grid: FactorUsed | None
    own: tuple[FactorRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """A device and for whom it works now."""

    device: DeviceRecord
    project: str
    start: datetime | None
    end: datetime | None


def site_rows(organisation_id: UUID) -> list[SiteRow]:
    """The sites of an organisation with their energy so far."""
    return [
        SiteRow(
            site=site,
            devices=len(devices_of(site.site_id)),
            summary=emissions_summary(organisation_id, None, site_id=site.site_id),
        )
        for site in sites(organisation_id)
    ]


def current_factors(site: SiteRecord, day: date) -> SiteFactors:
    """What holds at a site on a day."""
    dated = dated_factors(site.site_id)
    used = factors_by_day(site, [day], dated)[day]
    return SiteFactors(
        host_factor=used.host_factor,
        pue=used.pue,
        grid=used.grid,
        own=tuple(_factor_row(one) for one in dated),
    )


def _factor_row(one: DatedFactor) -> FactorRow:
    names = {
        "host_factor": _("Host factor"),
        "pue": _("PUE"),
        "grid_g_per_kwh": _("Grid intensity"),
        "wue_l_per_kwh": _("WUE (water on site)"),
        "source_l_per_kwh": _("Water of the grid's power plants"),
        "max_gap_s": _("Longest gap between samples"),
    }
    return FactorRow(
        factor_id=UUID(one.factor_id.removeprefix("site-factor/")),
        name=names[one.kind],
        value=one.value,
        unit=KIND_UNITS[one.kind],
        valid_from=None if one.valid_from == ALWAYS else one.valid_from,
        tier=one.tier,
        source=one.source,
    )


def assigned_devices(
    actor: Actor, site: SiteRecord, devices: list[DeviceRecord], now: datetime
) -> list[DeviceRow]:
    """Devices with the project for which each works now."""
    names = {project.pk: project.name for project in projects_for(actor)}
    running = assignments_between(
        site.organisation_id, now, now + timedelta(microseconds=1), site.site_id
    )
    by_device = {one.device_id: one for one in running}
    rows = []
    for device in devices:
        one = by_device.get(device.device_id)
        rows.append(
            DeviceRow(
                device=device,
                project=names.get(one.project_id, "") if one else "",
                start=one.start if one else None,
                end=one.end if one else None,
            )
        )
    return rows


def energy_figure(days: Sequence[EnergyDay]) -> Any:
    """Accelerator energy summed up day by day; None for fewer than two days."""
    if len(days) < 2:
        return None
    sums = accumulate(one.accelerator_energy_kwh for one in days)
    chart = TimeChart(
        stacked=[
            Series(
                name=_("Accelerators"),
                days=[one.day for one in days],
                values=list(sums),
                colour="series-3",
            )
        ],
        starts_on=days[0].day,
        ends_on=days[-1].day,
    )
    return cumulative_area_figure(chart, quantity="energy")


def summary_badge(summary: EmissionSummary) -> str:
    """How IT energy and what follows from it are known: estimated if a factor or a gap was."""
    if summary.it_energy_kwh is None:
        return "not-set"
    is_estimated = any(factor.basis == "estimated" for factor in summary.factors)
    return "estimated" if is_estimated or summary.estimated_fraction else "metered"
