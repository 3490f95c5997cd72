"""Reads of charges: what is published, deliveries, sources; rules and costs are read beside."""

from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet

from billing.allocation_selectors import allocation_rules, newest_rule_set, rules_of
from billing.cost_selectors import (
    billed_through,
    cost_by_day,
    cost_table,
    costs_grouped,
    unallocated_cost,
)
from billing.models import BillingPeriod, Delivery, Source
from billing.published_selectors import published_versions
from billing.records import PeriodStatus

__all__ = [
    "allocation_rules",
    "billed_through",
    "charged_sources",
    "cost_by_day",
    "cost_table",
    "costs_grouped",
    "deliveries",
    "delivery_by_id",
    "known_sources",
    "newest_rule_set",
    "period_statuses",
    "published_versions",
    "rules_of",
    "source_named",
    "sources",
    "unallocated_cost",
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


def known_sources(organisation_id: UUID) -> list[Source]:
    """The sources to hand in to again: with published charges, or connected somewhere."""
    charged = Q(periods__published_version__isnull=False)
    known = Source.objects.filter(charged | ~Q(connection={}), organisation_id=organisation_id)
    return list(known.distinct().order_by("name"))


def charged_sources(organisation_id: UUID) -> list[Source]:
    """The sources with published charges, by name."""
    return list(
        Source.objects.filter(
            organisation_id=organisation_id, periods__published_version__isnull=False
        )
        .distinct()
        .order_by("name")
    )


def period_statuses(organisation_id: UUID) -> list[PeriodStatus]:
    """What is published of each month of each source, newest month first."""
    periods = BillingPeriod.objects.filter(
        organisation_id=organisation_id, published_version__isnull=False
    ).select_related("source", "published_version")
    return [
        PeriodStatus(
            period_id=period.pk,
            dataset=period.dataset,
            source=period.source.name,
            period=str(period),
            rows=period.published_version.rows,
            known_at=period.published_version.known_at,
        )
        for period in periods.order_by("-start", "source__name")
        if period.published_version is not None
    ]


def source_named(organisation_id: UUID, name: str) -> Source | None:
    """The source of this name."""
    return Source.objects.filter(organisation_id=organisation_id, name=name).first()
