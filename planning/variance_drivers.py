"""The drivers of a plan and of what happened, from records of the rooms below. Pure: no tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from carbon.records import EmissionSummary
from formulae.drivers import CAUSE_OF_BUCKET, Cause, Drivers, Exact, stored
from formulae.money import round_half_even
from formulae.time_ledger import Bucket
from formulae.units import G_PER_KG, S_PER_HOUR
from planning.earned_records import EarnedState, EarnedStates, LineState, Method
from planning.estimating import Answer
from planning.expenses import Expenses
from planning.records import CostGroup, PlanRecord
from planning.used_time import UsedTime, hours_of
from planning.variance_records import Against, DriverPair, DriverUnit

MAIN_RUN: Final = "main_run"
HOUR_DECIMALS: Final = 6  # as formulae.estimate.cost_of_hours rounds them
# With more of the main run's time unknown, useful and unknown time are not told apart.
MOST_UNKNOWN_FRACTION: Final = Fraction(1, 10)
# Billed hours are decimals, ledgers are exact: a second of difference is none.
_LEAST_SURPLUS_H: Final = Fraction(1, S_PER_HOUR)
_LINE_CAUSES: Final = {
    "storage": Cause.STORAGE,
    "requests": Cause.TRANSFER,
    "transfer": Cause.TRANSFER,
}
GROUPS_OF_CAUSE: Final = {
    Cause.PRICE: (CostGroup.ACCELERATOR,),
    Cause.EXPERIMENTS: (CostGroup.OTHER_COMPUTE,),
    Cause.STORAGE: (
        CostGroup.STORAGE_HOT,
        CostGroup.STORAGE_WARM,
        CostGroup.STORAGE_COLD,
    ),
    Cause.TRANSFER: (CostGroup.TRANSFER, CostGroup.REQUESTS),
    Cause.OTHER_CHARGES: (
        CostGroup.SERVICES,
        CostGroup.TAX,
        CostGroup.CREDITS,
        CostGroup.OTHER,
    ),
}
_LOST_BY_FAILURES: Final = {
    Cause.RESTART: "restart_loss_fraction",
    Cause.REWORK: "rework_loss_fraction",
    Cause.CHECKPOINT: "checkpoint_loss_fraction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What a frozen estimate says of the main run, at the percentile that is planned."""

    accelerator_h: Fraction | None
    goodput: Fraction | None = None
    tokens: int | None = None
    flop_per_token: Fraction | None = None
    peak_flop_per_s: Fraction | None = None
    lost_fractions: Mapping[Cause, Fraction] = field(default_factory=dict)
    accelerator_kwh: Fraction | None = None
    it_kwh: Fraction | None = None
    facility_kwh: Fraction | None = None
    kgco2e: Fraction | None = None


def assumed_of(answer: Answer, *, level: str, tokens: int | None) -> Assumed:
    """Read a frozen estimate's answer."""

    def figure(name: str) -> Fraction | None:
        return _exact(answer.figure(name, level))

    assumptions: Mapping[str, Any] = answer.document.get("assumptions") or {}
    goodput = assumptions.get("goodput")
    failures = assumptions.get("failures") or {}
    return Assumed(
        accelerator_h=_hours_of_cost(answer.figure("accelerator_h", level)),
        goodput=_exact(goodput.get("p50") if isinstance(goodput, dict) else goodput),
        tokens=tokens,
        flop_per_token=_exact(assumptions.get("model_flop_per_token")),
        peak_flop_per_s=_exact(assumptions.get("peak_flop_per_s")),
        lost_fractions={
            cause: share
            for cause, name in _LOST_BY_FAILURES.items()
            if (share := _exact(failures.get(name))) is not None
        },
        accelerator_kwh=figure("accelerator_energy_kwh"),
        it_kwh=figure("it_energy_kwh"),
        facility_kwh=figure("facility_energy_kwh"),
        kgco2e=figure("scope_2_location_kgco2e"),
    )


def _hours_of_cost(accelerator_h: float | None) -> Fraction | None:
    """The hours that an estimate's cost is the price of: they are rounded to six decimals first."""
    if accelerator_h is None:
        return None
    return Fraction(round_half_even(Decimal(repr(accelerator_h)), decimals=HOUR_DECIMALS))


