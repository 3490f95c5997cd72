"""Writes of milestones: the whole list of a plan, and the day on which one is reached."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from formulae.money import exact_sum
from planning.line_changes import PlanError
from planning.models import Milestone, Plan, PlanLine
from projects.models import Project
from projects.records import Actor
from projects.trail import note

LAST_WEEK: Final = 520
MOST_MILESTONES: Final = 100
_SHARE_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MilestoneWish:
    """A milestone as somebody wants it; with a share it earns that part of the line."""

    name: str
    week: int
    line_key: str = ""
    share_fraction: Decimal | None = None
    reached_on: date | None = None

    def document(self) -> dict[str, Any]:
        """The milestone for the trail and the configuration document; the share as text."""
        share = self.share_fraction
        return {
            "name": self.name,
            "week": self.week,
            "line_key": self.line_key,
            "share_fraction": None if share is None else format(share.normalize(), "f"),
            "reached_on": self.reached_on.isoformat() if self.reached_on else None,
        }


def default_milestones() -> tuple[MilestoneWish, ...]:
    """Those of the reference chapter: the budget at W0, cost and operations from W18 to W26."""
    return (
        MilestoneWish(name=_("Budget approved"), week=0),
        MilestoneWish(name=_("Cost and operations begin"), week=18),
        MilestoneWish(name=_("Cost and operations reviewed"), week=26),
    )


def wishes_of(project: Project) -> list[MilestoneWish]:
    """The milestones of a project as they are, by week and name."""
    return [_wish(one) for one in Milestone.objects.filter(plan__project=project)]


def _wish(one: Milestone) -> MilestoneWish:
    return MilestoneWish(
        name=one.name,
        week=one.week,
        line_key=one.line_key,
        share_fraction=one.share_fraction,
        reached_on=one.reached_on,
    )


@transaction.atomic
def set_milestones(actor: Actor, project: Project, wishes: Sequence[MilestoneWish]) -> bool:
    """Make these the milestones of a project, whatever it had; say whether that changed any.

    Raises:
        PlanError: a milestone cannot be; nothing is changed.
    """
    wanted = _checked(wishes)
    plan = _locked_plan(project)
    _check_lines(plan, wanted)
    before = {one.name: _wish(one) for one in plan.milestones.all()}
    after = {one.name: one for one in wanted}
    if before == after:
        return False
    plan.milestones.exclude(name__in=after).delete()
    for name, wish in after.items():
        if before.get(name) != wish:
            plan.milestones.update_or_create(
                name=name, defaults={**_values(wish), "organisation_id": project.organisation_id}
            )
    note(
        actor,
        "milestones.set",
        subject=("project", project.pk),
        before={"milestones": [one.document() for one in before.values()]},
        after={"milestones": [one.document() for one in wanted]},
    )
    return True


@transaction.atomic
def reach_milestone(actor: Actor, project: Project, name: str, reached_on: date | None) -> bool:
    """Say on which day a milestone was reached, or that it was not; say whether that is new.

    Raises:
        PlanError: the project has no such milestone.
    """
    plan = _locked_plan(project)
    found = plan.milestones.filter(name=name).first()
    if found is None:
        raise PlanError(_("There is no milestone %(name)s.") % {"name": name})
    if found.reached_on == reached_on:
        return False
    before = _wish(found).document()
    found.reached_on = reached_on
    found.save()
    note(
        actor,
        "milestone.reach",
        subject=("project", project.pk),
        before=before,
        after=_wish(found).document(),
    )
    return True


def _locked_plan(project: Project) -> Plan:
    plan, _created = Plan.objects.select_for_update().get_or_create(
        project=project, defaults={"organisation_id": project.organisation_id}
    )
    return plan


def _check_lines(plan: Plan, wishes: Sequence[MilestoneWish]) -> None:
    """A line that is named is one of the plan's, as soon as the plan has any."""
    known = set(PlanLine.objects.filter(version__plan=plan).values_list("key", flat=True))
    for wish in wishes:
        if known and wish.line_key and wish.line_key not in known:
            raise PlanError(
                _("%(name)s: the plan has no line %(line)s; it has %(known)s.")
                % {"name": wish.name, "line": wish.line_key, "known": ", ".join(sorted(known))}
            )


def _values(wish: MilestoneWish) -> dict[str, Any]:
    return {
        "week": wish.week,
        "line_key": wish.line_key,
        "share_fraction": wish.share_fraction,
        "reached_on": wish.reached_on,
    }


def _checked(wishes: Sequence[MilestoneWish]) -> list[MilestoneWish]:
    """The milestones as they are stored, by week and name."""
    if len(wishes) > MOST_MILESTONES:
        raise PlanError(_("A plan has at most %(limit)s milestones.") % {"limit": MOST_MILESTONES})
    found: dict[str, MilestoneWish] = {}
    for wish in wishes:
        one = _checked_one(wish)
        if one.name in found:
            raise PlanError(_("Two milestones are called %(name)s.") % {"name": one.name})
        found[one.name] = one
    for key in {one.line_key for one in found.values()}:
        shares = (one.share_fraction for one in found.values() if one.line_key == key)
        if exact_sum(share for share in shares if share is not None) > 1:
            raise PlanError(
                _("The shares of the line %(line)s sum to more than the whole.") % {"line": key}
            )
    return sorted(found.values(), key=lambda one: (one.week, one.name))


def _checked_one(wish: MilestoneWish) -> MilestoneWish:
    name = wish.name.strip()
    if not name or len(name) > 120:
        raise PlanError(_("A milestone has a name of at most 120 letters."))
    if not 0 <= wish.week <= LAST_WEEK:
        raise PlanError(
            _("%(name)s: the week is from 0 to %(last)s.") % {"name": name, "last": LAST_WEEK}
        )
    _check_share(name, wish)
    return replace(wish, name=name)


def _check_share(name: str, wish: MilestoneWish) -> None:
    share = wish.share_fraction
    if share is None:
        return
    if not wish.line_key:
        raise PlanError(_("%(name)s: a share is of a line; choose one.") % {"name": name})
    if not share.is_finite() or not 0 < share <= 1 or share != round(share, _SHARE_DECIMALS):
        raise PlanError(_("%(name)s: a share is above 0 and at most 100.") % {"name": name})
