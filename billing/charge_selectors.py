"""Reads around single charges and their page: slices, months, history, the file's own line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, QuerySet

from billing.adapters import JSON_COLUMNS, LIST_COLUMNS
from billing.allocation_selectors import newest_rule_set, rules_of
from billing.charge_rows import SliceFile, Stack
from billing.cost_questions import CostQuestion, Scope
from billing.cost_selectors import costs_in_scope
from billing.dataset_choice import chosen_versions, cost_from
from billing.models import (
    BillingPeriod,
    ChargeSlice,
    DailyCost,
    Delivery,
    DeliveryFile,
    InvoiceTotal,
)
from billing.published_selectors import published_versions
from lake import blobs
from lake.places import LakeError, scratch
from lake.text_files import ParseRequest, TextFileRefusedError, original_line
from projects.models import Project

MEBIBYTE: Final = 2**20
LINE_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a charge came from: delivery, file and, where it can still be read, its line."""

    delivery: Delivery
    file: DeliveryFile | None
    line: Mapping[str, str | None] | None
    why_no_line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A version of a month that held the charge: from when until when it was what we knew."""

    number: int
    known_at: datetime
    superseded_at: datetime | None
    delivery_id: UUID


def stack_of(organisation_id: UUID, question: CostQuestion) -> Stack:
    """The slices whose charges make up a question's cost."""
    published = published_versions(organisation_id, question.as_of)
    versions = chosen_versions(published, cost_from(question.basis))
    if question.as_of is None:
        versions = versions.filter(Exists(_days_of(question)))
    slices = ChargeSlice.objects.filter(versions__in=versions).distinct().order_by("path")
    return _stack(organisation_id, list(slices.select_related("period__source")))


def _days_of(question: CostQuestion) -> QuerySet[DailyCost]:
    """The roll-up's rows of a version on the question's days; a version without has no charges."""
    days = DailyCost.objects.filter(version=OuterRef("pk"))
    if question.start_on is not None:
        days = days.filter(day__gte=question.start_on)
    if question.end_on is not None:
        days = days.filter(day__lt=question.end_on)
    return days


def stack_of_one(one: ChargeSlice) -> Stack:
    """A single slice."""
    return _stack(one.organisation_id, [one])


def _stack(organisation_id: UUID, slices: Sequence[ChargeSlice]) -> Stack:
    slugs = Project.objects.filter(organisation_id=organisation_id).values_list("pk", "slug")
    return Stack(
        slices=[
            SliceFile(slice_id=one.pk, path=one.path, source=one.period.source.name)
            for one in slices
        ],
        rules=rules_of(newest_rule_set(organisation_id)),
        slugs={str(pk): slug for pk, slug in slugs},
    )


def slice_by_id(organisation_id: UUID, slice_id: UUID) -> ChargeSlice | None:
    """One slice, published or not."""
    slices = ChargeSlice.objects.filter(organisation_id=organisation_id, pk=slice_id)
    return slices.select_related("period__source", "delivery__source").first()


def history_of(one: ChargeSlice) -> list[Known]:
    """The versions of the month that held the slice, oldest first."""
    versions = one.versions.filter(period_id=one.period_id).order_by("number")
    return [
        Known(
            number=version.number,
            known_at=version.known_at,
            superseded_at=version.superseded_at,
            delivery_id=version.delivery_id,
        )
        for version in versions
    ]


def origin_of(one: ChargeSlice, *, file_name: str, row: int | None) -> Origin:
    """The delivery and file of a charge, and the line as the file has it."""
    file = one.delivery.files.filter(name=file_name, already_imported=False).first()
    file = file or one.delivery.files.filter(name=file_name).first()
    line, why = (None, "") if file is None or row is None else _line(file, row)
    return Origin(delivery=one.delivery, file=file, line=line, why_no_line=why)


def _line(file: DeliveryFile, row: int) -> tuple[Mapping[str, str | None] | None, str]:
    try:
        with scratch() as folder:
            request = ParseRequest(
                source=blobs.held(file.sha256, folder=folder),
                folder=folder,
                compression=file.compression,
                max_unpacked_bytes=settings.MAX_UNPACKED_MB * MEBIBYTE,
                json_columns=JSON_COLUMNS,
                list_columns=LIST_COLUMNS,
                threads=settings.LAKE_THREADS,
            )
            return original_line(request, row=row, timeout_s=LINE_TIMEOUT_S), ""
    except (TextFileRefusedError, LakeError, FileNotFoundError) as error:
        return None, str(error)


def months_with_charges(organisation_id: UUID, scope: Scope) -> list[date]:
    """The first days of the months with charges in a scope, newest first."""
    days = costs_in_scope(organisation_id, scope).dates("day", "month", order="DESC")
    return list(days)


def known_since(organisation_id: UUID) -> datetime | None:
    """When the newest published version became known."""
    newest: datetime | None = published_versions(organisation_id).aggregate(at=Max("known_at"))[
        "at"
    ]
    return newest


def is_invoiced(organisation_id: UUID, *, start_on: date | None, end_on: date | None) -> bool:
    """Whether every published month of these days has a stated invoice total."""
    periods = BillingPeriod.objects.filter(
        organisation_id=organisation_id, published_version__isnull=False
    )
    if start_on is not None:
        periods = periods.filter(start__gte=start_on.replace(day=1))
    if end_on is not None:
        periods = periods.filter(start__lt=end_on)
    stated = set(
        InvoiceTotal.objects.filter(
            organisation_id=organisation_id, withdrawn_at=None, invoice_id=""
        ).values_list("source_id", "start")
    )
    months = set(periods.values_list("source_id", "start"))
    return bool(months) and months <= stated
