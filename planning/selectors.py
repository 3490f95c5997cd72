"""Reads of intent: estimates, plans, and the burn-down with the rooms below."""

from datetime import date, datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from billing.selectors import cost_by_day
from carbon.selectors import emissions_by_day, emissions_summary, energy_by_day
from planning.accruals import accruals_of
from planning.burndown import Actuals, Question, build_burndown
from planning.differences import FrozenEstimate, PlanDifferences, plan_differences
from planning.earned import spent_by_line
from planning.forecast_records import EstimateBelief
from planning.models import Estimate, PlanVersion
from planning.names import line_name
from planning.records import Burndown, LineBase, PlanLineRecord, PlanRecord
from planning.work_done import work_done
from projects.access import Actor, projects_for
from projects.models import Project
from projects.records import OrganisationRole

BASES = ("billed", "effective", "list", "contracted")
FIRST_DAY = date(2000, 1, 1)
LAST_DAY = date.max - timedelta(days=1)


def estimates_of(organisation_id: UUID) -> QuerySet[Estimate]:
    """All estimates of an organisation, newest first."""
    return Estimate.objects.filter(organisation_id=organisation_id).select_related("project")


def estimate_by_id(organisation_id: UUID, estimate_id: UUID) -> Estimate | None:
    """One estimate of this organisation, or None."""
    return estimates_of(organisation_id).filter(pk=estimate_id).first()


def may_see_estimate(actor: Actor, estimate: Estimate) -> bool:
    """Its author, whoever sees its project, and organisation-wide roles may."""
    if estimate.project is not None:
        return projects_for(actor).filter(pk=estimate.project.pk).exists()
    if actor.is_token:
        return actor.token_project_id is None and not actor.is_of_one_site_or_source
    if actor.organisation_role != OrganisationRole.MEMBER:
        return True
    return estimate.created_by_user_id == actor.user_id


def plan_record(version: PlanVersion) -> PlanRecord:
    """A version with its lines, as other rooms may hold it."""
    return PlanRecord(
        version_id=version.pk,
        number=version.number,
        is_approved=version.state == PlanVersion.State.APPROVED,
        approved_at=version.approved_at,
        approved_by=version.approved_by,
        currency=version.currency,
        main_run_cost=version.main_run_cost,
        main_run_starts_on=version.main_run_starts_on,
        main_run_ends_on=version.main_run_ends_on,
        main_run_facility_energy_kwh=version.main_run_facility_energy_kwh,
        main_run_kgco2e=version.main_run_kgco2e,
        estimate_id=version.estimate_id,
        reason=version.reason,
        level=version.level,
        lines=tuple(
            PlanLineRecord(
                key=line.key,
                name=line_name(line.key, own_name=line.name),
                base=LineBase(line.base),
                fraction=line.fraction,
                amount=line.amount,
                starts_on=line.starts_on,
                ends_on=line.ends_on,
                in_programme=line.in_programme,
                facility_energy_kwh=line.facility_energy_kwh,
                kgco2e=line.kgco2e,
            )
            for line in version.lines.all()
        ),
    )


def plan_versions(project: Project) -> list[PlanRecord]:
    """Every version of a project's plan, newest first."""
    versions = PlanVersion.objects.filter(plan__project=project).prefetch_related("lines")
    return [plan_record(version) for version in versions]


def version_differences(project: Project) -> dict[int, PlanDifferences]:
    """By version number, what differs from the version before: of a draft, from the baseline.

    An approved version replaced the one approved before it; the first one replaced nothing and is
    not among them.
    """
    versions = list(
        PlanVersion.objects.filter(plan__project=project)
        .select_related("estimate")
        .prefetch_related("lines")
    )
    approved = sorted(
        (version for version in versions if version.approved_at is not None),
        key=lambda version: (version.approved_at, version.number),
    )
    before = dict(zip([version.pk for version in approved[1:]], approved, strict=False))
    if approved:
        drafts = (version for version in versions if version.approved_at is None)
        before |= {version.pk: approved[-1] for version in drafts}
    return {
        version.number: _differences(before[version.pk], version)
        for version in versions
        if version.pk in before
    }


def _differences(before: PlanVersion, after: PlanVersion) -> PlanDifferences:
    return plan_differences(
        plan_record(before),
        plan_record(after),
        before_estimate=_frozen(before.estimate),
        after_estimate=_frozen(after.estimate),
    )


def _frozen(estimate: Estimate) -> FrozenEstimate:
    return FrozenEstimate(question=estimate.spec, answer=estimate.result)


def baseline_of(project: Project, *, as_of: datetime) -> PlanRecord | None:
    """The version that was in force at `as_of`: the last one approved by then."""
    version = (
        PlanVersion.objects.filter(
            plan__project=project, state=PlanVersion.State.APPROVED, approved_at__lte=as_of
        )
        .order_by("-approved_at", "-number")
        .prefetch_related("lines")
        .first()
    )
    return plan_record(version) if version else None


def belief_of(plan: PlanRecord) -> EstimateBelief | None:
    """What the estimate behind a plan says of the days of its main run; None where it cannot."""
    result = Estimate.objects.filter(pk=plan.estimate_id).values_list("result", flat=True).first()
    days = (result or {}).get("days") or {}
    if not all(days.get(level) for level in ("p10", "p50", "p90")):
        return None
    return EstimateBelief(days_p10=days["p10"], days_p50=days["p50"], days_p90=days["p90"])


def burndown_of(project: Project, *, as_of: datetime, basis: str = "effective") -> Burndown:
    """A project's burn-down: what was known at `as_of`, up to that day.

    Args:
        project: as `projects.access.project_for` gave it.
        as_of: aware instant; facts that arrived later are left out.
        basis: billed, effective, list or contracted.

    Raises:
        ValueError: an unknown basis.
    """
    if basis not in BASES:
        raise ValueError(f"{basis!r} is no cost basis; write one of {', '.join(BASES)}")
    plan = baseline_of(project, as_of=as_of)
    end_on = min(as_of.date(), LAST_DAY) + timedelta(days=1)
    organisation_id, project_id = project.organisation_id, project.pk
    currency = plan.currency if plan else project.currency
    actuals = Actuals(
        costs=cost_by_day(
            organisation_id,
            project_id,
            basis=basis,
            start_on=FIRST_DAY,
            end_on=end_on,
            as_of=as_of,
        ),
        energy=energy_by_day(organisation_id, project_id, end_on=end_on, as_of=as_of),
        emissions=emissions_by_day(organisation_id, project_id, end_on=end_on, as_of=as_of),
        emission_summary=emissions_summary(organisation_id, project_id, end_on=end_on, as_of=as_of),
        accruals=accruals_of(
            project, as_of=min(as_of, timezone.now()), currency=currency, basis=basis
        ),
        work=work_done(project, plan, as_of=as_of),
        cost_by_line=spent_by_line(project, plan=plan, basis=basis, end_on=end_on, as_of=as_of)
        if plan
        else {},
        belief=belief_of(plan) if plan else None,
    )
    question = Question(as_of=as_of, currency=currency, basis=basis)
    return build_burndown(question, plan, actuals)
