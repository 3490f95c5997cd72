"""Reads of findings: the groups of charges that the rules look at, in one month."""

from collections.abc import Sequence
from datetime import date, timedelta
from uuid import UUID

from django.db.models import Sum

from billing.cost_selectors import costs_grouped
from billing.dataset_choice import chosen_versions, cost_from
from billing.finding_records import SpendFinding, SpendLine
from billing.findings import findings_of
from billing.models import DailyCost
from billing.published_selectors import published_versions
from billing.records import Basis

_LINE_KEYS = ("x_cost_class", "x_usage_type", "x_accelerator", "project")
_HOT_KEYS = ("x_cost_class", "resource_id")
_HOT_CLASSES = ("storage_object", "request_get")


def spend_findings(
    organisation_id: UUID, *, month_on: date, project_id: UUID | None = None
) -> list[SpendFinding]:
    """What the charges of a calendar month show, by effective cost, the dearest first.

    With `project_id`, of what is given to this project alone.
    """
    end_on = _month_after(month_on)
    before_on = (month_on - timedelta(days=1)).replace(day=1)
    return findings_of(
        [
            *_lines(organisation_id, _LINE_KEYS, (month_on, end_on), project_id),
            *_bare_lines(organisation_id, (month_on, end_on), project_id),
        ],
        _lines(organisation_id, ("x_cost_class",), (before_on, month_on), project_id),
        _lines(
            organisation_id,
            _HOT_KEYS,
            (month_on, end_on),
            project_id,
            filters=tuple(f"x_cost_class={name}" for name in _HOT_CLASSES),
        ),
    )


def billed_months(organisation_id: UUID) -> list[date]:
    """The calendar months with charges, newest first."""
    days = DailyCost.objects.filter(organisation_id=organisation_id)
    return list(days.dates("day", "month", order="DESC"))


def _lines(
    organisation_id: UUID,
    group_by: Sequence[str],
    days: tuple[date, date],
    project_id: UUID | None,
    filters: Sequence[str] = (),
) -> list[SpendLine]:
    """The groups whose cost is known."""
    table = costs_grouped(
        organisation_id,
        group_by=group_by,
        basis="effective",
        start_on=days[0],
        end_on=days[1],
        project_id=project_id,
        include_unallocated=True,
        filters=filters,
    )
    return [
        SpendLine(
            keys=dict(zip(group_by, row.group, strict=True)),
            currency=row.currency,
            cost=row.cost,
            requests=row.requests,
            storage_tb_month=row.storage_tb_month,
            transfer_bytes=row.transfer_bytes,
            idle_accelerator_h=row.idle_accelerator_h,
            rows=row.rows,
        )
        for row in table.rows
        if row.cost is not None
    ]


def _bare_lines(
    organisation_id: UUID, days: tuple[date, date], project_id: UUID | None
) -> list[SpendLine]:
    """What bears no tag, by currency: `has_tags` is the only key, so no other rule counts it."""
    versions = chosen_versions(published_versions(organisation_id), cost_from(Basis.EFFECTIVE))
    costs = DailyCost.objects.filter(
        version__in=versions, day__gte=days[0], day__lt=days[1], has_tags=False
    )
    if project_id is not None:
        costs = costs.filter(project_id=project_id)
    found = (
        costs.values("billing_currency")
        .annotate(cost=Sum("effective_cost"), count=Sum("rows"))
        .filter(cost__isnull=False)
    )
    return [
        SpendLine(
            keys={"has_tags": "false"},
            currency=row["billing_currency"],
            cost=row["cost"],
            rows=row["count"],
        )
        for row in found
    ]


def _month_after(month_on: date) -> date:
    return date(month_on.year + month_on.month // 12, month_on.month % 12 + 1, 1)
