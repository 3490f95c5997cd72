"""Reads of sources: how fresh each is, which days it covers, how its pulls went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from billing.models import BillingPeriod, DailyCost, InvoiceTotal, Pull, Source
from billing.source_coverage import Coverage, coverage_of
from billing.source_kinds import SOURCE_KINDS
from jobs.records import JobProgress
from jobs.selectors import newest_jobs_by_scope

SHOWN_PULLS = 20
TEST_KIND = "billing.test_source"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTest:
    """How the last test of a connection ended."""

    is_well: bool
    at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """A source as the list shows it."""

    source: Source
    kind_name: str
    charged_through: date | None
    next_pull_at: datetime | None  # None: nothing pulls it by itself
    error: str
    test: SourceTest | None = None  # only one that is newer than the last pull

    @property
    def is_pulled(self) -> bool:
        """Whether it is one that can be pulled."""
        return self.source.kind in SOURCE_KINDS


def source_statuses(organisation_id: UUID) -> list[SourceStatus]:
    """Every source, by name."""
    through = dict(
        DailyCost.objects.filter(
            organisation_id=organisation_id, version__superseded_at=None, day__isnull=False
        )
        .values_list("version__period__source")
        .annotate(last=Max("day"))
    )
    sources = Source.objects.filter(organisation_id=organisation_id).order_by("name")
    jobs = newest_jobs_by_scope(organisation_id, kind=TEST_KIND)
    return [
        status_of(
            source,
            charged_through=through.get(source.pk),
            test=test_of(source, jobs.get(f"source:{source.pk}")),
        )
        for source in sources
    ]


def status_of(
    source: Source, *, charged_through: date | None, test: SourceTest | None = None
) -> SourceStatus:
    """One source as the list shows it."""
    return SourceStatus(
        source=source,
        kind_name=source.get_kind_display(),
        charged_through=charged_through,
        next_pull_at=next_pull_at(source),
        error=error_words(source.last_error),
        test=test,
    )


def last_test(source: Source) -> SourceTest | None:
    """How the newest test of a source's connection ended, unless a pull has told more since."""
    jobs = newest_jobs_by_scope(source.organisation_id, kind=TEST_KIND)
    return test_of(source, jobs.get(f"source:{source.pk}"))


def test_of(source: Source, job: JobProgress | None) -> SourceTest | None:
    """What a test's job says; nothing while it runs, and nothing once a later pull was tried."""
    if job is None or not job.is_over or job.finished_at is None:
        return None
    if source.tried_at is not None and source.tried_at > job.finished_at:
        return None
    result = job.result if isinstance(job.result, dict) else {}
    failed = [step for step in result.get("steps", []) if not step.get("ok")]
    return SourceTest(
        is_well=bool(result.get("ok")),
        at=job.finished_at,
        message=str(failed[0].get("message", "")) if failed else job.error,
    )


def next_pull_at(source: Source) -> datetime | None:
    """When the schedule pulls it next; a time that is over means at the next look."""
    if source.kind not in SOURCE_KINDS or source.is_paused or not source.every_h:
        return None
    return (source.tried_at or source.created_at) + timedelta(
        hours=source.every_h if source.tried_at else 0
    )


def error_words(error: Any) -> str:
    """What went wrong last, in one sentence; empty when nothing did."""
    if not isinstance(error, dict) or not error.get("message"):
        return ""
    where, what = str(error.get("object") or ""), str(error["message"])
    sentence = f"{where}: {what}" if where else what
    missing = str(error.get("missing_permission") or "")
    if missing and missing not in sentence:
        sentence = _("{sentence}; missing permission: {permission}").format(
            sentence=sentence, permission=missing
        )
    return sentence


def coverage_of_source(source: Source, *, as_of: date) -> Coverage:
    """The days of a source's published months that hold charges."""
    days = (
        DailyCost.objects.filter(version__period__source=source, version__superseded_at=None)
        .values_list("day", flat=True)
        .distinct()
    )
    return coverage_of(list(days), as_of=as_of)


def pulls_of(source: Source) -> Sequence[Pull]:
    """The newest pulls first."""
    return list(Pull.objects.filter(source=source)[:SHOWN_PULLS])


def published_months(source: Source) -> int:
    """How many months of the source are published."""
    periods = BillingPeriod.objects.filter(source=source, published_version__isnull=False)
    return periods.values("start").distinct().count()


def invoice_totals_of(source: Source) -> QuerySet[InvoiceTotal]:
    """The figures that its months are compared with."""
    return InvoiceTotal.objects.filter(source=source, withdrawn_at=None)
