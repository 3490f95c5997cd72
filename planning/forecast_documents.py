"""The JSON of forecasts, for the command line and HTTP alike; exact amounts as strings."""

from typing import Any

from planning.forecast_records import Interval, ProjectForecast

LEVELS = ("p10", "p50", "p80", "p90")


def interval_document(interval: Interval | None) -> dict[str, str | None]:
    """The percentiles of an amount at completion; null where it is not known."""
    return {
        level: None if interval is None else format(getattr(interval, level), "f")
        for level in LEVELS
    }


def forecast_document(forecast: ProjectForecast | None) -> dict[str, Any] | None:
    """Where the project ends; null without an approved plan or anything known."""
    if forecast is None:
        return None
    return {
        "made_on": forecast.made_on.isoformat(),
        "basis": forecast.basis.value,
        "learned_fraction": round(forecast.learned_fraction, 6),
        "is_open": forecast.is_open,
        "main_run_ends_on": {
            "p10": forecast.main_run_ends_p10.isoformat(),
            "p50": forecast.main_run_ends_p50.isoformat(),
            "p90": forecast.main_run_ends_p90.isoformat(),
        },
        "cost": interval_document(forecast.cost),
        "facility_energy_kwh": interval_document(forecast.facility_energy_kwh),
        "scope_2_location_kgco2e": interval_document(forecast.scope_2_location_kgco2e),
    }
