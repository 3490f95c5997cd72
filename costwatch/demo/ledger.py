"""What the generator knows it wrote: exact sums to compare the application's answers with."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKey:
    """Where a charge belongs. `project` is None where no rule of the demo reaches it."""

    day: date
    provider: str
    x_cost_class: str
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCost:
    """The four costs in USD, the accelerator-hours and the rows behind them."""

    billed_cost: Decimal = Decimal(0)
    effective_cost: Decimal = Decimal(0)
    list_cost: Decimal = Decimal(0)
    contracted_cost: Decimal = Decimal(0)
    accelerator_h: Decimal = Decimal(0)
    rows: int = 0

    def plus(self, other: "LedgerCost", times: int = 1) -> "LedgerCost":
        """This and `times` the other."""
        return LedgerCost(
            billed_cost=self.billed_cost + other.billed_cost * times,
            effective_cost=self.effective_cost + other.effective_cost * times,
            list_cost=self.list_cost + other.list_cost * times,
            contracted_cost=self.contracted_cost + other.contracted_cost * times,
            accelerator_h=self.accelerator_h + other.accelerator_h * times,
            rows=self.rows + other.rows * times,
        )


@dataclass(slots=True, kw_only=True)
class ChargeLedger:
    """Costs by day, provider, class and project, added up while the files are written."""

    costs: dict[LedgerKey, LedgerCost] = field(
        default_factory=lambda: defaultdict(lambda: LedgerCost())
    )

    def add(self, key: LedgerKey, cost: LedgerCost, *, times: int) -> None:
        """Add `times` rows of one cost."""
        self.costs[key] = self.costs[key].plus(cost, times)

    def total(self, keys: Iterable[LedgerKey] | None = None) -> LedgerCost:
        """The sum over some keys, or over all."""
        total = LedgerCost()
        for key in self.costs if keys is None else keys:
            total = total.plus(self.costs[key])
        return total

    def billed_by_month(self) -> dict[tuple[str, date], Decimal]:
        """The billed sum of each provider and month."""
        found: dict[tuple[str, date], Decimal] = {}
        for key, cost in self.costs.items():
            place = (key.provider, key.day.replace(day=1))
            found[place] = found.get(place, Decimal(0)) + cost.billed_cost
        return dict(sorted(found.items()))

    def of_project(self, project: str | None) -> LedgerCost:
        """The sum of one project, or of what belongs to none."""
        return self.total([key for key in self.costs if key.project == project])


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOfDay:
    """What the meters reported for one day (UTC)."""

    accelerator_energy_millijoule: int
    covered_device_h: int
    assigned_device_h: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyLedger:
    """Exact energy and coverage, day by day."""

    days: dict[date, EnergyOfDay]

    @property
    def accelerator_energy_millijoule(self) -> int:
        """The exact sum of all samples."""
        return sum(day.accelerator_energy_millijoule for day in self.days.values())

    @property
    def accelerator_energy_kwh(self) -> float:
        """The same in kWh."""
        return self.accelerator_energy_millijoule / 3.6e9

    @property
    def coverage_fraction(self) -> float:
        """Device-hours with a sample over device-hours assigned to a run."""
        return sum(day.covered_device_h for day in self.days.values()) / sum(
            day.assigned_device_h for day in self.days.values()
        )