def compared_against(earned: EarnedStates) -> Against:
    """The work that was done; the calendar where nothing tells how far the main run is."""
    known = [line.earned_value is not None for line in _work(earned.money)]
    return Against.WORK_DONE if all(known) else Against.CALENDAR


def planned_drivers(plan: PlanRecord, assumed: Assumed, earned: EarnedStates) -> Drivers:
    """The budget of the work that was done, taken apart.

    Every hour of the plan costs what an hour of its main run does, so a line's hours follow from
    its amount.
    """
    against = compared_against(earned)
    inside = {line.key for line in plan.lines if line.in_programme}
    budgets = {line.key: _budget(line, against) for line in _work(earned.money)}
    main = budgets.get(MAIN_RUN, Fraction(0))
    other = sum((budgets[key] for key in budgets if key in inside and key != MAIN_RUN), Fraction(0))
    by_cause = {cause: Fraction(0) for cause in GROUPS_OF_CAUSE}
    for key, amount in budgets.items():
        if key not in inside:
            cause = _LINE_CAUSES.get(key.partition("_")[0], Cause.OTHER_CHARGES)
            by_cause[cause] += amount
    price = _over(Fraction(plan.main_run_cost), assumed.accelerator_h)
    main_h, other_h = _over(main, price), _over(other, price)
    facility_kwh = _budget_of(earned.energy, against)
    return Drivers(
        tokens=_planned_tokens(earned, assumed) if against is Against.WORK_DONE else None,
        flop_per_token=assumed.flop_per_token,
        productive_h=_times(main_h, assumed.goodput),
        lost_h=_planned_losses(main_h, assumed),
        main_h=main_h,
        other_h=other_h,
        accelerator_cost=main + other,
        storage_cost=by_cause[Cause.STORAGE],
        transfer_cost=by_cause[Cause.TRANSFER],
        other_cost=by_cause[Cause.OTHER_CHARGES],
        accelerator_kwh=_times(facility_kwh, _over(assumed.accelerator_kwh, assumed.facility_kwh)),
        it_kwh=_times(facility_kwh, _over(assumed.it_kwh, assumed.facility_kwh)),
        facility_kwh=facility_kwh,
        kgco2e=_budget_of(earned.carbon, against),
        price_per_accelerator_h=price,
        accelerator_kw=_over(assumed.accelerator_kwh, assumed.accelerator_h),
        host_factor=_over(assumed.it_kwh, assumed.accelerator_kwh),
        pue=_over(assumed.facility_kwh, assumed.it_kwh),
        g_per_kwh=_times(_over(assumed.kgco2e, assumed.facility_kwh), Fraction(G_PER_KG)),
    )


def actual_drivers(
    spent: Expenses, time: UsedTime | None, earned: EarnedStates, energy: EmissionSummary
) -> Drivers:
    """What was used until now, taken apart as far as bills, assignments and progress tell."""
    hours = _actual_hours(spent, time)
    return Drivers(
        tokens=earned.tokens_trained,
        flop_per_token=_flop_per_token(time),
        accelerator_cost=spent.of(GROUPS_OF_CAUSE[Cause.PRICE]),
        other_compute_cost=spent.of(GROUPS_OF_CAUSE[Cause.EXPERIMENTS]),
        storage_cost=spent.of(GROUPS_OF_CAUSE[Cause.STORAGE]),
        transfer_cost=spent.of(GROUPS_OF_CAUSE[Cause.TRANSFER]),
        other_cost=spent.of(GROUPS_OF_CAUSE[Cause.OTHER_CHARGES]),
        currency_cost=spent.currency_cost,
        accelerator_kwh=_exact(energy.accelerator_energy_kwh),
        it_kwh=_exact(energy.it_energy_kwh),
        facility_kwh=_exact(energy.facility_energy_kwh),
        kgco2e=_exact(energy.scope_2_location_kgco2e),
        **hours,
    )


