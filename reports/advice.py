"""Advice on a project: wasted energy with its price, other grids and hours, caps. Reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from billing.cost_selectors import cost_by_day
from carbon.advice import Elsewhere, ShiftAdvice, elsewhere, shifts, spent_hours
from carbon.selectors import energy_by_day
from carbon.use_selectors import CapPoint, RunUse, Spent, cap_points, use_of_project
from formulae.money import exact_sum
from formulae.units import EXACT
from projects.models import Project
from runs.selectors import runs_of

SHOWN_REGIONS: Final = 12
WORDS: Final = ("idle", "throttled", "capped")
STORED: Final = Decimal(1).scaleb(-18)


@dataclass(frozen=True, slots=True, kw_only=True)
class WasteRow:
    """One way in which a run's devices spent energy for little, with its price."""

    run: str
    kind: str  # idle, throttled, capped
    spent: Spent
    time_fraction: float
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePage:
    """What the page of advice shows for [start_on, end_on)."""

    start_on: date
    end_on: date
    currency: str
    price_per_accelerator_h: Decimal | None
    seen_device_h: float
    waste: tuple[WasteRow, ...]
    caps: tuple[CapPoint, ...]
    emitted_kgco2e: float | None
    regions: tuple[Elsewhere, ...]
    shifts: tuple[ShiftAdvice, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to advise on."""
        return not (self.waste or self.caps or self.regions or self.shifts)

    def as_json(self) -> dict[str, Any]:
        """The document of `manage.py advice --json`; money as strings."""
        price = self.price_per_accelerator_h
        return {
            "from": self.start_on.isoformat(),
            "to": self.end_on.isoformat(),
            "currency": self.currency,
            "price_per_accelerator_h": None if price is None else str(price),
            "seen_device_h": self.seen_device_h,
            "emitted_kgco2e": self.emitted_kgco2e,
            "waste": [_waste_document(one) for one in self.waste],
            "power_caps": [
                {
                    "model": one.model,
                    "power_limit_w": one.power_limit_w,
                    "device_h": one.device_h,
                    "mean_power_w": one.mean_power_w,
                    "sm_clock_hz": one.sm_clock_hz,
                    "j_per_gigacycle": one.j_per_gigacycle,
                }
                for one in self.caps
            ],
            "regions": [
                {
                    "name": one.name,
                    "level": one.level,
                    "g_per_kwh": one.g_per_kwh,
                    "kgco2e": one.kgco2e,
                    "year": one.year,
                    "source": one.source,
                }
                for one in self.regions
            ],
            "shifts": [
                {
                    "zone": one.zone,
                    "signal": one.signal,
                    "as_it_was_kgco2e": one.as_it_was_kgco2e,
                    "best_shift_h": one.best.shift_h,
                    "best_kgco2e": one.best.kgco2e,
                    "covered_fraction": one.covered_fraction,
                }
                for one in self.shifts
            ],
        }


def _waste_document(row: WasteRow) -> dict[str, Any]:
    return {
        "run": row.run,
        "kind": row.kind,
        "device_h": row.spent.device_h,
        "time_fraction": row.time_fraction,
        "accelerator_energy_kwh": row.spent.accelerator_energy_kwh,
        "facility_energy_kwh": row.spent.facility_energy_kwh,
        "kgco2e": row.spent.kgco2e,
        "cost": None if row.cost is None else str(row.cost),
    }


def advice_of(project: Project, *, start_on: date, end_on: date) -> AdvicePage:
    """Advice on a project's days [start_on, end_on)."""
    start, end = (datetime.combine(day, time(), UTC) for day in (start_on, end_on))
    hours = spent_hours(project.organisation_id, project.pk, start=start, end=end)
    uses = use_of_project(project.organisation_id, project.pk, start=start, end=end)
    price = _price(project, start_on=start_on, end_on=end_on)
    emitted = [one.kgco2e for one in hours]
    known = [one for one in emitted if one is not None]
    return AdvicePage(
        start_on=start_on,
        end_on=end_on,
        currency=project.currency,
        price_per_accelerator_h=price,
        seen_device_h=sum(one.seen.device_h for one in uses),
        waste=tuple(_waste(project, uses, price)),
        caps=tuple(cap_points(project.organisation_id, project.pk, start=start, end=end)),
        emitted_kgco2e=sum(known) if known and len(known) == len(emitted) else None,
        regions=tuple(elsewhere(project.organisation_id, hours)[:SHOWN_REGIONS]),
        shifts=tuple(shifts(project.organisation_id, hours)),
    )


def metered_through(project: Project) -> date | None:
    """The last day on which the project has any energy."""
    days = energy_by_day(project.organisation_id, project.pk)
    return max((one.day for one in days), default=None)


def _price(project: Project, *, start_on: date, end_on: date) -> Decimal | None:
    """What an accelerator-hour cost the project in these days, effective; None if unknown."""
    rows = [
        row
        for row in cost_by_day(
            project.organisation_id,
            project.pk,
            basis="effective",
            start_on=start_on,
            end_on=end_on,
        )
        if row.x_cost_class == "accelerator"
    ]
    if not rows or any(row.cost is None or row.currency != project.currency for row in rows):
        return None
    hours = exact_sum(row.accelerator_h for row in rows if row.accelerator_h is not None)
    cost = exact_sum(row.cost for row in rows if row.cost is not None)
    return EXACT.quantize(EXACT.divide(cost, hours), STORED) if hours else None


def _priced(price: Decimal, device_h: float) -> Decimal:
    """The money of some device-hours: an estimate, since the hours are seen, not billed."""
    return EXACT.quantize(EXACT.multiply(price, Decimal(repr(device_h))), STORED)


def _waste(project: Project, uses: Sequence[RunUse], price: Decimal | None) -> list[WasteRow]:
    names = {run.run_id: run.name for run in runs_of(project.pk)}
    rows = [
        WasteRow(
            run=names.get(use.run_id, "") if use.run_id else "",
            kind=kind,
            spent=spent,
            time_fraction=spent.device_h / use.seen.device_h if use.seen.device_h else 0.0,
            cost=None if price is None else _priced(price, spent.device_h),
        )
        for use in uses
        for kind, spent in zip(WORDS, (use.idle, use.throttled, use.capped), strict=True)
        if spent.device_h
    ]
    return sorted(rows, key=lambda row: -row.spent.accelerator_energy_kwh)
