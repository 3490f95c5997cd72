"""Reads of what is in force: published versions, now or at an instant, and their files."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from billing.models import ChargeSlice, PeriodVersion, RuleSet


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


def slice_paths(versions: QuerySet[PeriodVersion]) -> dict[UUID, tuple[str, ...]]:
    """The files of the lake that each of these versions is made of."""
    found: dict[UUID, tuple[str, ...]] = {}
    slices = ChargeSlice.objects.filter(versions__in=versions).order_by("path")
    for version_id, path in slices.values_list("versions", "path"):
        found[version_id] = (*found.get(version_id, ()), path)
    return found


def changed_since(organisation_id: UUID, as_of: datetime) -> bool:
    """Whether charges or rules changed after the instant: then the roll-up is too new."""
    versions = PeriodVersion.objects.filter(organisation_id=organisation_id, known_at__gt=as_of)
    rules = RuleSet.objects.filter(organisation_id=organisation_id, created_at__gt=as_of)
    return versions.exists() or rules.exists()
