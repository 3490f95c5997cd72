"""The JSON of a variance, for the command line and HTTP alike; exact amounts as strings."""

from decimal import Decimal
from typing import Any

from planning.variance_records import (
    CauseDay,
    CauseDetail,
    Compared,
    DriverPair,
    Opens,
    Variance,
)


def variance_document(found: Variance | None) -> dict[str, Any]:
    """Causes in their order; `baseline` is null without an approved plan or anything known."""
    if found is None:
        return {"baseline": None, "causes": []}
    return {
        "baseline": found.baseline_number,
        "as_of": found.as_of.isoformat(),
        "through": found.through.isoformat(),
        "currency": found.currency,
        "basis": found.basis,
        "against": found.against.value,
        "cost": _compared(found.cost),
        "facility_energy_kwh": _compared(found.facility_energy_kwh),
        "scope_2_location_kgco2e": _compared(found.kgco2e),
        "schedule": _text(found.schedule),
        "reserve": _text(found.reserve),
        "coverage_fraction": found.coverage_fraction,
        "notes": [note.value for note in found.notes],
        "causes": [_cause(one) for one in found.causes],
    }


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")


def _compared(one: Compared) -> dict[str, str | None]:
    return {
        "planned": _text(one.planned),
        "actual": _text(one.actual),
        "difference": _text(one.difference),
    }


def _cause(one: CauseDetail) -> dict[str, Any]:
    return {
        "cause": one.cause.value,
        "cost": _text(one.cost),
        "facility_energy_kwh": _text(one.facility_energy_kwh),
        "scope_2_location_kgco2e": _text(one.kgco2e),
        "driver": _driver(one.driver),
        "opens": _opens(one.opens),
    }


def _driver(pair: DriverPair | None) -> dict[str, str | None] | None:
    if pair is None:
        return None
    return {
        "planned": _text(pair.planned),
        "actual": _text(pair.actual),
        "unit": pair.unit.value,
    }


def _opens(one: Opens) -> dict[str, Any]:
    return {
        "from": one.start_on.isoformat(),
        "to": one.end_on.isoformat(),
        "cost_classes": list(one.cost_classes),
        "runs": [str(run_id) for run_id in one.run_ids],
        "buckets": list(one.buckets),
        "days": [_day(day) for day in one.days],
    }


def _day(one: CauseDay) -> dict[str, str | None]:
    return {
        "day": one.day.isoformat(),
        "accelerator_h": _text(one.accelerator_h),
        "cost": _text(one.cost),
    }
