"""Reads how far the lines of a plan are: net tokens trained, milestones that are reached."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from formulae.earned_value import completed_fraction
from formulae.money import exact_sum
from planning.earned_records import LineProgress, Method, WorkDone
from planning.models import Estimate, Milestone
from planning.records import PlanRecord
from projects.models import Project
from runs.progress_records import ProgressDay
from runs.progress_selectors import progress_by_day
from runs.records import RunRecord
from runs.selectors import runs_of

MAIN_RUN: Final = "main_run"
FIRST_DAY: Final = date(2000, 1, 1)
LAST_DAY: Final = date.max - timedelta(days=1)


def work_done(project: Project, plan: PlanRecord | None, *, as_of: datetime) -> WorkDone:
    """What is known at `as_of` of the work on a plan's lines.

    A line is measured by the tokens of its runs, where they say how many are planned; the main run
    takes what its estimate planned. A line without is measured by its milestones with shares.
    """
    runs = runs_of(project.pk)
    today = as_of.astimezone(UTC).date()
    days = progress_by_day(
        project.pk, start_on=FIRST_DAY, end_on=min(today, LAST_DAY) + timedelta(days=1), as_of=as_of
    )
    lines: dict[str, Mapping[date, LineProgress]] = {}
    tokens: dict[date, int] = {}
    planned: int | None = None
    estimated = _tokens_of_estimate(plan) if plan else None
    for key, some in runs_by_line(runs).items():
        line_planned = planned_tokens(key, some, estimated)
        counted = _tokens_by_day(some, days)
        if key == MAIN_RUN:
            tokens, planned = counted, line_planned
        if line_planned and counted:
            lines[key] = {
                day: LineProgress(
                    completed_fraction=completed_fraction(
                        done=Decimal(max(count, 0)), planned=Decimal(line_planned)
                    ),
                    method=Method.TOKENS,
                )
                for day, count in counted.items()
            }
    for key, reached in _milestones(project, as_of).items():
        lines.setdefault(key, reached)
    return WorkDone(
        by_line=lines,
        tokens_by_day=tokens,
        tokens_planned=estimated if planned is None else planned,
        last_at=max((day.last_at for day in days if day.last_at), default=None),
    )


def runs_by_line(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs by the plan line that they work on; one that names none and plans tokens is the main."""
    found: defaultdict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        if run.plan_line_key:
            found[run.plan_line_key].append(run)
        elif run.tokens_planned:
            found[MAIN_RUN].append(run)
    return dict(found)


def planned_tokens(key: str, runs: Sequence[RunRecord], estimated_tokens: int | None) -> int | None:
    """What the runs say together; several main runs share what the estimate planned.

    A run that goes on from another states the whole count again, as the first one did.
    """
    stated = [run.tokens_planned for run in runs if run.tokens_planned]
    estimated = estimated_tokens if key == MAIN_RUN else None
    if len(stated) > 1 and estimated:
        return min(sum(stated), max(estimated, *stated))
    return sum(stated) if stated else estimated


def _tokens_of_estimate(plan: PlanRecord) -> int | None:
    """The tokens that the plan's estimate was asked for."""
    asked = Estimate.objects.filter(pk=plan.estimate_id).values_list("spec", flat=True).first()
    tokens = (asked or {}).get("tokens")
    return int(tokens) if tokens else None


def _tokens_by_day(runs: Sequence[RunRecord], days: Iterable[ProgressDay]) -> dict[date, int]:
    """The net tokens of all these runs together, on each day on which one of them told."""
    ids = {run.run_id for run in runs}
    told: defaultdict[date, dict[object, int]] = defaultdict(dict)
    for day in days:
        if day.run_id in ids and day.last_tokens_total is not None:
            told[day.day][day.run_id] = day.last_tokens_total
    latest: dict[object, int] = {}
    counted = {}
    for one in sorted(told):
        latest |= told[one]
        counted[one] = sum(latest.values())
    return counted


def _milestones(project: Project, as_of: datetime) -> dict[str, Mapping[date, LineProgress]]:
    """Lines with weighted milestones: the shares reached by each day on which one was reached."""
    found: dict[str, Mapping[date, LineProgress]] = {}
    by_line: defaultdict[str, list[Milestone]] = defaultdict(list)
    weighted = Milestone.objects.filter(plan__project=project, share_fraction__isnull=False)
    for one in weighted.exclude(line_key=""):
        by_line[one.line_key].append(one)
    today = as_of.astimezone(UTC).date()
    for key, some in by_line.items():
        reached = sorted(
            (one.reached_on, one.share_fraction)
            for one in some
            if one.reached_on and one.share_fraction and one.reached_on <= today
        )
        days = {date.min: _milestone_progress([])}
        for place, (day, _share) in enumerate(reached, start=1):
            days[day] = _milestone_progress([share for _day, share in reached[:place]])
        found[key] = days
    return found


def _milestone_progress(shares: Sequence[Decimal]) -> LineProgress:
    return LineProgress(
        completed_fraction=min(exact_sum(shares), Decimal(1)), method=Method.MILESTONES
    )
