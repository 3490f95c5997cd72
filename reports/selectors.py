"""Reads for people: a project's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from carbon.records import FactorUsed
from carbon.words import kind_name, level_name
from planning.carbon_budget import CarbonBudget, carbon_budget
from planning.records import Burndown
from planning.selectors import burndown_of
from projects.models import Project
from reports.earned_page import IndexRow, LineRow, index_rows, line_rows
from reports.figures import carbon_figure, cost_figure, energy_figure, group_name, groups_of
from reports.first_steps import FirstStep, first_steps
from reports.overview import Overview, basis_words, labels_of, markers_of, overview_of
from reports.records import DayRow, day_rows
from ui.charts import Figure
from ui.formatting import babel_locale, decimal_text


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorRow:
    """One factor as a reader is told of it."""

    name: str
    value: float
    unit: str
    year: int | None
    source: str
    level: str
    is_estimated: bool


def factor_row(factor: FactorUsed) -> FactorRow:
    """A factor with its kind and level in words; a ratio needs no unit."""
    return FactorRow(
        name=kind_name(factor.kind),
        value=factor.value,
        unit="" if factor.unit == "ratio" else factor.unit.replace("CO2e", "CO₂e"),
        year=factor.year,
        source=factor.source,
        level=level_name(factor.level),
        is_estimated=factor.basis == "estimated",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """What the page of a project shows."""

    burndown: Burndown
    group_names: tuple[str, ...]
    rows: tuple[DayRow, ...]
    cost_figure: Figure | None
    energy_figure: Figure | None
    carbon_figure: Figure | None
    overview: Overview
    steps: Sequence[FirstStep]

    @property
    def indices(self) -> tuple[IndexRow, ...]:
        """The indices of earned value in its three units."""
        return index_rows(self.burndown.earned) if self.burndown.earned else ()

    @property
    def line_rows(self) -> tuple[LineRow, ...]:
        """The plan's lines in money."""
        return line_rows(self.burndown.earned) if self.burndown.earned else ()

    @property
    def schedule_words(self) -> str:
        """The schedule performance index in a word beside the cost performance index."""
        index = self.burndown.earned and self.burndown.earned.money.schedule_performance_index
        if not index:
            return ""
        text = decimal_text(index, babel_locale(get_language()), digits=2)
        return _("against the calendar (SPI): {index}").format(index=text)

    @property
    def forecast_words(self) -> str:
        """What the forecast rests on."""
        return basis_words(self.burndown.forecast) if self.burndown.forecast else ""

    @property
    def factors(self) -> tuple[FactorRow, ...]:
        """The factors behind energy and carbon, in words."""
        return tuple(factor_row(factor) for factor in self.burndown.energy_and_emissions.factors)

    @property
    def carbon_budget(self) -> CarbonBudget | None:
        """The plan's carbon budget and its burn-down."""
        return carbon_budget(self.burndown)

    @property
    def cost_badge(self) -> str:
        """How cost to date is known: from bills, or with a part that is accrued."""
        if self.burndown.cost_to_date is None:
            return "not-set"
        return "accrued" if self.burndown.accrued_cost else "invoiced"

    @property
    def plan_badge(self) -> str:
        """How the cost by this day was planned: not at all before a plan is approved."""
        return "not-set" if self.burndown.planned_value is None else "planned"

    @property
    def energy_badge(self) -> str:
        """How facility energy is known: metered, unless a factor or a gap was estimated."""
        summary = self.burndown.energy_and_emissions
        if summary.facility_energy_kwh is None:
            return "not-set"
        is_estimated = any(factor.basis == "estimated" for factor in summary.factors)
        return "estimated" if is_estimated or summary.estimated_fraction else "metered"


def project_page(project: Project, *, as_of: datetime, basis: str) -> ProjectPage:
    """A project's burn-down with its three charts and the rows of the tables under them."""
    burndown = burndown_of(project, as_of=as_of, basis=basis)
    groups = groups_of(burndown)
    rows = day_rows(burndown, groups)
    overview = overview_of(project, burndown, as_of=as_of)
    return ProjectPage(
        burndown=burndown,
        group_names=tuple(group_name(group) for group in groups),
        rows=rows,
        overview=overview,
        steps=first_steps(project, burndown),
        cost_figure=cost_figure(
            burndown,
            rows,
            groups,
            markers_of(overview.happenings, axis_days=len(rows), taken=labels_of(burndown)),
        ),
        energy_figure=energy_figure(burndown, rows),
        carbon_figure=carbon_figure(burndown, rows),
    )
