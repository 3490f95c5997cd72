"""Forecasts a project from its burn-down: the estimate's belief, moved by the run's own days. Pure.

What the project costs on a day while its main run goes on is simulated with the run; what the plan
has for after the run (distillation, the rest of evaluation) is added as planned.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final

from formulae.forecast import (
    ForecastPrior,
    Levels,
    ObservedDays,
    RunForecast,
    forecast_run,
    log_sd_of,
)
from formulae.money import quantise_money
from formulae.units import EXACT
from planning.earned_records import Unit, WorkDone
from planning.earned_rules import RESERVE_KEYS, line_budget, planned_fraction
from planning.forecast_records import EstimateBelief, ForecastBasis, Interval, ProjectForecast
from planning.phasing import days_of
from planning.records import Burndown, BurndownDay, CostGroup, PlanRecord

MAIN_RUN: Final = "main_run"
LEAST_LOG_SD: Final = 0.05
RECENT_DAYS: Final = 14
SILENT_MEAN_DAYS: Final = 7
# Bands that come once, with a bill: they are spent, and say nothing of the days to come.
ONCE: Final = (CostGroup.CREDITS, CostGroup.TAX)
_ONE_DAY: Final = timedelta(days=1)
_UNITS: Final = {"cost": Unit.MONEY, "kwh": Unit.ENERGY, "kg": Unit.CARBON}


def project_forecast(
    burndown: Burndown, belief: EstimateBelief | None, *, on: date | None = None
) -> ProjectForecast | None:
    """Where the project ends, by what is known of the days up to `on`.

    Args:
        burndown: of an approved plan.
        belief: the estimate behind it; None = none that says how long the run takes.
        on: the last day that counts; None = the last that anything is known of.

    Returns:
        The forecast; None without a plan, a belief, or a day that is known.
    """
    plan, through = burndown.plan, on or burndown.through
    if plan is None or belief is None or through is None or burndown.through is None:
        return None
    through = min(through, burndown.through)
    days = [row for row in burndown.days if row.day <= through]
    spent = {name: _spent(days, name) for name in _UNITS}
    if not _is_cost_whole(burndown, through):
        spent["cost"] = math.nan
    told = _Told(plan, burndown.work, belief, through)
    found = told.forecast(days)
    ends = [told.ended_on or _date(through, level) for level in _three(found.days_left)]
    return ProjectForecast(
        made_on=through,
        basis=told.basis,
        cost=_interval(found, "cost", spent["cost"], told),
        facility_energy_kwh=_interval(found, "kwh", spent["kwh"], told),
        scope_2_location_kgco2e=_interval(found, "kg", spent["kg"], told),
        main_run_ends_p10=ends[0],
        main_run_ends_p50=ends[1],
        main_run_ends_p90=ends[2],
        learned_fraction=found.learned_fraction if told.basis is ForecastBasis.PROGRESS else 0.0,
        is_open=found.is_open,
    )


def past_forecasts(burndown: Burndown, belief: EstimateBelief | None) -> list[ProjectForecast]:
    """What would have been forecast at the end of each past week of the main run.

    Of the days as they are known today, not as they were known then: bills that came late count.
    """
    if burndown.plan is None or burndown.through is None:
        return []
    found = []
    day = burndown.plan.main_run_starts_on + timedelta(days=6)
    while day < burndown.through:
        told = project_forecast(burndown, belief, on=day)
        if told is not None:
            found.append(told)
        day += timedelta(days=7)
    return found


class _Told:
    """The main run up to a day: what is left of it, and by what measure."""

    def __init__(
        self, plan: PlanRecord, work: WorkDone, belief: EstimateBelief, through: date
    ) -> None:
        self.plan, self.belief, self.through = plan, belief, through
        tokens = {day: count for day, count in work.tokens_by_day.items() if day <= through}
        self.tokens, self.planned = tokens, work.tokens_planned
        has_progress = bool(tokens and self.planned)
        self.basis = ForecastBasis.PROGRESS if has_progress else ForecastBasis.SPENDING

    @property
    def ended_on(self) -> date | None:
        """The day on which the last planned token was trained; None while some are left."""
        short = [day for day, count in self.tokens.items() if count < (self.planned or math.inf)]
        after = [day for day in self.tokens if not short or day > max(short)]
        return min(after, default=None)

    @property
    def planned_beside_until(self) -> date:
        """The last day whose costs beside the run are known, or simulated with the run.

        A run that is late pushes what comes after it; of one that nobody measures the plan's dates
        are all that is known.
        """
        if self.ended_on is not None:
            return self.through
        planned_end = self.plan.main_run_ends_on - _ONE_DAY
        return (
            planned_end if self.basis is ForecastBasis.PROGRESS else max(planned_end, self.through)
        )

    def forecast(self, days: Sequence[BurndownDay]) -> RunForecast:
        """Simulate the rest of the main run."""
        sd = max(log_sd_of(p10=self.belief.days_p10, p90=self.belief.days_p90), LEAST_LOG_SD)
        recent = {name: _recent_mean(days, name) for name in _UNITS}
        seed = self.plan.version_id
        if self.basis is ForecastBasis.SPENDING or not self.planned:
            prior = ForecastPrior(progress_per_day=1.0, log_sd=sd, per_day=recent)
            nothing = ObservedDays(progress=(), quantities=dict.fromkeys(_UNITS, ()))
            passed = (self.through + _ONE_DAY - self.plan.main_run_starts_on).days
            left = max(self.belief.days_p50 - max(passed, 0), 0.0)
            return forecast_run(prior, nothing, progress_left=left, seed=seed)
        prior = ForecastPrior(
            progress_per_day=self.planned / self.belief.days_p50, log_sd=sd, per_day=recent
        )
        return forecast_run(prior, self._observed(days), progress_left=self._left(), seed=seed)

    def _left(self) -> float:
        """Tokens that are left at the end of the last day.

        Where bills go on and reports do not, the run is taken to have gone on as in its last week.
        """
        last = max(self.tokens)
        left = float(max((self.planned or 0) - self.tokens[last], 0))
        made = tokens_made(self.tokens)
        lately = [max(made[day], 0.0) for day in sorted(made)[-SILENT_MEAN_DAYS:]]
        silent = (self.through - last).days
        if silent < 1 or not lately or not left:
            return left
        return max(left - silent * math.fsum(lately) / len(lately), 0.0)

    def _observed(self, days: Sequence[BurndownDay]) -> ObservedDays:
        """Whole days of the run: the day that is not over, or only begun, says nothing of pace."""
        first, last = min(self.tokens), max(self.tokens)
        made = tokens_made(self.tokens)
        rows = {row.day: row for row in days}
        span = days_of(first + _ONE_DAY, last)
        return ObservedDays(
            progress=[made.get(day, math.nan) for day in span],
            quantities={name: [_daily(rows.get(day), name) for day in span] for name in _UNITS},
        )


def tokens_made(tokens: Mapping[date, int]) -> dict[date, float]:
    """Tokens of each day from counts at the ends of days; a gap's tokens are spread over it.

    >>> tokens_made({date(2026, 9, 1): 10, date(2026, 9, 2): 30, date(2026, 9, 4): 70})[
    ...     date(2026, 9, 3)]
    20.0
    """
    made: dict[date, float] = {}
    told = sorted(tokens)
    for before, day in pairwise(told):
        gap = days_of(before + _ONE_DAY, day + _ONE_DAY)
        for one in gap:
            made[one] = (tokens[day] - tokens[before]) / len(gap)
    return made


def _daily(row: BurndownDay | None, name: str) -> float:
    """What a day like this one takes again: its amount without what comes once, NaN if unknown."""
    amount = _amount(row, name)
    if row is None or name != "cost":
        return amount
    return amount - float(sum(row.cost_by_group.get(one, Decimal(0)) for one in ONCE))


def _amount(row: BurndownDay | None, name: str) -> float:
    """A day's cost, energy or emissions; NaN where it is not known."""
    if row is None:
        return math.nan
    if name == "cost":
        known = [one for one in (row.actual_cost, row.accrued_cost) if one is not None]
        return float(sum(known)) if known else math.nan
    value = row.facility_energy_kwh if name == "kwh" else row.scope_2_location_kgco2e
    return math.nan if value is None else value


