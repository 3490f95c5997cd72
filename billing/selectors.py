"""Reads of charges: costs by day and group, what is published, deliveries, rules."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Count, F, Func, Max, Min, Q, QuerySet, Sum, TextField, Value

from billing.lake_costs import LakeQuestion, costs_from_lake
from billing.models import (
    AllocationRule,
    BillingPeriod,
    ChargeSlice,
    DailyCost,
    Delivery,
    PeriodVersion,
    RuleSet,
    Source,
)
from billing.records import (
    Basis,
    CostRow,
    CostTable,
    CurrencyTotal,
    DailyCostRow,
    PeriodStatus,
    RuleCondition,
    RuleRecord,
    RuleTarget,
)
from formulae.units import EXACT
from projects.models import Project

TAG_PREFIX = "tag:"
GROUP_COLUMNS = (
    "provider_name",
    "service_name",
    "service_category",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_accelerator",
    "project",
    "day",
    "month",
)


class UnknownGroupError(ValueError):
    """Costs cannot be grouped by this; the message says by what they can."""


def newest_rule_set(organisation_id: UUID, as_of: datetime | None = None) -> RuleSet | None:
    """The allocation rules in force, now or at an instant."""
    rule_sets = RuleSet.objects.filter(organisation_id=organisation_id)
    if as_of is not None:
        rule_sets = rule_sets.filter(created_at__lte=as_of)
    return rule_sets.order_by("-number").first()


def rules_of(rule_set: RuleSet | None) -> tuple[RuleRecord, ...]:
    """The rules of a set, first wins; none without a set."""
    if rule_set is None:
        return ()
    return tuple(
        RuleRecord(
            position=rule.position,
            name=rule.name,
            conditions=tuple(RuleCondition(**one) for one in rule.conditions),
            targets=tuple(
                RuleTarget(
                    weight=target.weight,
                    project_id=target.project_id,
                    run_key=target.run_key,
                    team=target.team,
                    plan_line_key=target.plan_line_key,
                )
                for target in rule.targets.all()
            ),
        )
        for rule in rule_set.rules.prefetch_related("targets").order_by("position")
    )


def allocation_rules(organisation_id: UUID) -> QuerySet[AllocationRule]:
    """The rules in force with their projects, first wins."""
    rule_set = newest_rule_set(organisation_id)
    return (
        AllocationRule.objects.filter(rule_set=rule_set)
        .prefetch_related("targets__project")
        .order_by("position")
    )


def published_versions(
    organisation_id: UUID, as_of: datetime | None = None
) -> QuerySet[PeriodVersion]:
    """The version of each period that readers see now, or saw at an instant."""
    versions = PeriodVersion.objects.filter(organisation_id=organisation_id)
    if as_of is None:
        return versions.filter(superseded_at=None)
    return versions.filter(known_at__lte=as_of).filter(
        Q(superseded_at=None) | Q(superseded_at__gt=as_of)
    )


def _paths(versions: QuerySet[PeriodVersion]) -> tuple[str, ...]:
    slices = ChargeSlice.objects.filter(versions__in=versions).order_by("path")
    return tuple(slices.values_list("path", flat=True).distinct())


def _changed_since(organisation_id: UUID, as_of: datetime) -> bool:
    """Whether charges or rules changed after the instant: then the roll-up is too new."""
    versions = PeriodVersion.objects.filter(organisation_id=organisation_id, known_at__gt=as_of)
    rules = RuleSet.objects.filter(organisation_id=organisation_id, created_at__gt=as_of)
    return versions.exists() or rules.exists()


def cost_by_day(  # noqa: PLR0913  # the contract with the rooms above
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    basis: str,
    start_on: date,
    end_on: date,
    as_of: datetime | None = None,
) -> list[DailyCostRow]:
    """Costs by day and class in [start_on, end_on), of a project or of everything.

    With `as_of`, what was known at that instant, by the rules of that instant.
    """
    table = _costs(
        organisation_id,
        _Question(
            group_by=("day", "x_cost_class"),
            basis=Basis(basis),
            start_on=start_on,
            end_on=end_on,
            project_id=project_id,
            as_of=as_of,
        ),
    )
    return [
        DailyCostRow(
            day=date.fromisoformat(row.group[0] or ""),
            x_cost_class=row.group[1] or "other",
            currency=row.currency,
            cost=row.cost,
            accelerator_h=row.accelerator_h,
        )
        for row in table
    ]


def costs_grouped(  # noqa: PLR0913  # the contract with the rooms above
    organisation_id: UUID,
    *,
    group_by: Sequence[str],
    basis: str,
    start_on: date | None = None,
    end_on: date | None = None,
    project_id: UUID | None = None,
    allowed_project_ids: Collection[UUID] | None = None,
    include_unallocated: bool = False,
) -> CostTable:
    """Costs by the given columns in [start_on, end_on).

    Args:
        organisation_id: whose.
        group_by: any of GROUP_COLUMNS, or tag:KEY.
        basis: billed, effective, list or contracted.
        start_on: first day; None = from the beginning.
        end_on: first day that is out; None = to the end.
        project_id: only this project.
        allowed_project_ids: only these projects; None = all.
        include_unallocated: also what no rule gives to a project.

    Raises:
        UnknownGroupError: a column of `group_by` cannot be grouped by.
        ValueError: an unknown basis.
    """
    for name in group_by:
        if name not in GROUP_COLUMNS and not (name.startswith(TAG_PREFIX) and name[4:]):
            known = ", ".join((*GROUP_COLUMNS, "tag:KEY"))
            raise UnknownGroupError(f"costs cannot be grouped by {name!r}; choose from {known}")
    question = _Question(
        group_by=tuple(group_by),
        basis=Basis(basis),
        start_on=start_on,
        end_on=end_on,
        project_id=project_id,
        allowed=None if allowed_project_ids is None else tuple(allowed_project_ids),
        include_unallocated=include_unallocated or project_id is not None,
    )
    rows = _costs(organisation_id, question)
    first, last = _bounds(organisation_id, question)
    return CostTable(
        group_by=tuple(group_by),
        basis=question.basis,
        start_on=start_on or first,
        end_on=end_on or last,
        rows=tuple(rows),
        total=total_of(rows),
    )


def unallocated_cost(
    organisation_id: UUID,
    *,
    basis: str,
    start_on: date | None = None,
    end_on: date | None = None,
) -> tuple[CurrencyTotal, ...]:
    """What no rule gives to a project, by currency."""
    question = _Question(
        group_by=("project",),
        basis=Basis(basis),
        start_on=start_on,
        end_on=end_on,
        allowed=(),
    )
    return total_of(_costs(organisation_id, question))


def total_of(rows: Sequence[CostRow]) -> tuple[CurrencyTotal, ...]:
    """Exact totals, one for each currency; None where a part is missing."""
    sums: dict[str, Decimal | None] = {}
    for row in rows:
        known = sums.get(row.currency, Decimal(0))
        if known is None or row.cost is None:
            sums[row.currency] = None
        else:
            sums[row.currency] = EXACT.add(known, row.cost)
    return tuple(CurrencyTotal(currency=name, cost=sums[name]) for name in sorted(sums))


def billed_through(organisation_id: UUID, project_id: UUID | None) -> date | None:
    """The last day with charges; None when there are none."""
    costs = DailyCost.objects.filter(organisation_id=organisation_id)
    if project_id is not None:
        costs = costs.filter(project_id=project_id)
    last: date | None = costs.aggregate(last=Max("day"))["last"]
    return last


def _bounds(organisation_id: UUID, question: "_Question") -> tuple[date | None, date | None]:
    """The first day with charges that the question is about, and the day after the last."""
    costs = _of_whom(DailyCost.objects.filter(organisation_id=organisation_id), question)
    found = costs.aggregate(first=Min("day"), last=Max("day"))
    last: date | None = found["last"]
    return found["first"], None if last is None else date.fromordinal(last.toordinal() + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Which costs, and by what."""

    group_by: tuple[str, ...]
    basis: Basis
    start_on: date | None
    end_on: date | None
    project_id: UUID | None = None
    allowed: tuple[UUID, ...] | None = None
    include_unallocated: bool = True
    as_of: datetime | None = None