def surplus_h(spent: Expenses, time: UsedTime | None) -> Fraction:
    """Hours that were billed beyond those for which devices were assigned."""
    if time is None or spent.accelerator_h is None:
        return Fraction(0)
    surplus = Fraction(spent.accelerator_h) - time.total_h
    return surplus if surplus > _LEAST_SURPLUS_H else Fraction(0)


def is_time_unknown(time: UsedTime) -> bool:
    """Whether too much of the main run's time is unknown to tell how fast the rest was."""
    spent = time.main
    whole = sum(spent.values())
    return not whole or Fraction(spent[Bucket.UNKNOWN], whole) > MOST_UNKNOWN_FRACTION


def _actual_hours(spent: Expenses, time: UsedTime | None) -> dict[str, Any]:
    """The hours of the main run by what they went to, of other runs, and all of them."""
    if time is None:
        return {"accelerator_h": spent.accelerator_h}
    extra = surplus_h(spent, time)
    whole = time.total_h + extra
    if not time.main_runs:
        return {"accelerator_h": whole}
    buckets = {bucket: hours_of(microsecond) for bucket, microsecond in time.main.items()}
    lost = {cause: buckets[bucket] for bucket, cause in CAUSE_OF_BUCKET.items()}
    productive: Fraction | None = buckets[Bucket.PRODUCTIVE] + buckets[Bucket.SLOW]
    if is_time_unknown(time):
        productive = None
        del lost[Cause.UNKNOWN_TIME]
        lost = {cause: hours for cause, hours in lost.items() if hours}
    return {
        "productive_h": productive,
        "lost_h": lost,
        "main_h": sum(buckets.values(), Fraction(0)),
        "other_h": hours_of(time.other_microsecond),
        "unassigned_h": hours_of(time.unassigned_microsecond) + extra,
        "accelerator_h": whole,
    }


def _flop_per_token(time: UsedTime | None) -> Fraction | None:
    """What all main runs say of it; 6 N is no word against the plan's own count."""
    runs = time.main_runs if time else ()
    told = {run.flop_per_token for run in runs}
    return _exact(told.pop()) if len(told) == 1 else None


def _work(state: EarnedState) -> list[LineState]:
    """The lines that are work: the contingency is a reserve."""
    return [line for line in state.lines if line.method is not Method.RESERVE]


def _budget(line: LineState, against: Against) -> Fraction:
    amount = line.earned_value if against is Against.WORK_DONE else line.planned_value
    return Fraction(amount or 0)


def _budget_of(state: EarnedState | None, against: Against) -> Fraction | None:
    """A budget in energy or carbon; None where the plan does not know it."""
    if state is None:
        return None
    return sum((_budget(line, against) for line in _work(state)), Fraction(0))


def _planned_tokens(earned: EarnedStates, assumed: Assumed) -> Fraction | None:
    """The tokens that the earned budget was approved for.

    A run may plan other tokens than the approved estimate: what it trains then earns that share of
    the budget, and the budget is for the estimate's tokens.
    """
    trained, planned = earned.tokens_trained, earned.tokens_planned
    main = next((line for line in earned.money.lines if line.key == MAIN_RUN), None)
    if trained is None or not planned or main is None or main.method is not Method.TOKENS:
        return None
    return Fraction(min(max(trained, 0), planned) * (assumed.tokens or planned), planned)


def _planned_losses(main_h: Fraction | None, assumed: Assumed) -> dict[Cause, Fraction]:
    """The hours that the plan's failure model names, no more than its goodput leaves."""
    if main_h is None or assumed.goodput is None or not assumed.lost_fractions:
        return {}
    named = sum(assumed.lost_fractions.values(), Fraction(0))
    left = max(Fraction(0), 1 - assumed.goodput)
    scale = min(Fraction(1), left / named) if named > 0 else Fraction(0)
    return {cause: main_h * share * scale for cause, share in assumed.lost_fractions.items()}


def driver_pairs(planned: Drivers, actual: Drivers, assumed: Assumed) -> dict[Cause, DriverPair]:
    """The driver behind each cause, as planned and as it was."""
    before, after = _shown_drivers(planned, assumed), _shown_drivers(actual, assumed)
    return {
        cause: DriverPair(planned=before[cause], actual=after[cause], unit=unit)
        for cause, unit in _UNITS.items()
    }


