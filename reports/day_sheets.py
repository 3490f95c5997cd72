"""The tables of days under a project's charts as sheets: the same sums, for files."""

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext as _

from projects.models import Project
from reports.records import DayRow
from reports.selectors import ProjectPage
from reports.sheets import Cell, Column, Kind, Line, Sheet, Value
from ui.formatting import exact_decimal

TABLES: Final = ("cost", "energy", "emissions")


def day_sheets(project: Project, page: ProjectPage) -> dict[str, Sheet]:
    """A sheet for each table that the page shows, by its key."""
    facts = _facts(project, page)
    found = {"cost": _cost(page, facts)}
    if page.burndown.energy_and_emissions.accelerator_energy_kwh is not None:
        found["energy"] = _energy(page, facts)
    if page.carbon_figure:
        found["emissions"] = _emissions(page, facts)
    return found


def _facts(project: Project, page: ProjectPage) -> tuple[tuple[str, str], ...]:
    burndown = page.burndown
    return (
        (_("Project"), project.name),
        (_("As of"), burndown.as_of.isoformat()),
        (_("Cost basis"), burndown.basis),
        (_("Billed through"), f"{burndown.billed_through or ''}"),
        (_("Metered through"), f"{burndown.metered_through or ''}"),
        (_("Values"), _("summed from the first day on; coverage is of the day")),
    )


def _cost(page: ProjectPage, facts: Sequence[tuple[str, str]]) -> Sheet:
    money = (
        _("Planned value"),
        _("Earned value"),
        _("Cost to date"),
        _("of which accrued"),
        *page.group_names,
    )
    currency = page.burndown.currency
    return Sheet(
        key="cost",
        title=_("Cost by day"),
        columns=(
            Column(title=_("Day")),
            Column(title=_("Currency"), in_files_only=True),
            *(Column(title=name, kind=Kind.MONEY) for name in money),
        ),
        lines=tuple(
            _line(
                row,
                currency,
                row.planned_value,
                row.earned_value,
                row.cost_to_date,
                row.accrued_cost,
                *row.groups,
                currency=currency,
            )
            for row in page.rows
        ),
        facts=facts,
    )


def _energy(page: ProjectPage, facts: Sequence[tuple[str, str]]) -> Sheet:
    return Sheet(
        key="energy",
        title=_("Energy by day"),
        columns=(
            Column(title=_("Day")),
            Column(title=_("Planned facility energy, kWh"), kind=Kind.NUMBER),
            Column(title=_("Accelerator energy, kWh"), kind=Kind.NUMBER),
            Column(title=_("Facility energy, kWh"), kind=Kind.NUMBER),
            Column(title=_("Coverage of the day"), kind=Kind.FRACTION),
        ),
        lines=tuple(
            _line(
                row,
                row.planned_facility_energy_kwh,
                row.accelerator_energy_kwh,
                row.facility_energy_kwh,
                row.coverage_fraction,
            )
            for row in page.rows
        ),
        facts=facts,
    )


def _emissions(page: ProjectPage, facts: Sequence[tuple[str, str]]) -> Sheet:
    return Sheet(
        key="emissions",
        title=_("Emissions by day"),
        columns=(
            Column(title=_("Day")),
            Column(title=_("Planned, kg CO₂e"), kind=Kind.NUMBER),
            Column(title=_("Scope 2, location-based, kg CO₂e"), kind=Kind.NUMBER),
        ),
        lines=tuple(
            _line(row, row.planned_kgco2e, row.scope_2_location_kgco2e) for row in page.rows
        ),
        facts=facts,
    )


def _line(row: DayRow, *values: Value | float, currency: str = "") -> Line:
    known: list[Value] = [
        exact_decimal(value) if isinstance(value, float) else value for value in values
    ]
    cells = (Cell(value=row.day.isoformat()), *(Cell(value=value) for value in known))
    return Line(cells=cells, currency=currency)
