"""Where a project ends: forecasts with their interval, and how past ones did. Plain records."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum


class ForecastBasis(StrEnum):
    """What the forecast knows of the run."""

    PROGRESS = "progress"  # tokens trained by day
    SPENDING = "spending"  # bills and power alone: the end is the plan's, not the run's


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Percentiles of an amount at completion."""

    p10: Decimal
    p50: Decimal
    p80: Decimal
    p90: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateBelief:
    """What the approved estimate says of the main run: days at three percentiles."""

    days_p10: float
    days_p50: float
    days_p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectForecast:
    """Amounts at completion of the whole project, and the main run's last day.

    `learned_fraction` is how much of the belief in the run's pace comes from its own days. Dates
    are the day on which the run ends; `is_open` says that in some futures it does not.
    """

    made_on: date
    basis: ForecastBasis
    cost: Interval | None
    facility_energy_kwh: Interval | None
    scope_2_location_kgco2e: Interval | None
    main_run_ends_p10: date
    main_run_ends_p50: date
    main_run_ends_p90: date
    learned_fraction: float
    is_open: bool
