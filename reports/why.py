"""Why a project differs from its plan, as its page shows it: causes in words, bars, ways down."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from formulae.drivers import Cause
from formulae.units import EXACT
from planning.variance_records import (
    Against,
    CauseDetail,
    DriverPair,
    Variance,
    VarianceNote,
)
from projects.models import Project
from runs.records import RunRecord

WIDTH = 100.0
PHYSICAL = frozenset({Cause.POWER, Cause.HOST_FACTOR, Cause.PUE, Cause.CARBON_INTENSITY})


@dataclass(frozen=True, slots=True, kw_only=True)
class WayDown:
    """Where the things behind a cause are shown."""

    href: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseDayRow:
    """A day on which a cause weighs, and where that day is shown."""

    day: date
    cost: Decimal | None
    accelerator_h: Decimal | None
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """One cause with its amounts, its bar from `x` over `width` of 100, and the ways down."""

    detail: CauseDetail
    name: str
    words: str
    driver: DriverPair | None
    x: float | None
    width: float
    is_saving: bool
    ways: tuple[WayDown, ...]
    days: tuple[CauseDayRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The causes that weigh anything, dearest first, and those of energy and carbon alone."""

    variance: Variance
    rows: tuple[CauseRow, ...]
    centre: float
    against_work: bool
    notes: tuple[str, ...]
    left_of_reserve: Decimal | None


def why_of(project: Project, variance: Variance, runs: Sequence[RunRecord]) -> Why:
    """The variance in words, with addresses that open the days, runs and charges behind it."""
    some = [one for one in variance.causes if _weighs(one)]
    costs = [float(one.cost) for one in some if one.cost is not None]
    low, high = min([*costs, 0.0]), max([*costs, 0.0])
    span = (high - low) or 1.0
    names = {run.run_id: run for run in runs}
    some.sort(key=lambda one: (one.cost is None, -abs(one.cost or Decimal(0))))
    over = variance.cost.difference
    return Why(
        variance=variance,
        rows=tuple(_row(project, one, variance, names, low=low, span=span) for one in some),
        centre=-low / span * WIDTH,
        against_work=variance.against is Against.WORK_DONE,
        notes=tuple(_note(note) for note in variance.notes),
        left_of_reserve=None if over is None else EXACT.subtract(variance.reserve, over),
    )


def _weighs(one: CauseDetail) -> bool:
    return bool(one.cost or one.facility_energy_kwh or one.kgco2e)


def _row(  # noqa: PLR0913  # a row is drawn within the bounds of all
    project: Project,
    one: CauseDetail,
    variance: Variance,
    runs: dict[UUID, RunRecord],
    *,
    low: float,
    span: float,
) -> CauseRow:
    cost = float(one.cost or 0)
    return CauseRow(
        detail=one,
        name=cause_name(one.cause),
        words=cause_words(one.cause),
        driver=one.driver,
        x=None if one.cost is None else (min(cost, 0.0) - low) / span * WIDTH,
        width=abs(cost) / span * WIDTH,
        is_saving=cost < 0,
        ways=_ways(project, one, variance, runs),
        days=_days(project, one, variance),
    )


def _days(project: Project, one: CauseDetail, variance: Variance) -> tuple[CauseDayRow, ...]:
    """The heaviest days of a cause: their charges, else their energy hour by hour."""
    rows = []
    for day in one.opens.days:
        span = [("from", f"{day.day}"), ("to", f"{day.day + timedelta(days=1)}")]
        if one.opens.cost_classes:
            asked = [("group_by", "x_cost_class"), ("filter", f"project={project.slug}")]
            asked += [("filter", f"x_cost_class={name}") for name in one.opens.cost_classes]
            asked += [("basis", variance.basis), *span]
            href = f"{reverse('charges')}?{urlencode(asked)}"
        else:
            asked = [("by", "hour"), ("project", project.slug), *span]
            href = f"{reverse('energy')}?{urlencode(asked)}"
        rows.append(
            CauseDayRow(day=day.day, cost=day.cost, accelerator_h=day.accelerator_h, href=href)
        )
    return tuple(rows)


