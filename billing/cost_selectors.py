"""Reads of costs: any question, from the roll-up where it holds the answer, else from the lake."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    Max,
    Min,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import TruncMonth

from billing.allocation_selectors import newest_rule_set, rules_of
from billing.cost_questions import CostQuestion, Filter, Scope, make_question
from billing.cost_records import MEASURES, CostRow, CostTable, CurrencyTotal, merged, total_of
from billing.dataset_choice import chosen_versions, cost_from, knows_cost, measure_from
from billing.lake_costs import Book, Shelf, costs_from_lake
from billing.models import BillingPeriod, DailyCost, PeriodVersion
from billing.published_selectors import changed_since, published_versions, slice_paths
from billing.records import Basis, DailyCostRow, Dataset
from projects.models import Project

MAX_POSITION = 2**31


def cost_table(organisation_id: UUID, question: CostQuestion) -> CostTable:
    """The answer to any question of costs; its total is the exact sum of its rows."""
    rows = _costs(organisation_id, question)
    first, last = _bounds(organisation_id, question.scope)
    return CostTable(
        group_by=question.group_by,
        basis=question.basis,
        start_on=question.start_on or first,
        end_on=question.end_on or last,
        rows=tuple(rows),
        total=total_of(rows),
    )


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
    filters: Sequence[str] = (),
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
        filters: `column=value` or `column!=value`; several values of a column are "or".

    Raises:
        QuestionError: a column, a filter or the basis is unknown.
    """
    allowed = None if allowed_project_ids is None else tuple(allowed_project_ids)
    question = make_question(
        group_by=group_by,
        basis=basis,
        days=(start_on, end_on),
        filters=filters,
        scope=Scope(
            project_id=project_id, allowed=allowed, include_unallocated=include_unallocated
        ),
    )
    return cost_table(organisation_id, question)


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
    question = CostQuestion(
        group_by=("day", "x_cost_class"),
        basis=Basis(basis),
        start_on=start_on,
        end_on=end_on,
        scope=Scope(project_id=project_id),
        as_of=as_of,
    )
    return [
        DailyCostRow(
            day=date.fromisoformat(row.group[0] or ""),
            x_cost_class=row.group[1] or "other",
            currency=row.currency,
            cost=row.cost,
            accelerator_h=row.accelerator_h,
        )
        for row in _costs(organisation_id, question)
    ]


def unallocated_cost(
    organisation_id: UUID,
    *,
    basis: str,
    start_on: date | None = None,
    end_on: date | None = None,
) -> tuple[CurrencyTotal, ...]:
    """What no rule gives to a project, by currency."""
    question = CostQuestion(
        group_by=("project",),
        basis=Basis(basis),
        start_on=start_on,
        end_on=end_on,
        scope=Scope(allowed=()),
    )
    return total_of(_costs(organisation_id, question))


def billed_through(organisation_id: UUID, project_id: UUID | None) -> date | None:
    """The last day with charges; None when there are none."""
    costs = DailyCost.objects.filter(organisation_id=organisation_id)
    if project_id is not None:
        costs = costs.filter(project_id=project_id)
    last: date | None = costs.aggregate(last=Max("day"))["last"]
    return last


def shelf_of(organisation_id: UUID, question: CostQuestion) -> Shelf:
    """The books that answer a question, with the rules and names of its moment."""
    slugs = Project.objects.filter(organisation_id=organisation_id).values_list("pk", "slug")
    return Shelf(
        books=_books(published_versions(organisation_id, question.as_of), question.basis),
        rules=rules_of(newest_rule_set(organisation_id, question.as_of)),
        slugs={str(pk): slug for pk, slug in slugs},
    )


def _books(published: QuerySet[PeriodVersion], basis: Basis) -> tuple[Book, ...]:
    """The versions that are read for the cost of a basis, for measures, or for both."""
    chosen = {
        dataset: frozenset(chosen_versions(published, dataset).values_list("pk", flat=True))
        for dataset in Dataset
    }
    for_cost = chosen[cost_from(basis)]
    paths = slice_paths(published)
    versions = published.select_related("period__source")
    return tuple(
        Book(
            source=version.period.source.name,
            paths=paths[version.pk],
            for_cost=version.pk in for_cost,
            measures=frozenset(
                name for name in MEASURES if version.pk in chosen[measure_from(name)]
            ),
            knows_cost=knows_cost(version.period.dataset, basis),
        )
        for version in versions.order_by("period__start", "pk")
        if version.pk in paths and any(version.pk in some for some in chosen.values())
    )


def costs_in_scope(organisation_id: UUID, scope: Scope) -> QuerySet[DailyCost]:
    """The daily costs that a scope lets see."""
    return _of_whom(DailyCost.objects.filter(organisation_id=organisation_id), scope)


def _bounds(organisation_id: UUID, scope: Scope) -> tuple[date | None, date | None]:
    """The first day with charges in this scope, and the day after the last."""
    costs = costs_in_scope(organisation_id, scope)
    found = costs.aggregate(first=Min("day"), last=Max("day"))
    last: date | None = found["last"]
    return found["first"], None if last is None else last + timedelta(days=1)


def _costs(organisation_id: UUID, question: CostQuestion) -> list[CostRow]:
    """The answer from the roll-up, or from the lake where the roll-up does not hold it."""
    is_now = question.as_of is None or not changed_since(organisation_id, question.as_of)
    if is_now and not question.needs_lake:
        return _from_roll_up(organisation_id, question)
    if is_now:
        question = replace(question, as_of=None)
    return costs_from_lake(shelf_of(organisation_id, question), question)


