"""What other rooms may hold of a variance: totals, causes, and what opens each. Plain records."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from formulae.units import EXACT
from formulae.variance import Cause


class Against(StrEnum):
    """What actuals are compared with."""

    WORK_DONE = "work_done"  # the plan's budget of the work that was done
    CALENDAR = "calendar"  # what the plan wanted done by then: nothing tells how far the work is


class VarianceNote(StrEnum):
    """What a reader should know of the comparison."""

    PROGRESS_UNKNOWN = "progress_unknown"
    TIME_UNKNOWN = "time_unknown"
    NOT_ASSIGNED = "not_assigned"
    ENERGY_NOT_COVERED = "energy_not_covered"
    RATE_MISSING = "rate_missing"
    COST_UNKNOWN = "cost_unknown"


class DriverUnit(StrEnum):
    """What a driver is counted in; money is in the plan's currency."""

    TOKENS = "tokens"
    FRACTION = "fraction"
    ACCELERATOR_H = "accelerator_h"
    MONEY = "money"
    MONEY_PER_H = "money_per_accelerator_h"
    KILOWATT = "kw"
    RATIO = "ratio"
    G_PER_KWH = "g_per_kwh"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPair:
    """The driver behind a cause as planned and as it was; None is not known."""

    planned: Decimal | None
    actual: Decimal | None
    unit: DriverUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseDay:
    """A day on which a cause weighs: hours for lost time, cost for charges."""

    day: date
    accelerator_h: Decimal | None = None
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opens:
    """What stands behind a cause: classes of charges, runs, buckets of time, the heaviest days.

    `end_on` is exclusive. `days` are the ones that weigh most, heaviest first.
    """

    start_on: date
    end_on: date
    cost_classes: tuple[str, ...] = ()
    run_ids: tuple[UUID, ...] = ()
    buckets: tuple[str, ...] = ()
    days: tuple[CauseDay, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseDetail:
    """One cause: what it adds to plan, the driver that moved, and what opens it.

    None: what it adds cannot be told and is part of `unexplained`, or the total is not known.
    """

    cause: Cause
    cost: Decimal | None
    facility_energy_kwh: Decimal | None
    kgco2e: Decimal | None
    driver: DriverPair | None
    opens: Opens


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A quantity as planned for the same work, and as it was."""

    planned: Decimal | None
    actual: Decimal | None

    @property
    def difference(self) -> Decimal | None:
        """Actual less planned, the exact sum of the causes; above 0 is over plan."""
        if self.planned is None or self.actual is None:
            return None
        return EXACT.subtract(self.actual, self.planned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """Why a project differs from its baseline, by cause, in money, energy and emissions.

    `schedule` is earned less planned value: above 0 the work is ahead of the calendar. It is no
    part of the difference. The contingency is no budget for work: `reserve` is what there is of
    it, and the difference in cost is what is drawn of it.
    """

    baseline_number: int
    as_of: datetime
    through: date
    currency: str
    basis: str
    against: Against
    cost: Compared
    facility_energy_kwh: Compared
    kgco2e: Compared
    schedule: Decimal | None
    reserve: Decimal
    causes: tuple[CauseDetail, ...]
    coverage_fraction: float | None
    notes: tuple[VarianceNote, ...]