def _recent_mean(days: Sequence[BurndownDay], name: str) -> float:
    """The mean of the last two weeks that are known; NaN where none is."""
    known = [one for row in days if not math.isnan(one := _daily(row, name))]
    some = known[-RECENT_DAYS:]
    return math.fsum(some) / len(some) if some else math.nan


def _spent(days: Sequence[BurndownDay], name: str) -> float:
    """All of it up to the day; NaN where nothing is known."""
    known = [one for row in days if not math.isnan(one := _amount(row, name))]
    return math.fsum(known) if known else math.nan


def _is_cost_whole(burndown: Burndown, through: date) -> bool:
    """Whether all that was charged or accrued has a cost: part of it is no forecast's ground."""
    accrued = burndown.accruals.days if burndown.accruals else ()
    if any(one.cost is None for one in accrued if one.day <= through):
        return False
    return burndown.billed_through is None or burndown.actual_cost is not None


def _after_the_run(told: _Told, unit: Unit) -> Decimal | None:
    """What the plan has for days after the main run, and for lines that have not begun."""
    total, plan = Decimal(0), told.plan
    for line in plan.lines:
        if line.key == MAIN_RUN or line.key in RESERVE_KEYS:
            continue
        budget = line_budget(line, unit)
        if budget is None:
            return None
        rest = EXACT.subtract(Decimal(1), planned_fraction(line, told.planned_beside_until))
        if line.starts_on > told.through and line.ends_on <= plan.main_run_ends_on:
            rest = Decimal(1)
        total = EXACT.add(total, EXACT.multiply(budget, rest))
    return quantise_money(total)


def _interval(found: RunForecast, name: str, spent: float, told: _Told) -> Interval | None:
    """Spent, plus what is left with the run, plus what the plan has for later."""
    levels, later = found.quantities_left[name], _after_the_run(told, _UNITS[name])
    if later is None or math.isnan(spent) or math.isnan(levels.p50):
        return None
    return Interval(
        **{
            level: EXACT.add(later, quantise_money(Decimal(repr(spent + getattr(levels, level)))))
            for level in ("p10", "p50", "p80", "p90")
        }
    )


def _three(levels: Levels) -> tuple[float, float, float]:
    return levels.p10, levels.p50, levels.p90


def _date(through: date, days: float) -> date:
    """The day on which so many more days after `through` are over."""
    return through + timedelta(days=math.ceil(days))