_UNITS: Final = {
    Cause.VOLUME: DriverUnit.TOKENS,
    Cause.EFFICIENCY: DriverUnit.FRACTION,
    **dict.fromkeys(CAUSE_OF_BUCKET.values(), DriverUnit.ACCELERATOR_H),
    Cause.EXPERIMENTS: DriverUnit.ACCELERATOR_H,
    Cause.PRICE: DriverUnit.MONEY_PER_H,
    Cause.POWER: DriverUnit.KILOWATT,
    Cause.HOST_FACTOR: DriverUnit.RATIO,
    Cause.PUE: DriverUnit.RATIO,
    Cause.CARBON_INTENSITY: DriverUnit.G_PER_KWH,
    Cause.STORAGE: DriverUnit.MONEY,
    Cause.TRANSFER: DriverUnit.MONEY,
    Cause.OTHER_CHARGES: DriverUnit.MONEY,
}


def _shown_drivers(drivers: Drivers, assumed: Assumed) -> dict[Cause, Decimal | None]:
    """Rates follow from the totals; those that are given serve where there are no hours yet."""
    hours, grams = drivers.hours, _over(drivers.kgco2e, drivers.facility_kwh)
    price = _over(drivers.accelerator_cost, hours)
    power = _over(drivers.accelerator_kwh, hours)
    host = _over(drivers.it_kwh, drivers.accelerator_kwh)
    pue = _over(drivers.facility_kwh, drivers.it_kwh)
    intensity = _times(grams, Fraction(G_PER_KG))
    unassigned = {Cause.UNKNOWN_TIME: Fraction(drivers.unassigned_h)}
    found: dict[Cause, Exact | None] = {
        Cause.VOLUME: drivers.tokens,
        Cause.EFFICIENCY: _mfu(drivers, assumed),
        **{
            cause: _plus(drivers.lost_h.get(cause), unassigned.get(cause))
            for cause in CAUSE_OF_BUCKET.values()
        },
        Cause.EXPERIMENTS: drivers.other_h,
        Cause.PRICE: drivers.price_per_accelerator_h if price is None else price,
        Cause.POWER: drivers.accelerator_kw if power is None else power,
        Cause.HOST_FACTOR: drivers.host_factor if host is None else host,
        Cause.PUE: drivers.pue if pue is None else pue,
        Cause.CARBON_INTENSITY: drivers.g_per_kwh if intensity is None else intensity,
        Cause.STORAGE: drivers.storage_cost,
        Cause.TRANSFER: drivers.transfer_cost,
        Cause.OTHER_CHARGES: drivers.other_cost,
    }
    return {cause: _shown(value) for cause, value in found.items()}


def _plus(hours: Exact | None, more_h: Fraction | None) -> Exact | None:
    """Hours of a cause, with those of no run; None where nothing tells of any."""
    return Fraction(hours or 0) + more_h if more_h else hours


def _mfu(drivers: Drivers, assumed: Assumed) -> Fraction | None:
    """Model FLOP of the useful hours over the plan's peak; the plan's FLOP per token both times."""
    flop = _times(_exact(drivers.tokens), assumed.flop_per_token)
    possible = _times(_exact(drivers.productive_h), assumed.peak_flop_per_s, Fraction(S_PER_HOUR))
    return _over(flop, possible)


def _exact(value: Any) -> Fraction | None:
    """A figure as the number that it is written as."""
    if value is None:
        return None
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)


def _over(first: Exact | None, second: Exact | None) -> Fraction | None:
    if first is None or not second:
        return None
    return Fraction(first) / Fraction(second)


def _times(first: Fraction | None, *others: Fraction | None) -> Fraction | None:
    product = first
    for other in others:
        product = None if product is None or other is None else product * other
    return product


def _shown(value: Exact | None) -> Decimal | None:
    return None if value is None else stored(Fraction(value))


def days_that_weigh(amounts: Iterable[tuple[Any, Exact]], *, most: int) -> list[tuple[Any, Exact]]:
    """The largest amounts, by size, then by day."""
    some = [one for one in amounts if one[1]]
    return sorted(some, key=lambda one: (-abs(Fraction(one[1])), one[0]))[:most]
