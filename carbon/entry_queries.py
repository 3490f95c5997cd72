"""Which emission entries hold, now or as of an instant. Sums are made elsewhere."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from uuid import UUID

from django.db.models import QuerySet

from carbon.models import EmissionEntry, Restatement


def current_entries(as_of: datetime | None = None) -> QuerySet[EmissionEntry]:
    """The entries that hold (at `as_of`): neither reversed by then, nor themselves reversals."""
    entries = EmissionEntry.objects.filter(reverses__isnull=True)
    if as_of is None:
        return entries.filter(reversal__isnull=True)
    return entries.filter(posted_at__lte=as_of).exclude(reversal__posted_at__lte=as_of)


def held_spans(site_id: UUID) -> list[tuple[datetime, datetime]]:
    """Hours of a site whose change waits for a release: their entries differ on purpose."""
    rows = Restatement.objects.filter(site_id=site_id, state=Restatement.State.HELD)
    return list(rows.values_list("start", "end").order_by("start"))


def is_held(spans: Iterable[tuple[datetime, datetime]], hour: datetime) -> bool:
    """Whether an hour lies in one of these spans."""
    return any(low <= hour < high for low, high in spans)


def entries_between(  # noqa: PLR0913 - what the selectors are asked
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    site_id: UUID | None = None,
    start_on: date | None = None,
    end_on: date | None = None,
    as_of: datetime | None = None,
) -> QuerySet[EmissionEntry]:
    """The entries of [start_on, end_on) that hold; of everybody and nobody without a project."""
    found = current_entries(as_of).filter(organisation_id=organisation_id)
    if project_id is not None:
        found = found.filter(project_id=project_id)
    if site_id is not None:
        found = found.filter(site_id=site_id)
    if start_on is not None:
        found = found.filter(hour__gte=datetime.combine(start_on, time(), UTC))
    if end_on is not None:
        found = found.filter(hour__lt=datetime.combine(end_on, time(), UTC))
    return found
