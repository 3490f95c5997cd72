"""The way from an empty project to its burn-down: what is done, what comes next, where."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from billing.selectors import billed_through
from planning.records import Burndown
from planning.selectors import estimates_of, plan_versions
from projects.models import Project
from runs.selectors import has_devices_at_work, sites


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """One thing to do: what it is for, where it is done, whether it is."""

    name: str
    words: str
    href: str
    is_done: bool
    is_optional: bool = False


def first_steps(project: Project, burndown: Burndown) -> Sequence[FirstStep]:
    """The steps of a project that lacks one it needs; none once it has all of those."""
    organisation_id = project.organisation_id
    is_estimated = bool(plan_versions(project)) or (
        estimates_of(organisation_id).filter(project=project).exists()
    )
    has_bill = billed_through(organisation_id, None) is not None
    has_devices = has_devices_at_work(project.pk)
    steps = (
        *_plan_steps(project, burndown, is_estimated=is_estimated),
        *_bill_steps(burndown, has_bill=has_bill),
        *_power_steps(project, burndown, has_devices=has_devices),
    )
    return steps if any(not one.is_done and not one.is_optional for one in steps) else ()


def _plan_steps(
    project: Project, burndown: Burndown, *, is_estimated: bool
) -> tuple[FirstStep, ...]:
    """From an estimate to an approved plan."""
    return (
        FirstStep(
            name=_("Estimate the main run"),
            words=_("from a config.json, tokens and hardware to days, money, energy and carbon"),
            href=reverse("estimate_new"),
            is_done=is_estimated,
        ),
        FirstStep(
            name=_("Approve a plan"),
            words=_("draft it from the estimate; approved, it is what actuals are measured by"),
            href=reverse("plan", args=[project.slug]),
            is_done=burndown.plan is not None,
        ),
    )


def _bill_steps(burndown: Burndown, *, has_bill: bool) -> tuple[FirstStep, ...]:
    """From a bill to the project's charges."""
    return (
        FirstStep(
            name=_("Import a bill"),
            words=_("FOCUS, AWS, Google, Azure or any CSV; or connect a source that pulls them"),
            href=reverse("import_upload"),
            is_done=has_bill,
        ),
        FirstStep(
            name=_("Say which charges are this project's"),
            words=_("a rule by account, tag or resource gives them to it"),
            href=reverse("allocation"),
            is_done=burndown.billed_through is not None,
        ),
    )


def _power_steps(
    project: Project, burndown: Burndown, *, has_devices: bool
) -> tuple[FirstStep, ...]:
    """From power to devices at work and a run that reports."""
    return (
        FirstStep(
            name=_("Add a site and its power"),
            words=_("the node agent, Prometheus or a CSV; the site says region, hosts and PUE"),
            href=reverse("sites") if sites(project.organisation_id) else reverse("site_new"),
            is_done=burndown.metered_through is not None or has_devices,
        ),
        FirstStep(
            name=_("Say which devices work for it"),
            words=_("on the site's page; the agent does it where jobs name the run"),
            href=reverse("sites"),
            is_done=has_devices,
        ),
        FirstStep(
            name=_("Let a run report its progress"),
            words=_("from its log, three lines of Python or Prometheus: earned value and causes"),
            href=reverse("runs", args=[project.slug]),
            is_done=bool(burndown.work.tokens_by_day),
            is_optional=True,
        ),
    )