def _ways(
    project: Project, one: CauseDetail, variance: Variance, runs: dict[UUID, RunRecord]
) -> tuple[WayDown, ...]:
    """The charges, runs or hours behind a cause."""
    ways = []
    span = [("from", f"{one.opens.start_on}"), ("to", f"{one.opens.end_on}")]
    if one.opens.cost_classes:
        asked = [("group_by", "day"), ("filter", f"project={project.slug}")]
        asked += [("filter", f"x_cost_class={name}") for name in one.opens.cost_classes]
        asked += [("basis", variance.basis), *span]
        ways.append(WayDown(href=f"{reverse('charges')}?{urlencode(asked)}", label=_("Charges")))
    for run_id in one.opens.run_ids[:3]:
        if run_id in runs:
            run = runs[run_id]
            href = reverse("run_detail", args=[project.slug, run.slug])
            ways.append(WayDown(href=href, label=run.name))
    if one.cause in PHYSICAL:
        asked = [("by", "day"), ("project", project.slug), *span]
        ways.append(WayDown(href=f"{reverse('energy')}?{urlencode(asked)}", label=_("Energy")))
    return tuple(ways)


def cause_name(cause: Cause) -> str:
    """A cause as people call it."""
    return {
        Cause.VOLUME: _("Volume of work"),
        Cause.EFFICIENCY: _("Efficiency (MFU)"),
        Cause.DOWN: _("Down"),
        Cause.RESTART: _("Restarts"),
        Cause.REWORK: _("Work done again"),
        Cause.CHECKPOINT: _("Checkpoints"),
        Cause.DATA_STALL: _("Waiting for data"),
        Cause.STRAGGLER: _("Stragglers"),
        Cause.IDLE: _("Idle"),
        Cause.UNKNOWN_TIME: _("Time without telemetry"),
        Cause.EXPERIMENTS: _("Experiments and other runs"),
        Cause.PRICE: _("Price of an hour"),
        Cause.POWER: _("Power of an accelerator"),
        Cause.HOST_FACTOR: _("Host factor"),
        Cause.PUE: _("PUE"),
        Cause.CARBON_INTENSITY: _("Carbon intensity of the grid"),
        Cause.STORAGE: _("Storage"),
        Cause.TRANSFER: _("Requests, transfer and egress"),
        Cause.OTHER_CHARGES: _("Other charges"),
        Cause.CURRENCY: _("Exchange rates"),
        Cause.UNEXPLAINED: _("Not explained"),
    }[cause]


def cause_words(cause: Cause) -> str:
    """What a cause is about, in a line."""
    return {
        Cause.VOLUME: _("more or fewer tokens, or a dearer token"),
        Cause.EFFICIENCY: _("steps slower or faster than planned"),
        Cause.DOWN: _("no step, whatever utilisation says"),
        Cause.RESTART: _("from a fault to the first step"),
        Cause.REWORK: _("steps trained twice after a rollback"),
        Cause.CHECKPOINT: _("steps that wait for a checkpoint"),
        Cause.DATA_STALL: _("steps that wait for their data"),
        Cause.STRAGGLER: _("all wait for the slowest"),
        Cause.IDLE: _("assigned, and nothing runs"),
        Cause.UNKNOWN_TIME: _("assigned hours of which nothing was reported"),
        Cause.EXPERIMENTS: _("accelerator-hours outside the main run"),
        Cause.PRICE: _("the rate against the planned one"),
        Cause.POWER: _("watts drawn against the planned ones"),
        Cause.HOST_FACTOR: _("the rest of the server"),
        Cause.PUE: _("the rest of the hall"),
        Cause.CARBON_INTENSITY: _("grams in a kWh"),
        Cause.STORAGE: _("against the plan's lines for it"),
        Cause.TRANSFER: _("against the plan's lines for it"),
        Cause.OTHER_CHARGES: _("taxes, support, credits and the like"),
        Cause.CURRENCY: _("rates that moved since the plan"),
        Cause.UNEXPLAINED: _("what no known driver tells"),
    }[cause]


def _note(note: VarianceNote) -> str:
    return {
        VarianceNote.PROGRESS_UNKNOWN: _(
            "No run reports progress, so actuals are compared with the calendar: an early start "
            "looks like an overrun. Let a run report its tokens."
        ),
        VarianceNote.TIME_UNKNOWN: _(
            "Too little is known of how the run's time was spent to tell slow hours from lost ones."
        ),
        VarianceNote.NOT_ASSIGNED: _(
            "Some accelerator-hours are of no device that a run is assigned to: what they were "
            "spent on is not known."
        ),
        VarianceNote.ENERGY_NOT_COVERED: _(
            "Not all device-hours are metered: energy and emissions are less than they were."
        ),
        VarianceNote.RATE_MISSING: _(
            "Charges in another currency have no exchange rate, so the total is not known."
        ),
        VarianceNote.COST_UNKNOWN: _("A part of the cost is not known, so the total is not."),
    }[note]
