"""The three charts of a project on one time axis: money, energy, carbon. Shapes only."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from django.utils.translation import gettext as _

from planning.records import Burndown, CostGroup, PlanRecord
from reports.records import DayRow
from ui.charts import (
    Figure,
    Marker,
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


def _reference_lines(plan: PlanRecord, until: date | None) -> list[Series]:
    """The 1.0x, 1.8x and 2.0x lines over the plan's days, and on to the end of the chart."""
    return [
        flat_line(
            f"{multiple}×",
            plan.main_run_cost * multiple,
            starts_on=plan.starts_on,
            ends_on=max(plan.ends_on, until or plan.ends_on),
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
    burndown: Burndown,
    rows: Sequence[DayRow],
    groups: Sequence[CostGroup],
    markers: Sequence[Marker] = (),
) -> Figure | None:
    """Cost stacked by band with what is accrued on top, planned and earned value, the forecast."""
    if not rows:
        return None
    starts_on, ends_on = _axis(burndown)
    forecast = _forecast_lines(burndown)
    if forecast and ends_on:
        ends_on = max(ends_on, *(series.days[-1] for series in forecast))
    chart = TimeChart(
        stacked=_bands(burndown, rows, groups),
        estimated=_accrued(burndown, rows),
        lines=[*_lines(burndown, rows), *forecast],
        references=_reference_lines(burndown.plan, ends_on) if burndown.plan else (),
        as_of_on=_as_of_on(burndown),
        markers=markers,
        starts_on=starts_on,
        ends_on=ends_on,
        weeks_from=burndown.plan.starts_on if burndown.plan else None,
    )
    return burn_down_figure(chart, currency=burndown.currency)


def _bands(burndown: Burndown, rows: Sequence[DayRow], groups: Sequence[CostGroup]) -> list[Series]:
    """Billed cost by band; under days that are accrued it stays as high as it was."""
    found = []
    for index, group in enumerate(groups):
        if group is CostGroup.CREDITS:
            continue
        values = [row.groups[index] for row in rows]
        if burndown.accrued_cost:
            values = _held(rows, values, burndown.through)
        name = group_name(group)
        found.append(_known_series(name, rows, values, colour=COLOURS[group]))
    return found


def _held(
    rows: Sequence[DayRow], values: Sequence[Decimal | None], until: date | None
) -> list[Decimal | None]:
    """Running sums that keep their last value up to a day."""
    held: list[Decimal | None] = []
    last: Decimal | None = None
    for row, value in zip(rows, values, strict=True):
        last = value if value is not None else last
        held.append(last if until and row.day <= until else value)
    return held


def _accrued(burndown: Burndown, rows: Sequence[DayRow]) -> Series | None:
    """What is accrued, from the day before the first such day on."""
    if not burndown.accrued_cost or not burndown.through:
        return None
    first = next((place for place, row in enumerate(rows) if row.accrued_cost is not None), None)
    if first is None:
        return None
    some = [row for row in rows[max(first - 1, 0) :] if row.day <= burndown.through]
    return Series(
        name=_("Accrued, not billed yet"),
        days=[row.day for row in some],
        values=[row.accrued_cost or Decimal(0) for row in some],
        colour="ink-soft",
    )


def _lines(burndown: Burndown, rows: Sequence[DayRow]) -> list[Series]:
    lines = [
        _known_series(
            _("Actual cost, net of credits"),
            rows,
            [row.cost_to_date for row in rows],
            colour="ink",
        )
    ]
    if burndown.plan:
        lines.append(_known_series(_("Planned value"), rows, [row.planned_value for row in rows]))
    if any(row.earned_value is not None for row in rows):
        earned = [row.earned_value for row in rows]
        lines.append(_known_series(_("Earned value"), rows, earned, colour="chart-earned"))
    return lines


def _forecast_lines(burndown: Burndown) -> list[Series]:
    """From today's cost to P10, P50 and P90 at completion."""
    forecast, plan, spent = burndown.forecast, burndown.plan, burndown.cost_to_date
    if not forecast or not plan or not forecast.cost or spent is None or not burndown.through:
        return []
    after = plan.ends_on - plan.main_run_ends_on
    ends = {
        "P10": (forecast.main_run_ends_p10, forecast.cost.p10),
        "P50": (forecast.main_run_ends_p50, forecast.cost.p50),
        "P90": (forecast.main_run_ends_p90, forecast.cost.p90),
    }
    return [
        Series(
            name=_("Forecast {level}").format(level=level),
            days=(burndown.through, max(day + after, burndown.through + timedelta(days=1))),
            values=(spent, amount),
            colour="chart-marker",
            dash="dash" if level == "P50" else "dot",
        )
        for level, (day, amount) in ends.items()
    ]


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
