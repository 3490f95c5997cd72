"""Energy and carbon by hour, day, month, project, run or site, from the entries of the books."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncMonth
from django.utils.translation import gettext as _

from carbon.energy_questions import IN_TIME, NOBODY, EnergyQuestion, hour_text
from carbon.energy_records import KNOWABLE, EnergyRow, EnergyTable
from carbon.market_groups import market_by_group
from carbon.models import EmissionEntry, FactorSet
from carbon.selectors import current_entries

_SUMS: Final = {
    "measured": Sum("measured_millijoule"),
    "spread": Sum("spread_millijoule"),
    "estimated": Sum("estimated_millijoule"),
    "covered": Sum("covered_microsecond"),
    "expected": Sum("expected_microsecond"),
    "entries": Count("pk"),
    **{f"sum_{name}": Sum(name) for name in KNOWABLE},
    **{f"known_{name}": Count(name) for name in KNOWABLE},
}
_KEYS: Final = {
    "hour": ("hour",),
    "day": ("day",),
    "month": ("month",),
    "project": ("project__slug", "project__name"),
    "run": ("project__slug", "project__name", "run__slug", "run__name"),
    "site": ("site__slug", "site__name"),
}


def asked_entries(question: EnergyQuestion) -> QuerySet[EmissionEntry]:
    """The entries that hold and that the question is about."""
    asked = {
        "project_id__in": question.allowed,
        "project_id": question.project_id,
        "run_id": question.run_id,
        "site_id": question.site_id,
        "hour__gte": question.start,
        "hour__lt": question.end,
        "project__isnull": True if question.is_of_nobody else None,
        "run__isnull": True if question.run == NOBODY else None,
    }
    chosen = {name: value for name, value in asked.items() if value is not None}
    found = current_entries(question.as_of).filter(organisation_id=question.organisation_id)
    return found.filter(**chosen)


def row_of(sums: Mapping[str, Any], *, key: str, name: str, start: datetime | None) -> EnergyRow:
    """A row from its sums; a sum that misses a part is None."""
    entries = int(sums["entries"])
    known = {
        one: None if not entries or sums[f"known_{one}"] < entries else float(sums[f"sum_{one}"])
        for one in KNOWABLE
    }
    return EnergyRow(
        key=key,
        name=name,
        start=start,
        measured_millijoule=int(sums["measured"] or 0),
        spread_millijoule=int(sums["spread"] or 0),
        estimated_millijoule=int(sums["estimated"] or 0),
        covered_microsecond=int(sums["covered"] or 0),
        expected_microsecond=None if sums["expected"] is None else int(sums["expected"]),
        entries=entries,
        **known,
    )


def booked_total(question: EnergyQuestion) -> EnergyRow:
    """The sum of the books for a question."""
    entries = asked_entries(question)
    row = row_of(entries.aggregate(**_SUMS), key="", name="", start=None)
    market = market_by_group(question.organisation_id, entries, (), as_of=question.as_of)
    return replace(row, scope_2_market_kgco2e=market.get(())) if market else row


def booked_table(question: EnergyQuestion) -> EnergyTable:
    """The books by the question's group; in time order, else the most energy first."""
    entries = asked_entries(question)
    if question.by == "day":
        entries = entries.annotate(day=TruncDay("hour", tzinfo=UTC))
    elif question.by == "month":
        entries = entries.annotate(month=TruncMonth("hour", tzinfo=UTC))
    keys = _KEYS[question.by]
    market = market_by_group(question.organisation_id, entries, keys, as_of=question.as_of)
    found = []
    for row in entries.values(*keys).annotate(**_SUMS).order_by():
        named = _named(question.by, row)
        group = tuple(row[key] for key in keys)
        found.append(replace(named, scope_2_market_kgco2e=market[group]) if market else named)
    if question.by in IN_TIME:
        found.sort(key=lambda row: row.key)
    else:
        found.sort(key=lambda row: (-row.accelerator_millijoule, row.key))
    return EnergyTable(rows=tuple(found), total=booked_total(question))


def _named(by: str, row: Mapping[str, Any]) -> EnergyRow:
    if by in IN_TIME:
        at = row[by]
        key = {"hour": hour_text(at), "day": f"{at:%Y-%m-%d}", "month": f"{at:%Y-%m}"}[by]
        return row_of(row, key=key, name=key, start=at)
    if by == "site":
        return row_of(row, key=row["site__slug"], name=row["site__name"], start=None)
    project, name = row["project__slug"] or NOBODY, row["project__name"] or _("No project")
    if by == "project":
        return row_of(row, key=project, name=name, start=None)
    run, run_name = row["run__slug"] or NOBODY, row["run__name"] or _("no run")
    return row_of(row, key=f"{project}/{run}", name=f"{name} / {run_name}", start=None)


def booked_span(question: EnergyQuestion) -> tuple[datetime | None, datetime | None]:
    """The first and the last hour on the books with readings, of what the question is about."""
    covered = asked_entries(question).filter(covered_microsecond__gt=0)
    span = covered.aggregate(first=Min("hour"), last=Max("hour"))
    return span["first"], span["last"]


def has_estimated_factor(question: EnergyQuestion) -> bool:
    """Whether a factor behind the energy of IT and facility is an estimate, or was not set."""
    ids = asked_entries(question).values_list("factor_set_id", flat=True).distinct()
    for factors in FactorSet.objects.filter(pk__in=list(ids)).values_list("factors", flat=True):
        for one in factors:
            if one["kind"] in ("host_factor", "pue") and (
                one["basis"] == "estimated" or one["level"] == "not set"
            ):
                return True
    return False


def filters_of(organisation_id: UUID, allowed: tuple[UUID, ...] | None) -> dict[str, list[Any]]:
    """The projects and sites that have entries, to choose among: (slug, name) pairs."""
    entries = EmissionEntry.objects.filter(organisation_id=organisation_id)
    if allowed is not None:
        entries = entries.filter(project_id__in=allowed)
    projects = entries.filter(~Q(project=None)).values_list("project__slug", "project__name")
    places = entries.values_list("site__slug", "site__name")
    return {
        "projects": list(projects.order_by("project__name").distinct()),
        "sites": list(places.order_by("site__name").distinct()),
    }