def _from_roll_up(organisation_id: UUID, question: CostQuestion) -> list[CostRow]:
    """One statement, so that all rows belong to one state of the books."""
    costs = DailyCost.objects.filter(organisation_id=organisation_id)
    if question.start_on is not None:
        costs = costs.filter(day__gte=question.start_on)
    if question.end_on is not None:
        costs = costs.filter(day__lt=question.end_on)
    costs = _of_whom(costs, question.scope)
    for one in question.filters:
        costs = costs.filter(_passes(one))
    columns = {f"group_{index}": _column(name) for index, name in enumerate(question.group_by)}
    grouped = costs.annotate(**columns).values(*columns, "billing_currency").order_by()
    has_second = _has_second_books(organisation_id)
    found = list(grouped.annotate(**_sums(organisation_id, question.basis, has_second=has_second)))
    if not has_second and _has_second_books(organisation_id):  # it came in between
        found = list(grouped.annotate(**_sums(organisation_id, question.basis, has_second=True)))
    return merged(_row(row, question.group_by) for row in found if _says_something(row))


def _sums(organisation_id: UUID, basis: Basis, *, has_second: bool) -> dict[str, Any]:
    """The sums of a group: cost and rows from one book of each month, each measure from one."""
    for_cost, known = Q(), Q()
    read = dict.fromkeys(Dataset, Q())
    if has_second:
        published = published_versions(organisation_id)
        read = {one: Q(version__in=chosen_versions(published, one)) for one in Dataset}
        for_cost = read[cost_from(basis)]
        stated = [dataset for dataset in Dataset if knows_cost(dataset, basis)]
        known = for_cost & Q(dataset__in=stated)
    return {
        "cost": Sum(basis.column, filter=known or None),
        "known": Count(basis.column, filter=known or None),
        "groups": Count("pk", filter=for_cost or None),
        "sum_rows": Sum("rows", filter=for_cost or None),
        **{f"sum_{name}": Sum(name, filter=read[measure_from(name)] or None) for name in MEASURES},
    }


def _has_second_books(organisation_id: UUID) -> bool:
    """Whether any month was delivered amortised, perhaps beside the billed one."""
    return BillingPeriod.objects.filter(
        organisation_id=organisation_id,
        dataset=Dataset.AMORTISED,
        published_version__isnull=False,
    ).exists()


def _says_something(row: dict[str, Any]) -> bool:
    """Whether a group has charges with a cost, or measures of a book that is read for these."""
    return row["groups"] or any(row[f"sum_{name}"] is not None for name in MEASURES)


def _row(row: dict[str, Any], group_by: Sequence[str]) -> CostRow:
    return CostRow(
        group=tuple(_text(name, row[f"group_{index}"]) for index, name in enumerate(group_by)),
        currency=row["billing_currency"],
        cost=(row["cost"] or Decimal(0)) if row["known"] == row["groups"] else None,
        rows=row["sum_rows"] or 0,
        **{name: row[f"sum_{name}"] for name in MEASURES},
    )


def _text(name: str, value: Any) -> str | None:
    """A group's value as questions write it; dates are grouped as they are, which is cheaper."""
    if value is None:
        return None
    return f"{value:%Y-%m}" if name == "month" else str(value) or None


def _of_whom(costs: QuerySet[DailyCost], scope: Scope) -> QuerySet[DailyCost]:
    """Those of the projects that the scope holds, and nobody's where it holds them."""
    if scope.project_id is not None:
        return costs.filter(project_id=scope.project_id)
    if scope.allowed is not None:
        nobodys = Q(project__isnull=True) if scope.include_unallocated else Q(pk__in=[])
        return costs.filter(Q(project_id__in=scope.allowed) | nobodys)
    return costs if scope.include_unallocated else costs.filter(project__isnull=False)


def _passes(wanted: Filter) -> Q:
    """The condition of a filter on the roll-up's columns."""
    known = [value for value in wanted.values if value is not None]
    passes = _any_of(wanted.column, known)
    if None in wanted.values:
        passes |= _missing(wanted.column)
    return ~passes if wanted.is_not else passes


def _any_of(name: str, values: Sequence[str]) -> Q:
    nothing = Q(pk__in=[])
    if name == "project":
        return Q(project__slug__in=values)
    if name == "rule_position":
        numbers = [int(text) for text in values if text.isascii() and text.isdecimal()]
        return Q(rule_position__in=[number for number in numbers if number < MAX_POSITION])
    if name == "day":
        return Q(day__in=[day for text in values if (day := _day(text)) is not None])
    if name == "month":
        months = [day for text in values if (day := _day(f"{text}-01")) is not None]
        for first in months:
            nothing |= Q(day__year=first.year, day__month=first.month)
        return nothing
    if name == "x_estimated":
        return Q(is_estimated__in=[text == "true" for text in values if text in ("true", "false")])
    return Q(**{f"{name}__in": values})


def _missing(name: str) -> Q:
    if name in ("day", "month", "x_estimated"):
        return Q(pk__in=[])
    if name in ("project", "rule_position"):
        return Q(**{f"{name}__isnull": True})
    return Q(**{f"{name}__isnull": True}) | Q(**{name: ""})


def _day(text: str) -> date | None:
    """The day of this text in its one spelling; None where it is none: nothing happened then."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.isoformat() == text else None


def _column(name: str) -> Any:
    if name == "project":
        return F("project__slug")
    if name == "month":
        return TruncMonth("day")
    if name == "x_estimated":
        return Case(
            When(is_estimated=True, then=Value("true")),
            default=Value("false"),
            output_field=CharField(),
        )
    return F(name)
