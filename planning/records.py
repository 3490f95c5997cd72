"""What other rooms may hold of intent and its burn-down. No Django."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from carbon.records import EmissionSummary
from formulae.money import exact_sum
from formulae.units import EXACT
from planning.accrual_records import Accruals
from planning.earned_records import EarnedStates, WorkDone
from planning.forecast_records import ProjectForecast


class LineBase(StrEnum):
    """What a line's fraction is a fraction of."""

    MAIN_RUN = "main_run"
    SUBTOTAL = "subtotal"
    AMOUNT = "amount"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineRecord:
    """One line of a plan: an amount spread evenly over [starts_on, ends_on)."""

    key: str
    name: str
    base: LineBase
    fraction: Decimal | None
    amount: Decimal
    starts_on: date
    ends_on: date
    in_programme: bool = True
    facility_energy_kwh: float | None = None
    kgco2e: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """One version of a plan with its lines; `main_run_cost` is what 1.0x means."""

    version_id: int
    number: int
    is_approved: bool
    approved_at: datetime | None
    approved_by: str
    currency: str
    main_run_cost: Decimal
    main_run_starts_on: date
    main_run_ends_on: date
    main_run_facility_energy_kwh: float | None
    main_run_kgco2e: float | None
    estimate_id: UUID
    lines: tuple[PlanLineRecord, ...]
    reason: str = ""
    level: str = "p50"

    @property
    def budget_at_completion(self) -> Decimal:
        """The sum of the lines: what was approved."""
        return exact_sum(line.amount for line in self.lines)

    @property
    def programme_multiple(self) -> Decimal:
        """Compute lines and contingency over the main run."""
        inside = exact_sum(line.amount for line in self.lines if line.in_programme)
        return inside / self.main_run_cost

    @property
    def all_in_multiple(self) -> Decimal:
        """Every line over the main run."""
        return self.budget_at_completion / self.main_run_cost

    @property
    def facility_energy_kwh(self) -> float | None:
        """Planned facility energy of all lines, or None when the estimate could not say."""
        return _sum_known(line.facility_energy_kwh for line in self.lines if line.in_programme)

    @property
    def kgco2e(self) -> float | None:
        """Planned location-based emissions of all lines, or None."""
        return _sum_known(line.kgco2e for line in self.lines if line.in_programme)

    @property
    def starts_on(self) -> date:
        """The first day of any line."""
        return min(line.starts_on for line in self.lines)

    @property
    def ends_on(self) -> date:
        """The day after the last day of any line."""
        return max(line.ends_on for line in self.lines)


def _sum_known(values: Iterable[float | None]) -> float | None:
    """The sum, or None as soon as one part is unknown: a partial sum would read as the whole."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


class CostGroup(StrEnum):
    """The bands of the burn-down chart: classes of charges that a reader thinks of together."""

    ACCELERATOR = "accelerator"
    OTHER_COMPUTE = "other_compute"
    STORAGE_HOT = "storage_hot"
    STORAGE_WARM = "storage_warm"
    STORAGE_COLD = "storage_cold"
    REQUESTS = "requests"
    TRANSFER = "transfer"
    SERVICES = "services"
    TAX = "tax"
    CREDITS = "credits"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurndownDay:
    """One day of the three books. None means not known, never zero."""

    day: date
    planned_value: Decimal
    actual_cost: Decimal | None
    cost_by_group: dict[CostGroup, Decimal]
    planned_facility_energy_kwh: float | None
    accelerator_energy_kwh: float | None
    facility_energy_kwh: float | None
    coverage_fraction: float | None
    planned_kgco2e: float | None
    scope_2_location_kgco2e: float | None
    accrued_cost: Decimal | None = None
    earned_value_to_date: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Burndown:
    """A project's plan and actuals up to `as_of`, day by day; only earned value is cumulated.

    `through` is the last day that anything is known of: bills, hours that ran, energy, progress.
    """

    as_of: datetime
    plan: PlanRecord | None
    currency: str
    basis: str
    days: tuple[BurndownDay, ...]
    billed_through: date | None
    metered_through: date | None
    planned_value: Decimal | None
    actual_cost: Decimal | None
    compute_cost: Decimal | None
    accelerator_h: Decimal | None
    energy_and_emissions: EmissionSummary
    other_currencies: tuple[str, ...] = field(default=())
    through: date | None = None
    accruals: Accruals | None = None
    accrued_cost: Decimal | None = None
    earned: EarnedStates | None = None
    work: WorkDone = field(default_factory=WorkDone)
    forecast: ProjectForecast | None = None

    @property
    def cost_to_date(self) -> Decimal | None:
        """Billed and accrued cost; None while a part of it is not known, or nothing is.

        Before the first bill it is what is accrued.
        """
        if self.accrued_cost is None:
            return None
        if self.actual_cost is None:
            is_before_bills = self.billed_through is None and not self.other_currencies
            has_accruals = self.accruals is not None and bool(self.accruals.days)
            return self.accrued_cost if is_before_bills and has_accruals else None
        return EXACT.add(self.actual_cost, self.accrued_cost)

    @property
    def programme_multiple(self) -> Decimal | None:
        """Compute charges to date over the main run's planned cost."""
        if self.plan is None or self.compute_cost is None:
            return None
        return self.compute_cost / self.plan.main_run_cost

    @property
    def all_in_multiple(self) -> Decimal | None:
        """All charges to date over the main run's planned cost."""
        if self.plan is None or self.actual_cost is None:
            return None
        return self.actual_cost / self.plan.main_run_cost

    @property
    def cost_over_plan(self) -> Decimal | None:
        """Cost to date less planned value of the same days; above 0 is more than planned."""
        if self.cost_to_date is None or self.planned_value is None:
            return None
        return EXACT.subtract(self.cost_to_date, self.planned_value)
