"""Milestones on the page of a plan: what its section shows, and the form that changes them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from planning.line_changes import PlanError
from planning.milestone_changes import (
    MilestoneWish,
    default_milestones,
    set_milestones,
    wishes_of,
)
from planning.milestone_forms import MilestoneForm, initial_of, lines_of
from planning.milestones import WEEK, milestones_of
from planning.plan_page import first_approval_on
from planning.records import PlanRecord
from planning.selectors import baseline_of, plan_versions
from projects.access import Role, actor_of, project_for
from projects.models import Project

NEW = "new"


def milestones_context(
    project: Project, versions: list[PlanRecord], plan: PlanRecord | None, *, today: date
) -> dict[str, Any]:
    """The section of milestones: rows with their forms, and whether the budget came after W0.

    Args:
        project: whose.
        versions: of its plan, newest first.
        plan: the version by which weeks count; None before the first draft.
        today: the UTC day.
    """
    if plan is None:
        return {}
    wishes = wishes_of(project)
    lines = lines_of(plan, wishes)
    found = milestones_of(project, starts_on=plan.starts_on)
    names = dict(lines)
    forms = _forms(wishes, lines, None)
    approved_on = first_approval_on(versions) or today
    return {
        "rows": [
            {
                "milestone": one,
                "line": names.get(one.line_key, ""),
                "is_late": one.is_late(today),
                "form": forms[place],
            }
            for place, one in enumerate(found)
        ],
        "new": MilestoneForm(prefix=NEW, lines=lines),
        "has_defaults": not wishes,
        "starts_on": plan.starts_on,
        "budget_late_weeks": max((approved_on - plan.starts_on).days // WEEK.days, 0),
    }


def _forms(
    wishes: list[MilestoneWish], lines: list[tuple[str, str]], data: Mapping[str, Any] | None
) -> list[MilestoneForm]:
    return [
        MilestoneForm(data, prefix=f"m{place}", initial=initial_of(wish), lines=lines)
        for place, wish in enumerate(wishes)
    ]


@require_POST
def plan_milestones(request: HttpRequest, slug: str) -> HttpResponse:
    """Change the milestones: save the rows, add one, remove one, or take the chapter's."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.ANALYST)
    wanted, _colon, of = request.POST.get("do", "save").partition(":")
    known = wishes_of(project)
    try:
        if wanted == "defaults":
            wishes = [*known, *(one for one in default_milestones() if one not in known)]
        else:
            wishes = _typed(request, project, known, removed=of if wanted == "remove" else "")
        is_new = set_milestones(actor, project, wishes)
    except PlanError as error:
        messages.error(request, str(error))
    else:
        said = _("The milestones are saved.") if is_new else _("Nothing changed.")
        messages.success(request, said)
    return redirect(f"{reverse('plan', args=[slug])}#milestones")


def _typed(
    request: HttpRequest, project: Project, known: list[MilestoneWish], *, removed: str
) -> list[MilestoneWish]:
    """The milestones as they were typed, without the removed one, with the new one.

    Raises:
        PlanError: a field cannot be; the message names the milestone and the field.
    """
    baseline = baseline_of(project, as_of=datetime.now(UTC))
    newest = next(iter(plan_versions(project)), None)
    lines = lines_of(baseline or newest, known)
    forms = [
        (wish.name, form)
        for wish, form in zip(known, _forms(known, lines, request.POST), strict=True)
        if wish.name != removed
    ]
    if request.POST.get(f"{NEW}-name", "").strip():
        forms.append((_("New milestone"), MilestoneForm(request.POST, prefix=NEW, lines=lines)))
    for name, form in forms:
        for field, errors in form.errors.items():
            label = form.fields[field].label if field in form.fields else ""
            raise PlanError(f"{name}, {label}: {errors[0]}")
    return [form.wish() for _name, form in forms]