def _costs(organisation_id: UUID, question: _Question) -> list[CostRow]:
    """The answer from the roll-up, or from the lake where the roll-up does not hold it."""
    needs_lake = any(name.startswith(TAG_PREFIX) for name in question.group_by)
    if question.as_of is not None:
        needs_lake = needs_lake or _changed_since(organisation_id, question.as_of)
    if not needs_lake:
        return _from_roll_up(organisation_id, question)
    rows = costs_from_lake(
        _paths(published_versions(organisation_id, question.as_of)),
        rules_of(newest_rule_set(organisation_id, question.as_of)),
        LakeQuestion(
            group_by=question.group_by,
            basis=question.basis,
            start_on=question.start_on,
            end_on=question.end_on,
            project_id=question.project_id,
            allowed=question.allowed,
            include_unallocated=question.include_unallocated,
        ),
    )
    return _with_slugs(question.group_by, rows)


def _from_roll_up(organisation_id: UUID, question: _Question) -> list[CostRow]:
    """One statement, so that all rows belong to one state of the books."""
    costs = DailyCost.objects.filter(organisation_id=organisation_id)
    if question.start_on is not None:
        costs = costs.filter(day__gte=question.start_on)
    if question.end_on is not None:
        costs = costs.filter(day__lt=question.end_on)
    costs = _of_whom(costs, question)
    columns = {f"group_{index}": _column(name) for index, name in enumerate(question.group_by)}
    found = (
        costs.annotate(**columns)
        .values(*columns, "billing_currency")
        .annotate(
            cost=Sum(question.basis.column),
            known=Count(question.basis.column),
            groups=Count("pk"),
            hours=Sum("accelerator_h"),
        )
        .order_by(*columns, "billing_currency")
    )
    return [
        CostRow(
            group=tuple(None if row[name] is None else str(row[name]) for name in columns),
            currency=row["billing_currency"],
            cost=row["cost"] if row["known"] == row["groups"] else None,
            accelerator_h=row["hours"],
        )
        for row in found
    ]


