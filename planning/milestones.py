"""Reads milestones of a project by week; W0 is the week that begins on the plan's first day."""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from planning.models import Milestone, PlanVersion
from projects.models import Project

WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneRecord:
    """A point of the project's calendar; `day` is the first day of its week.

    With a line and a share it earns that share of the line once it is reached.
    """

    name: str
    week: int
    day: date
    line_key: str = ""
    share_fraction: Decimal | None = None
    reached_on: date | None = None

    def is_late(self, on: date) -> bool:
        """Whether its week was over before it was reached, seen on a day."""
        return (self.reached_on or on) >= self.day + WEEK


def first_day(project: Project) -> date | None:
    """The day on which W0 begins: the first day of the plan in force, or of a draft before one."""
    versions = PlanVersion.objects.filter(plan__project=project).prefetch_related("lines")
    approved = versions.filter(state=PlanVersion.State.APPROVED)
    version = approved.order_by("-approved_at", "-number").first() or versions.first()
    days = [line.starts_on for line in version.lines.all()] if version else []
    return min(days, default=None)


def milestones_of(project: Project, *, starts_on: date | None = None) -> list[MilestoneRecord]:
    """The milestones of a project's plan, by week and name; none without a plan.

    Args:
        project: whose.
        starts_on: the plan's first day, where the caller knows it already.
    """
    found = list(Milestone.objects.filter(plan__project=project))
    begins = starts_on or (first_day(project) if found else None)
    if begins is None:
        return []
    return [
        MilestoneRecord(
            name=one.name,
            week=one.week,
            day=begins + one.week * WEEK,
            line_key=one.line_key,
            share_fraction=one.share_fraction,
            reached_on=one.reached_on,
        )
        for one in found
    ]
