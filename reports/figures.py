"""The three charts of a project on one time axis: money, energy, carbon. Shapes only."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from django.utils.translation import gettext as _

from planning.records import Burndown, CostGroup, PlanRecord
from reports.records import DayRow
from ui.charts import (
    Figure,
    Series,
    TimeChart,
    burn_down_figure,
    cumulative_area_figure,
    flat_line,
)

REFERENCES = (Decimal("1.0"), Decimal("1.8"), Decimal("2.0"))
COLOURS = {
    CostGroup.ACCELERATOR: "series-1",
    CostGroup.OTHER_COMPUTE: "series-2",
    CostGroup.STORAGE_HOT: "series-3",
    CostGroup.STORAGE_WARM: "series-4",
    CostGroup.STORAGE_COLD: "series-5",
    CostGroup.REQUESTS: "series-6",
    CostGroup.TRANSFER: "series-7",
    CostGroup.SERVICES: "series-8",
    CostGroup.TAX: "ink-faint",
    CostGroup.OTHER: "ink-soft",
}


def group_name(group: CostGroup) -> str:
    """A band of the burn-down in words."""
    return {
        CostGroup.ACCELERATOR: _("Accelerators"),
        CostGroup.OTHER_COMPUTE: _("Other compute"),
        CostGroup.STORAGE_HOT: _("Storage, hot"),
        CostGroup.STORAGE_WARM: _("Storage, warm"),
        CostGroup.STORAGE_COLD: _("Storage, cold"),
        CostGroup.REQUESTS: _("Requests"),
        CostGroup.TRANSFER: _("Transfer and egress"),
        CostGroup.SERVICES: _("Logging and support"),
        CostGroup.TAX: _("Tax"),
        CostGroup.CREDITS: _("Credits, refunds, discounts"),
        CostGroup.OTHER: _("Other"),
    }[group]


def groups_of(burndown: Burndown) -> tuple[CostGroup, ...]:
    """The bands that hold any cost, in the order in which they are stacked."""
    present = {group for row in burndown.days for group, cost in row.cost_by_group.items() if cost}
    return tuple(group for group in CostGroup if group in present)


def _known_series(
    name: str, rows: Sequence[DayRow], values: Sequence[Decimal | float | None], *, colour: str = ""
) -> Series:
    """A series over the days on which it is known: beyond them it ends instead of falling to 0."""
    known = [(row.day, value) for row, value in zip(rows, values, strict=True) if value is not None]
    return Series(
        name=name,
        days=[day for day, _value in known],
        values=[value for _day, value in known],
        colour=colour,
    )


def _reference_lines(plan: PlanRecord) -> list[Series]:
    """The 1.0x, 1.8x and 2.0x lines over the plan's days."""
    return [
        flat_line(
            f"{multiple}×",
            plan.main_run_cost * multiple,
            starts_on=plan.starts_on,
            ends_on=plan.ends_on,
        )
        for multiple in REFERENCES
    ]


def _axis(burndown: Burndown) -> tuple[date | None, date | None]:
    """The days that all three charts show."""
    if not burndown.days:
        return None, None
    return burndown.days[0].day, burndown.days[-1].day + timedelta(days=1)


def _as_of_on(burndown: Burndown) -> date | None:
    """The day to mark as "data as of": as_of, while it lies on the axis."""
    first, last = _axis(burndown)
    day = burndown.as_of.date()
    return day if first and last and first <= day <= last else None


def cost_figure(
    burndown: Burndown, rows: Sequence[DayRow], groups: Sequence[CostGroup]
) -> Figure | None:
    """Planned value, the reference lines, and actual cost stacked by band; its net is a line."""
    if not rows:
        return None
    stacked = [
        _known_series(
            group_name(group),
            rows,
            [row.groups[index] for row in rows],
            colour=COLOURS[group],
        )
        for index, group in enumerate(groups)
        if group is not CostGroup.CREDITS
    ]
    lines = [
        _known_series(
            _("Actual cost, net of credits"),
            rows,
            [row.actual_cost for row in rows],
            colour="ink",
        )
    ]
    if burndown.plan:
        lines.append(_known_series(_("Planned value"), rows, [row.planned_value for row in rows]))
    starts_on, ends_on = _axis(burndown)
    chart = TimeChart(
        stacked=stacked,
        lines=lines,
        references=_reference_lines(burndown.plan) if burndown.plan else (),
        as_of_on=_as_of_on(burndown),
        starts_on=starts_on,
        ends_on=ends_on,
    )
    return burn_down_figure(chart, currency=burndown.currency)


def _quantity_figure(
    burndown: Burndown, rows: Sequence[DayRow], *, actual: str, planned: str, quantity: str
) -> Figure | None:
    """A cumulative area of what was metered, and the plan as a line."""
    if not any(getattr(row, actual) is not None for row in rows):
        return None
    name = {"energy": _("Facility energy"), "carbon": _("Emissions, location-based")}[quantity]
    lines = []
    if any(getattr(row, planned) is not None for row in rows):
        lines.append(_known_series(_("Planned"), rows, [getattr(row, planned) for row in rows]))
    starts_on, ends_on = _axis(burndown)
    area = _known_series(
        name,
        rows,
        [getattr(row, actual) for row in rows],
        colour="series-1" if quantity == "energy" else "series-3",
    )
    chart = TimeChart(
        stacked=[area],
        lines=lines,
        as_of_on=_as_of_on(burndown),
        starts_on=starts_on,
        ends_on=ends_on,
    )
    return cumulative_area_figure(chart, quantity=quantity)


def energy_figure(burndown: Burndown, rows: Sequence[DayRow]) -> Figure | None:
    """Facility energy so far against the plan; None while nothing is known."""
    return _quantity_figure(
        burndown,
        rows,
        actual="facility_energy_kwh",
        planned="planned_facility_energy_kwh",
        quantity="energy",
    )


def carbon_figure(burndown: Burndown, rows: Sequence[DayRow]) -> Figure | None:
    """Location-based emissions so far against the plan; None while nothing is known."""
    return _quantity_figure(
        burndown,
        rows,
        actual="scope_2_location_kgco2e",
        planned="planned_kgco2e",
        quantity="carbon",
    )
