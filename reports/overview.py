"""What a project's page shows beside its charts: earned value, the end, causes, notes of days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from django.utils.translation import gettext as _

from formulae.units import EXACT
from planning.accrual_records import AccrualError, RateBasis
from planning.accruals import accrual_error_of
from planning.earned_records import EarnedState
from planning.forecast_records import ForecastBasis, Interval, ProjectForecast
from planning.forecasting import past_forecasts
from planning.milestones import milestones_of
from planning.records import Burndown
from planning.selectors import belief_of, plan_versions
from planning.variance import variance_of
from projects.models import Project
from reports.models import Annotation
from reports.note_selectors import annotations_of
from reports.why import Why, why_of
from runs.progress_records import EventKind
from runs.progress_selectors import events_of
from runs.selectors import runs_of
from ui.charts import Marker

SHOWN_EVENTS = frozenset({EventKind.RESTART, EventKind.ROLLBACK})
MOST_MARKERS = 6
APART = timedelta(days=5)
MOST_SHOWN = 12
MARKER_LETTERS = 24
LETTER_FRACTION = 0.008  # of the axis' width


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRow:
    """One quantity at completion: approved, forecast, and what it is over."""

    unit: str
    budget: Decimal
    spent: Decimal | None
    interval: Interval | None

    @property
    def over(self) -> Decimal | None:
        """P50 less the approved budget."""
        return None if self.interval is None else EXACT.subtract(self.interval.p50, self.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """What was forecast at the end of a week, and whether today's forecast lies in it."""

    forecast: ProjectForecast
    holds: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A day worth a word: an event of a run, a new baseline, what somebody says of it."""

    day: date
    label: str
    detail: str = ""
    annotation: Annotation | None = None
    is_milestone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything of a project's page that is not a chart of days."""

    ends: tuple[EndRow, ...]
    past: tuple[PastRow, ...]
    past_held: int
    why: Why | None
    happenings: tuple[Happening, ...]
    accrual_error: AccrualError | None
    rate_words: tuple[str, ...]


def overview_of(project: Project, burndown: Burndown, *, as_of: datetime) -> Overview:
    """Read and put into words."""
    belief = belief_of(burndown.plan) if burndown.plan else None
    variance = variance_of(project, as_of=as_of, basis=burndown.basis, burndown=burndown)
    past = _past(burndown, past_forecasts(burndown, belief))
    return Overview(
        ends=_ends(burndown),
        past=past,
        past_held=sum(1 for row in past if row.holds),
        why=None if variance is None else why_of(project, variance, runs_of(project.pk)),
        happenings=_happenings(project, burndown),
        accrual_error=accrual_error_of(
            project, as_of=as_of, currency=burndown.currency, basis=burndown.basis
        ),
        rate_words=_rates(burndown),
    )


def markers_of(
    happenings: Sequence[Happening], *, axis_days: int = 0, taken: Sequence[Marker] = ()
) -> list[Marker]:
    """What people said, then the newest happenings: marks as far apart as their labels are long.

    Milestones also keep away from labels that the chart has already.
    """
    newest = sorted(
        happenings,
        key=lambda one: (one.annotation is not None, not one.is_milestone, one.day),
        reverse=True,
    )
    marks: list[Marker] = []
    for one in newest:
        label = one.label
        if len(label) > MARKER_LETTERS:
            label = label[: MARKER_LETTERS - 1].rstrip() + "…"
        mark = Marker(day=one.day, label=label)
        others = [*marks, *taken] if one.is_milestone else marks
        if all(abs(other.day - mark.day) >= _apart(mark, other, axis_days) for other in others):
            marks.append(mark)
    return marks[:MOST_MARKERS]


def labels_of(burndown: Burndown) -> list[Marker]:
    """What the chart itself writes above its days: its unit at the left, the day of its data."""
    if not burndown.days:
        return []
    unit = Marker(day=burndown.days[0].day, label=burndown.currency)
    return [unit, Marker(day=burndown.as_of.date(), label=_("data as of"))]


def _apart(one: Marker, other: Marker, axis_days: int) -> timedelta:
    """How far apart two labels do not touch, on a chart of so many days."""
    letters = (len(one.label) + len(other.label)) / 2
    return max(APART, timedelta(days=letters * LETTER_FRACTION * axis_days))