def _of_whom(costs: QuerySet[DailyCost], question: _Question) -> QuerySet[DailyCost]:
    """Those of the projects that the question is about, and nobody's where it asks for them."""
    if question.project_id is not None:
        return costs.filter(project_id=question.project_id)
    if question.allowed is not None:
        nobodys = Q(project__isnull=True) if question.include_unallocated else Q(pk__in=[])
        return costs.filter(Q(project_id__in=question.allowed) | nobodys)
    return costs if question.include_unallocated else costs.filter(project__isnull=False)


def _column(name: str) -> F | Func:
    if name == "project":
        return F("project__slug")
    if name == "month":
        return Func(F("day"), Value("YYYY-MM"), function="to_char", output_field=TextField())
    return F(name)


def _with_slugs(group_by: Sequence[str], rows: Sequence[CostRow]) -> list[CostRow]:
    """The rows with projects named by slug instead of id."""
    if "project" not in group_by:
        return list(rows)
    index = list(group_by).index("project")
    ids = {found for row in rows if (found := row.group[index]) is not None}
    slugs = {
        str(pk): slug for pk, slug in Project.objects.filter(pk__in=ids).values_list("pk", "slug")
    }
    return [
        CostRow(
            group=(*row.group[:index], slugs.get(row.group[index] or ""), *row.group[index + 1 :]),
            currency=row.currency,
            cost=row.cost,
            accelerator_h=row.accelerator_h,
        )
        for row in rows
    ]


def deliveries(organisation_id: UUID) -> QuerySet[Delivery]:
    """Every delivery, newest first, with its source and files."""
    return (
        Delivery.objects.filter(organisation_id=organisation_id)
        .select_related("source")
        .prefetch_related("files")
        .order_by("-received_at")
    )


def delivery_by_id(organisation_id: UUID, delivery_id: UUID) -> Delivery | None:
    """One delivery."""
    return deliveries(organisation_id).filter(pk=delivery_id).first()


def sources(organisation_id: UUID) -> QuerySet[Source]:
    """Every source with its last delivery's time."""
    return (
        Source.objects.filter(organisation_id=organisation_id)
        .annotate(last_received_at=Max("deliveries__received_at"), count=Count("deliveries"))
        .order_by("name")
    )


def period_statuses(organisation_id: UUID) -> list[PeriodStatus]:
    """What is published of each month of each source, newest month first."""
    periods = BillingPeriod.objects.filter(
        organisation_id=organisation_id, published_version__isnull=False
    ).select_related("source", "published_version")
    return [
        PeriodStatus(
            source=period.source.name,
            period=str(period),
            rows=period.published_version.rows,
            known_at=period.published_version.known_at,
        )
        for period in periods.order_by("-start", "source__name")
        if period.published_version is not None
    ]