def _ends(burndown: Burndown) -> tuple[EndRow, ...]:
    earned, forecast = burndown.earned, burndown.forecast
    if earned is None:
        return ()
    pairs: tuple[tuple[EarnedState | None, Interval | None], ...] = (
        (earned.money, forecast.cost if forecast else None),
        (earned.energy, forecast.facility_energy_kwh if forecast else None),
        (earned.carbon, forecast.scope_2_location_kgco2e if forecast else None),
    )
    return tuple(
        EndRow(
            unit=state.unit.value,
            budget=state.budget_at_completion,
            spent=state.actual,
            interval=interval,
        )
        for state, interval in pairs
        if state is not None
    )


def _past(burndown: Burndown, past: Sequence[ProjectForecast]) -> tuple[PastRow, ...]:
    """Past forecasts from the newest on, each against today's."""
    now = burndown.forecast.cost if burndown.forecast else None
    rows = []
    for one in reversed(past):
        known = one.cost is not None and now is not None
        holds = one.cost.p10 <= now.p50 <= one.cost.p90 if known and one.cost and now else None
        rows.append(PastRow(forecast=one, holds=holds))
    return tuple(rows)


def _happenings(project: Project, burndown: Burndown) -> tuple[Happening, ...]:
    """Restarts and rollbacks of runs, new baselines, annotations, in order."""
    told = [
        Happening(day=one.day, label=one.text, annotation=one) for one in annotations_of(project.pk)
    ]
    newest = sorted(_recorded(project, burndown), key=lambda one: one.day)[-MOST_SHOWN:]
    points = _milestones(project, burndown)
    return tuple(sorted([*newest, *told, *points], key=lambda one: one.day))


def _milestones(project: Project, burndown: Burndown) -> list[Happening]:
    """The plan's milestones on the chart's days, by their weeks."""
    if not burndown.days or burndown.plan is None:
        return []
    first, last = burndown.days[0].day, burndown.days[-1].day
    return [
        Happening(
            day=one.day,
            label=f"W{one.week} {one.name}",
            detail=_("reached") if one.reached_on else "",
            is_milestone=True,
        )
        for one in milestones_of(project, starts_on=burndown.plan.starts_on)
        if first <= one.day <= last
    ]


def _recorded(project: Project, burndown: Burndown) -> list[Happening]:
    """What runs and plans tell of the chart's days."""
    if not burndown.days:
        return []
    start = datetime.combine(burndown.days[0].day, time.min, tzinfo=UTC)
    end = min(burndown.as_of, start + timedelta(days=3660))
    found = [
        Happening(
            day=event.at.astimezone(UTC).date(), label=_event(event.kind), detail=event.detail
        )
        for _run, event in events_of(project.pk, start, end)
        if event.kind in SHOWN_EVENTS
    ]
    approved = sorted(
        (one for one in plan_versions(project) if one.approved_at), key=lambda one: one.number
    )
    for one in approved[1:]:
        if one.approved_at and start <= one.approved_at <= end:
            label = _("baseline {number}").format(number=one.number)
            found.append(Happening(day=one.approved_at.date(), label=label, detail=one.reason))
    return found


def _event(kind: EventKind) -> str:
    return {
        EventKind.RESTART: _("restart"),
        EventKind.ROLLBACK: _("rollback"),
    }[kind]


def _rates(burndown: Burndown) -> tuple[str, ...]:
    """Where the rates of accruals come from, each said once."""
    days = burndown.accruals.days if burndown.accruals else ()
    bases = {one.rate.basis if one.rate else None for one in days}
    words = {
        RateBasis.OWN_PRICE: _("a price that you stated"),
        RateBasis.BILLED_LATELY: _("cost over hours of the last seven settled days"),
        RateBasis.PRICE_LIST: _("a price list"),
        RateBasis.TARIFF: _("the tariff of own hardware"),
        RateBasis.DAILY_MEAN: _(
            "for storage and transfer, the mean of the last seven settled days"
        ),
        None: _("no rate: nobody stated one"),
    }
    return tuple(text for basis, text in words.items() if basis in bases)


def basis_words(forecast: ProjectForecast) -> str:
    """What the forecast rests on, in a sentence."""
    if forecast.basis is ForecastBasis.PROGRESS:
        return _("From the run's own days: tokens, cost, energy and emissions of each.")
    return _(
        "No run reports progress: the run is taken to last as its estimate says, at the daily "
        "cost of the last two weeks."
    )
